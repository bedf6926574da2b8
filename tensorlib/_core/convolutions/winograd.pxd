"""Winograd's convolutions: windows of 3 x 3 with fewer multiplications."""

cdef enum:
    SHARES = 8       # parts of a batch whose gradients of the weight are added up apart

cdef enum WinogradPass:
    PRODUCT          # y := the windows of x times the weight
    ADJOINT          # y := the image of which x is the gradient of the result
    GRADIENT         # weight := the gradient of it, where y is the gradient of the result

# All contiguous, of float32; with `lanes` x and y have their channels last.
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
