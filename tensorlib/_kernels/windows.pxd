"""The sizes of sliding windows: of a plane and of the result, in up to three dims."""

ctypedef struct Window:
    Py_ssize_t size[3]            # of a plane
    Py_ssize_t out[3]             # how many windows
    Py_ssize_t kernel[3]          # elements of a window
    Py_ssize_t stride[3]
    Py_ssize_t pad[3]             # before the plane
    Py_ssize_t dilation[3]
    Py_ssize_t end[3]             # where the padding after the plane ends, for means
    bint counts_padding           # of means
    bint adaptive                 # of means: windows cover the plane, and differ in size
    Py_ssize_t divisor            # of means; 0 for the number of elements
    Py_ssize_t apart              # elements from one plane to the next, for columns
