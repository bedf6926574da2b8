"""The layout of the rows from which distances are taken."""

cdef enum:
    LANES = 32      # rows of a panel, side by side
