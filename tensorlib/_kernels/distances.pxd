"""How the rows that distances are taken from are laid out."""

cdef enum:
    LANES = 32      # rows of a panel, side by side
