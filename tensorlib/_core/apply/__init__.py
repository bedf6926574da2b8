"""Running an operation: promotion, broadcasting, `out=`, in place, and Python's operators."""
