"""Planning how a tile program goes over operands of any shapes and strides."""

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.loops cimport find_transpose
from tensorlib._core.tiles.program cimport Program


cdef int make_plan(Plan* plan, PyObject** inputs, Tensor out) except -1:
    """Binds the operands and merges dims, so that as few and as long runs as possible are left.

    Raises: RuntimeError for an input that does not broadcast to `out`: one that was saved may have
    got another shape since.
    """
    cdef int n = plan.program.n_inputs, i
    cdef bint flat = out.packed
    cdef Tensor x
    for i in range(n):
        x = <Tensor>inputs[i]
        check_broadcasts(x, out)
        flat = flat and (x.numel_ == 1 or (x.packed and x.numel_ == out.numel_))
    if flat:
        plan.ndim = 1
        plan.dims[0] = out.numel_
        for i in range(n):
            bind(&plan.operands[i], <Tensor>inputs[i])
            plan.operands[i].scalar = (<Tensor>inputs[i]).numel_ == 1 and out.numel_ != 1
            plan.operands[i].linear = not plan.operands[i].scalar
            plan.operands[i].steps[0] = (
                0 if plan.operands[i].scalar else ITEMSIZE[plan.operands[i].dtype])
        bind(&plan.operands[n], out)
        plan.operands[n].linear, plan.operands[n].scalar = True, False
        plan.operands[n].steps[0] = ITEMSIZE[out.type]
        return 0
    for i in range(n):
        bind_broadcast(&plan.operands[i], <Tensor>inputs[i], out.ndim_)
    bind_broadcast(&plan.operands[n], out, out.ndim_)
    merge_dims(plan, n + 1, out.ndim_, out.dims)
    for i in range(n + 1):
        describe(&plan.operands[i], plan.ndim, plan.dims)
    return 0


cdef inline int check_broadcasts(Tensor x, Tensor out) except -1:
    cdef int d, skipped = out.ndim_ - x.ndim_
    cdef bint fits = skipped >= 0
    for d in range(x.ndim_ if fits else 0):
        fits &= x.dims[d] == 1 or x.dims[d] == out.dims[d + skipped]
    if not fits:
        raise RuntimeError(
            f"an input of shape {tuple(x.shape)} does not broadcast to {tuple(out.shape)}")
    return 0


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


cdef void merge_dims(Plan* plan, int n, int ndim, const Py_ssize_t* dims) noexcept nogil:
    """Orders the dims by the steps of the output, drops those of size 1, joins neighbours."""
    cdef int order[MAX_NDIM]
    cdef int kept = 0, d, i, place, last
    cdef Operand* out = &plan.operands[n - 1]
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
            steps[d] = plan.operands[i].steps[order[d]]
        for d in range(kept):
            plan.operands[i].steps[d] = steps[d]
    last = -1
    for d in range(kept):
        joins = last >= 0
        if joins:
            for i in range(n):
                if plan.operands[i].steps[last] != plan.operands[i].steps[d] * dims[order[d]]:
                    joins = False
                    break
        if not joins:
            last += 1
            plan.dims[last] = 1
        plan.dims[last] *= dims[order[d]]
        for i in range(n):
            plan.operands[i].steps[last] = plan.operands[i].steps[d]
    plan.ndim = last + 1
    if plan.ndim == 0:
        plan.ndim = 1
        plan.dims[0] = 1
        for i in range(n):
            plan.operands[i].steps[0] = ITEMSIZE[plan.operands[i].dtype]


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


cdef Py_ssize_t cost(const Plan* plan) noexcept nogil:
    """How long an element takes, in times of the cheapest loop on runs."""
    cdef const Program* program = plan.program
    cdef Py_ssize_t found = max(program.n_steps, 1)
    cdef int i
    for i in range(program.n_steps):
        found += program.steps[i].loop.cost - 1
    for i in range(program.n_inputs + 1):
        if not (plan.operands[i].linear or plan.operands[i].scalar):
            found += 1                       # it is gathered, or scattered
    return found


cdef bint is_transposition(const Plan* plan) noexcept:
    """A copy of a matrix whose columns are contiguous to one whose rows are."""
    cdef Py_ssize_t size = ITEMSIZE[plan.operands[1].dtype]
    return (plan.program.n_steps == 0 and plan.ndim == 2
            and plan.operands[0].dtype == plan.operands[1].dtype
            and plan.operands[0].steps[0] == size and plan.operands[1].steps[1] == size)


cdef void transpose_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Rows [begin, end) of a transposition."""
    cdef Plan* plan = <Plan*>context
    cdef Operand* x = &plan.operands[0]
    cdef Operand* y = &plan.operands[1]
    find_transpose(x.dtype)(x.data + begin * x.steps[0], x.steps[1], y.data + begin * y.steps[0],
                            y.steps[0], end - begin, plan.dims[1])
