"""The sizes and options of `grid_sample`."""

ctypedef struct Look:
    Py_ssize_t channels, high, wide
    Py_ssize_t places                # in an image; high * wide is below 2**30
    int padding                      # 0 zeros, 1 border, 2 reflection
    bint align                       # -1 and 1 are the middles of the elements at the corners
    bint nearest                     # the nearest element alone
