"""Planning how a tile program goes over operands of any shapes and strides."""

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.storage cimport LINE
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.loops cimport find_transpose
from tensorlib._core.tiles.program cimport TileLoops

cdef enum:
    CACHED = 1 << 15         # bytes that the tiles of all values take at most
    SPREAD = 2               # tiles that elements with gaps between them take beside their own
    # Several operands with gaps that come from beyond the L2 cache, each in turn: the processor
    # looks ahead in all of them only where the turns are short. x[:, ::2] += y[:, ::2] of 1024 x
    # 1024 float64 took 2.1 ms by tiles of 3.5 KB, 1.4 by these.
    BEYOND_CACHE = 1 << 22
    SHORT_BURST = 2048


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
    cdef const TileLoops* program = plan.program
    cdef Py_ssize_t found = max(program.n_steps, 1)
    cdef int i
    for i in range(program.n_steps):
        found += program.steps[i].loop.cost - 1
    for i in range(program.n_inputs + 1):
        if not (plan.operands[i].linear or plan.operands[i].scalar
                or plan.ndim == 2 and plan.operands[i].steps[0] == 0):
            found += 1                       # it is gathered, or scattered
    return found


cdef Py_ssize_t tile_of(const Plan* plan, Py_ssize_t numel) noexcept nogil:
    """How many elements of each operand and result fit, and stay in the L1 cache."""
    cdef const TileLoops* program = plan.program
    cdef int i, size = program.itemsize, spread = 0
    cdef int count = 1 + program.first_aside - program.n_constants       # the last result is out
    cdef Py_ssize_t step, most = BUFFER_BYTES
    for i in range(program.n_inputs + 1):
        size = max(size, ITEMSIZE[plan.operands[i].dtype])
        step = plan.operands[i].steps[plan.ndim - 1]
        if step and step != ITEMSIZE[plan.operands[i].dtype]:
            spread += 1
    count += spread * SPREAD                                             # with what lies between
    if spread > 1 and numel * size >= BEYOND_CACHE:
        most = SHORT_BURST
    return min(most, CACHED // count) // size // LINE * LINE


# ---- transpositions ------------------------------------------------------------------------------

cdef enum:
    LEAST_SIDE = 8           # of a matrix worth a call; smaller ones are moved as slabs
    FEW = 4                  # rows are gathered one by one, if they are fewer


cdef bint as_transpositions(Plan* plan) noexcept:
    """Whether a copy turns matrices whose columns are contiguous into such whose rows are.

    If so, the rows of the matrices become the last dim but one of the plan.
    """
    cdef Operand* x = &plan.operands[0]
    cdef Operand* y = &plan.operands[1]
    cdef Py_ssize_t size = ITEMSIZE[y.dtype]
    cdef int inner = plan.ndim - 1, d = 0
    if plan.program.n_steps or x.dtype != y.dtype or inner == 0:
        return False
    if y.steps[inner] != size or x.steps[inner] == size or (
            x.steps[inner] == 0 and plan.dims[inner] >= SHORT_ROW):      # filled by one element
        return False
    while d < inner and x.steps[d] != size:
        d += 1
    if d == inner or max(plan.dims[d], plan.dims[inner]) < LEAST_SIDE or plan.dims[d] < FEW:
        return False
    while d < inner - 1:
        plan.dims[d], plan.dims[d + 1] = plan.dims[d + 1], plan.dims[d]
        x.steps[d], x.steps[d + 1] = x.steps[d + 1], x.steps[d]
        y.steps[d], y.steps[d + 1] = y.steps[d + 1], y.steps[d]
        d += 1
    return True


cdef void transpose_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Rows [begin, end) of all matrices, one matrix after the other."""
    cdef Plan* plan = <Plan*>context
    cdef Operand* x = &plan.operands[0]
    cdef Operand* y = &plan.operands[1]
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t count, rest = begin
    cdef int inner = plan.ndim - 1, d
    index[inner] = 0
    for d in range(inner - 1, -1, -1):
        index[d] = rest % plan.dims[d]
        rest //= plan.dims[d]
    while begin < end:
        count = min(plan.dims[inner - 1] - index[inner - 1], end - begin)
        find_transpose(x.dtype)(place(x, plan.ndim, index), x.steps[inner],
                                place(y, plan.ndim, index), y.steps[inner - 1], count,
                                plan.dims[inner])
        index[inner - 1] += count - 1
        advance(plan, index, plan.dims[inner])
        begin += count
