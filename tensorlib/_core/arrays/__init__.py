"""To and from the outside: Python's objects, NumPy arrays, text and pickles."""
