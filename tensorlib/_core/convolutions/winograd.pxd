"""Winograd's convolutions: windows of 3 x 3 with fewer multiplications."""

cdef enum:
    SHARES = 8       # parts of a batch, each with its own sum for the gradient of the weight

cdef enum WinogradPass:
    PRODUCT          # y := the convolution of x with the weight
    ADJOINT          # y := the gradient of the input, where x is that of the result
    GRADIENT         # weight := the gradient of the weight, where y is that of the result

# All are contiguous and float32; with `lanes`, x and y are channels-last.
ctypedef struct Tiled:
    WinogradPass kind
    char* x                          # (images, groups * ins, *size)
    char* y                          # (images, groups * outs, *out)
    char* weight                     # as the convolution has it
    Py_ssize_t images, groups, ins, outs
    Py_ssize_t size[2]
    Py_ssize_t out[2]
    Py_ssize_t pad[2]
    bint lanes

cdef bint winograd_fits(const Tiled* given) noexcept
cdef Py_ssize_t images_in_share(const Tiled* given) noexcept
cdef int winograd(Tiled* given) except -1
