"""Planning a walk over element-wise operands of any shapes and strides."""

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.tensor.tensor cimport Tensor


cdef void plan(Walk* walk, PyObject** inputs, Tensor out) noexcept:
    """Binds the operands and merges dims, so that as few and as long runs as possible are left."""
    cdef int n = walk.program.n_inputs, i
    cdef bint flat = out.packed
    cdef Tensor x
    for i in range(n):
        x = <Tensor>inputs[i]
        flat = flat and (x.numel_ == 1 or (x.packed and x.numel_ == out.numel_))
    if flat:
        walk.ndim = 1
        walk.dims[0] = out.numel_
        for i in range(n):
            bind(&walk.operands[i], <Tensor>inputs[i])
            walk.operands[i].scalar = (<Tensor>inputs[i]).numel_ == 1 and out.numel_ != 1
            walk.operands[i].linear = not walk.operands[i].scalar
            walk.operands[i].steps[0] = (
                0 if walk.operands[i].scalar else ITEMSIZE[walk.operands[i].dtype])
        bind(&walk.operands[n], out)
        walk.operands[n].linear, walk.operands[n].scalar = True, False
        walk.operands[n].steps[0] = ITEMSIZE[out.type]
        return
    for i in range(n):
        bind_broadcast(&walk.operands[i], <Tensor>inputs[i], out.ndim_)
    bind_broadcast(&walk.operands[n], out, out.ndim_)
    merge_dims(walk, n + 1, out.ndim_, out.dims)
    for i in range(n + 1):
        describe(&walk.operands[i], walk.ndim, walk.dims)


cdef inline void bind(Operand* operand, Tensor x) noexcept:
    operand.data = x.data_pointer
    operand.dtype = x.type


cdef void bind_broadcast(Operand* operand, Tensor x, int ndim) noexcept:
    cdef int d, skipped = ndim - x.ndim_
    bind(operand, x)
    for d in range(ndim):
        operand.steps[d] = (
            0 if d < skipped or x.dims[d - skipped] == 1
            else x.steps[d - skipped] * ITEMSIZE[x.type])


cdef void merge_dims(Walk* walk, int n, int ndim, const Py_ssize_t* dims) noexcept nogil:
    """Orders the dims by the steps of the output, drops those of size 1, joins neighbours."""
    cdef int order[MAX_NDIM]
    cdef int kept = 0, d, i, place, last
    cdef Operand* out = &walk.operands[n - 1]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef bint joins
    for d in range(ndim):                       # insertion sort, largest step first
        if dims[d] == 1:
            continue
        place = kept
        while place > 0 and magnitude(out.steps[order[place - 1]]) < magnitude(out.steps[d]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = d
        kept += 1
    for i in range(n):
        for d in range(kept):
            steps[d] = walk.operands[i].steps[order[d]]
        for d in range(kept):
            walk.operands[i].steps[d] = steps[d]
    last = -1
    for d in range(kept):
        joins = last >= 0
        if joins:
            for i in range(n):
                if walk.operands[i].steps[last] != walk.operands[i].steps[d] * dims[order[d]]:
                    joins = False
                    break
        if not joins:
            last += 1
            walk.dims[last] = 1
        walk.dims[last] *= dims[order[d]]
        for i in range(n):
            walk.operands[i].steps[last] = walk.operands[i].steps[d]
    walk.ndim = last + 1
    if walk.ndim == 0:
        walk.ndim = 1
        walk.dims[0] = 1
        for i in range(n):
            walk.operands[i].steps[0] = ITEMSIZE[walk.operands[i].dtype]


cdef inline Py_ssize_t magnitude(Py_ssize_t step) noexcept nogil:
    return -step if step < 0 else step


cdef void describe(Operand* operand, int ndim, const Py_ssize_t* dims) noexcept nogil:
    cdef Py_ssize_t expected = ITEMSIZE[operand.dtype]
    cdef int d
    operand.linear = operand.scalar = True
    for d in range(ndim - 1, -1, -1):
        operand.linear = operand.linear and operand.steps[d] == expected
        operand.scalar = operand.scalar and operand.steps[d] == 0
        expected *= dims[d]
