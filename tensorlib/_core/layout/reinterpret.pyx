"""The bytes of a tensor as elements of another dtype, and complex numbers as their parts."""

from libc.stdint cimport uintptr_t

from tensorlib._core.base.dtypes cimport (
    COMPLEX_KIND, FLOAT32, FLOAT64, ITEMSIZE, KIND, complex_of, dtype_id, dtype_object, real_of,
)
from tensorlib._core.base.shape cimport MAX_NDIM, broadcast, times
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.tensor.tensor cimport (
    Tensor, UNRECORDED, alias, new_tensor, new_view, over_storage, same_shape, set_base,
)
from tensorlib._core.tiles.copies cimport copy_into, new_arranged_as

from tensorlib._core.base.pool import get_num_threads

cdef enum:
    PIECE = 32768            # numbers whose parts are written together, of each thread


def view_dtype(Tensor x, dtype):
    """The memory of `x` as elements of another dtype, outside the graph.

    The last dim becomes longer for smaller elements and shorter for larger ones.
    Raises: RuntimeError where sizes or strides do not allow it, TypeError for what is no dtype.
    """
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int id = dtype_id(dtype), last = x.ndim_ - 1, d
    cdef Py_ssize_t old = ITEMSIZE[x.type], new = ITEMSIZE[id]
    for d in range(x.ndim_):
        dims[d], steps[d] = x.dims[d], x.steps[d]
    if old != new:
        if last < 0:
            refuse(x, id, "it has no dims")
        if steps[last] != 1 and dims[last] > 1 and x.numel_:
            refuse(x, id, f"the elements of its last dim lie {steps[last]} apart")
        steps[last] = 1
    if old > new:
        dims[last] = times(dims[last], old // new)
        for d in range(last):
            steps[d] = times(steps[d], old // new)
    elif old < new:
        if dims[last] % (new // old):
            refuse(x, id, f"the size of its last dim, {dims[last]}, is not divisible by "
                          f"{new // old}")
        dims[last] //= new // old
        for d in range(last):
            if steps[d] % (new // old) and dims[d] > 1 and x.numel_:
                refuse(x, id, f"the step of dim {d}, {steps[d]}, is not divisible by {new // old}")
            steps[d] //= new // old
    if <uintptr_t>x.data_pointer % new:
        refuse(x, id, f"its memory does not begin at a multiple of {new} bytes")
    return over_storage(x.storage, x.data_pointer, id, x.ndim_, dims, steps)


cdef int refuse(Tensor x, int id, str reason) except -1:
    raise RuntimeError(f"view: a tensor of {x.dtype} can't be viewed as {dtype_object(id)}, whose "
                       f"elements have another size: {reason} (shape {tuple(x.shape)})")


# ---- complex numbers -----------------------------------------------------------------------------

cdef Tensor view_as(Tensor x, int id, int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps,
                    Py_ssize_t offset):
    """A view of `x` as elements of another dtype, which begins `offset` bytes further."""
    cdef Tensor view = over_storage(x.storage, x.data_pointer + (offset if x.numel_ else 0), id,
                                    ndim, dims, steps)
    set_base(view, x)
    if not mode().grad:
        view.origin = UNRECORDED
    return view


def part_of_complex(Tensor x, int part):
    """The real (0) or the imaginary (1) parts of complex numbers, as a view outside the graph."""
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d
    if KIND[x.type] != COMPLEX_KIND:
        raise RuntimeError(f"imag: takes complex tensors, got {x.dtype}")
    for d in range(x.ndim_):
        steps[d] = times(x.steps[d], 2)
    return view_as(x, real_of(x.type), x.ndim_, x.dims, steps, part * ITEMSIZE[real_of(x.type)])


def as_real(Tensor x):
    """Complex numbers as their parts, along a last dim of size 2; a view outside the graph."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d
    if KIND[x.type] != COMPLEX_KIND:
        raise RuntimeError(f"view_as_real: takes complex tensors, got {x.dtype}")
    if x.ndim_ == MAX_NDIM:
        raise RuntimeError(f"view_as_real: a tensor of {x.ndim_} dims can't get another one")
    for d in range(x.ndim_):
        dims[d], steps[d] = x.dims[d], times(x.steps[d], 2)
    dims[x.ndim_], steps[x.ndim_] = 2, 1
    return view_as(x, real_of(x.type), x.ndim_ + 1, dims, steps, 0)


def as_complex(Tensor x):
    """Pairs along a last dim of size 2 as complex numbers; a view outside the graph."""
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d, last = x.ndim_ - 1
    if x.type != FLOAT32 and x.type != FLOAT64:
        raise RuntimeError(f"view_as_complex: takes tensors of float32 and float64, got {x.dtype}")
    if last < 0 or x.dims[last] != 2:
        raise RuntimeError("view_as_complex: the last dim must have size 2, got shape "
                           f"{tuple(x.shape)}")
    if x.steps[last] != 1 and x.numel_:
        raise RuntimeError("view_as_complex: the numbers of a pair must lie side by side, got a "
                           f"step of {x.steps[last]} along the last dim; use contiguous()")
    for d in range(last):
        if x.steps[d] % 2 and x.dims[d] > 1 and x.numel_:
            raise RuntimeError(f"view_as_complex: the step of dim {d}, {x.steps[d]}, is odd; use "
                               "contiguous()")
        steps[d] = x.steps[d] // 2
    if (x.data_pointer - x.storage.data) // ITEMSIZE[x.type] % 2:
        raise RuntimeError("view_as_complex: the tensor begins at an odd place in its memory; use "
                           "clone()")
    return view_as(x, complex_of(x.type), last, x.dims, steps, 0)


def of_parts(Tensor real, Tensor imag):
    """The complex numbers of these parts, with broadcasting, outside the graph."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Tensor out, full
    cdef int ndim
    if real.type != imag.type or real.type != FLOAT32 and real.type != FLOAT64:
        raise RuntimeError("complex: takes two tensors of float32 or two of float64, got "
                           f"{real.dtype} and {imag.dtype}")
    ndim = broadcast("complex", real.ndim_, real.dims, imag.ndim_, imag.dims, dims)
    out = new_tensor(complex_of(real.type), ndim, dims)
    full = real if same_shape(real, out) else imag
    if not full.packed and same_shape(full, out):        # keep the order of dims in memory
        out = new_arranged_as(full, out.type)
    if out.numel_ > 4 * PIECE and real.packed and imag.packed and same_shape(real, imag):
        join_parts(part_of_complex(out, 0), real, part_of_complex(out, 1), imag)
        return out
    copy_into(part_of_complex(out, 0), real)
    copy_into(part_of_complex(out, 1), imag)
    return out


cdef int join_parts(Tensor to_real, Tensor real, Tensor to_imag, Tensor imag) except -1:
    """Writes both parts of numbers without gaps piece by piece, which the caches hold between."""
    cdef Py_ssize_t single = 1, double = 2, size = ITEMSIZE[real.type]
    cdef Py_ssize_t most = PIECE * get_num_threads(), start, n
    real, imag = alias(real), alias(imag)        # which another thread may give other memory
    for start in range(0, real.numel_, most):
        n = min(most, real.numel_ - start)
        copy_into(new_view(to_real, 1, &n, &double, to_real.data_pointer + 2 * start * size),
                  new_view(real, 1, &n, &single, real.data_pointer + start * size))
        copy_into(new_view(to_imag, 1, &n, &double, to_imag.data_pointer + 2 * start * size),
                  new_view(imag, 1, &n, &single, imag.data_pointer + start * size))
    return 0
