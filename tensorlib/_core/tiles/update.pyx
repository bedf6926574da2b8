"""Updates: formulas of optimisers for one element, compiled to loops that run tile by tile.

An `Update` is a list of loops, like a tile program, but with several results: the new parameter and
the new states, which overwrite the old ones. For each tile it gathers operands that are not
contiguous or have another dtype, runs the loops, and writes the results back, so each element is
read and written once.
"""

from libc.string cimport memcpy, memset

from tensorlib._core.base.dtypes cimport FLOAT64, ITEMSIZE
from tensorlib._core.base.epochs cimport work_begins, work_ends
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.storage cimport LINE
from tensorlib._core.tiles.loops cimport (
    call_loop, call_with_number, find_cast, find_gather, find_loop, find_scatter, loop_id,
    takes_number,
)
from tensorlib._core.tiles.plan cimport Operand, Plan, advance, place
from tensorlib._core.tiles.program cimport TileLoops
from tensorlib._core.tiles.tile cimport convert

from tensorlib import _kernels

cdef enum:
    MAX_BUFFERS = 16         # tiles beside the operands: repeated numbers, results between steps
    TILE = 512               # elements
    GRAIN = 16384            # elements of one parallel chunk
    RELEASE_GIL = 16384      # elements from which on the GIL is released

cdef dict FUSED = {(name, dtype, len(operands)): address
                   for name, operands, dtype, address in _kernels.load("updates").table()}


cdef class Update:
    """An optimiser's formula for one element, compiled to loops.

    `steps` holds (loop name, values); `results` the value that each operand becomes, its own where
    it stays. `numbers` are names of what a call gives, then the formula's constants. `fused` names
    a loop that does the whole update at once.
    """

    def __cinit__(self, str name, states, numbers, steps, results, bint counts=False,
                  each=(), fused=None):
        self.name, self.counts, self.each, self.fused = name, counts, tuple(each), fused
        self.states, self.numbers = tuple(states), tuple(numbers)
        self.steps, self.results = tuple(steps), tuple(results)
        if (len(self.states) + 2 > MAX_OPERANDS or len(self.numbers) > MAX_NUMBERS
                or len(self.steps) > MAX_STEPS):
            raise ValueError(f"{name}: the update is too long: {len(self.states)} states, "
                             f"{len(self.numbers)} numbers, {len(self.steps)} steps")
        check_values(self)
        memset(&self.frame, 0, sizeof(TileLoops))
        self.frame.n_inputs = len(self.states) + 1

    cdef const Compiled* at(self, int dtype) except NULL:
        cdef int which = dtype == FLOAT64
        if not self.ready[which]:
            compile(self, &self.compiled[which], dtype)
            self.ready[which] = True
        return &self.compiled[which]


cdef int check_values(Update self) except -1:
    """Raises unless the values of every step and result exist."""
    cdef int operands = len(self.states) + 2, i, value, known
    if self.fused is not None and (self.fused, "float32", operands) not in FUSED:
        raise ValueError(f"{self.name}: no loop {self.fused!r} of {operands} operands")
    known = operands + len(self.numbers)
    for i, (loop, values) in enumerate(self.steps):
        for value in values:
            if not 0 <= value < known + i:
                raise ValueError(f"{self.name}: step {i} takes value {value} before it is there")
    if len(self.results) != operands:
        raise ValueError(f"{self.name}: {len(self.results)} results for {operands} operands")
    if self.fused is not None:
        return 0
    written = [value for i, value in enumerate(self.results) if value != i]
    if self.results[0] != 0 or len(set(written)) != len(written):
        raise ValueError(f"{self.name}: the gradient is written, or one value goes to two places")
    for value in written:
        if not known <= value < known + len(self.steps):
            raise ValueError(f"{self.name}: {value} is the result of no step")
    return 0


# ---- compiling -----------------------------------------------------------------------------------

cdef int compile(Update self, Compiled* c, int dtype) except -1:
    """Finds the loops, and a buffer for each result: in place once the old value is not needed.
    """
    cdef int first = self.frame.n_inputs + 1 + len(self.numbers), n_steps = len(self.steps)
    cdef int last_use[MAX_VALUES]
    cdef int dtypes[MAX_VALUES]
    cdef int buffers[MAX_VALUES]
    cdef bint taken[MAX_BUFFERS]
    cdef int i, k, value
    cdef size_t address
    memset(c, 0, sizeof(Compiled))
    memset(taken, 0, sizeof(taken))
    c.dtype, c.n_operands, c.n_numbers = dtype, self.frame.n_inputs + 1, len(self.numbers)
    c.n_steps = n_steps
    for i in range(MAX_VALUES):
        last_use[i], dtypes[i], buffers[i] = -1, dtype, -1
    for i in range(MAX_NUMBERS):
        c.number_buffers[i] = -1
    for i in range(c.n_operands):
        c.results[i] = -1
        c.written[i] = self.results[i] != i
    if self.fused is not None:
        address = FUSED[self.fused, "float64" if dtype == FLOAT64 else "float32", c.n_operands]
        c.fused = <fused_loop>address
        return 0
    for i in range(n_steps):
        for value in self.steps[i][1]:
            last_use[value] = i
    for i in range(c.n_operands):
        if c.written[i]:
            last_use[<int>self.results[i]] = n_steps
    for i in range(n_steps):             # a number keeps its tile, so these come first
        name, values = self.steps[i]
        set_step(c, i, name, values, dtypes, taken)
        dtypes[first + i] = c.steps[i].loop.result
    for i in range(n_steps):
        values = self.steps[i][1]
        for value in values:             # a result may take the place of an operand of its size
            if last_use[value] == i and buffers[value] >= 0 and dtypes[value] == dtypes[first + i]:
                taken[buffers[value]] = False
        c.steps[i].operand = -1
        for k in range(c.n_operands):
            if self.results[k] == first + i:
                if last_use[k] <= i:
                    c.steps[i].operand = k
                else:
                    c.results[k] = first + i
        if c.steps[i].operand < 0:
            buffers[first + i] = c.steps[i].buffer = free_buffer(taken)
        for value in values:
            if last_use[value] == i and buffers[value] >= 0:
                taken[buffers[value]] = buffers[value] == buffers[first + i]
    return 0


cdef int set_step(Compiled* c, int i, str name, tuple values, const int* dtypes,
                  bint* taken) except -1:
    """Finds the loop of step i, and a tile for each number that it does not take as one."""
    cdef UpdateStep* step = &c.steps[i]
    cdef int k, which, whole = 0
    step.loop = find_loop(loop_id(name), dtypes[values[-1]])[0]
    if step.loop.run == NULL or step.loop.arity != len(values):
        raise RuntimeError(f"{name}: there is no such loop of {len(values)} arguments")
    step.number = -1
    for k in range(step.loop.arity):
        step.inputs[k] = values[k]
        whole += not is_number(c, values[k])
    for k in range(step.loop.arity):
        if not is_number(c, values[k]):
            continue
        if step.loop.arity == 2 and whole == 1 and takes_number(&step.loop, k):
            step.number = k
            continue
        which = values[k] - c.n_operands
        if c.number_buffers[which] < 0:
            c.number_buffers[which] = free_buffer(taken)
    return 0


cdef bint is_number(const Compiled* c, int value) noexcept:
    return c.n_operands <= value < c.n_operands + c.n_numbers


cdef int free_buffer(bint* taken) except -1:
    cdef int buffer
    for buffer in range(MAX_BUFFERS):
        if not taken[buffer]:
            taken[buffer] = True
            return buffer
    raise ValueError("an update needs too many values at a time")


# ---- running -------------------------------------------------------------------------------------

cdef int run_jobs(work* jobs, Py_ssize_t n) except -1:
    """Runs an update over parameters of any layout, or its one loop over runs of elements."""
    cdef Py_ssize_t row, total = 0
    cdef int epoch
    for row in range(n):
        total += jobs[row].numel
    if total < RELEASE_GIL:
        run_all(jobs, n)
        return 0
    epoch = work_begins()
    with nogil:
        run_all(jobs, n)
    return work_ends(epoch)


cdef void run_all(work* jobs, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t row
    for row in range(n):
        if work is Job:
            parallel_for(run_part, &jobs[row], jobs[row].numel, GRAIN)
        else:
            parallel_for(run_whole_part, &jobs[row], jobs[row].numel, GRAIN)


cdef void run_whole_part(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Whole* job = <Whole*>context
    cdef char* slots[MAX_OPERANDS]
    cdef int i
    for i in range(job.program.n_operands):
        slots[i] = job.operands[i] + begin * ITEMSIZE[job.program.dtype]
    job.program.fused(NULL, slots, job.numbers, end - begin)


cdef void run_part(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Elements [begin, end) of one parameter, in the order of the plan."""
    cdef Job* job = <Job*>context
    cdef const Compiled* c = job.program
    cdef Plan* plan = &job.plan
    cdef char buffer[(MAX_OPERANDS + MAX_BUFFERS + 1) * TILE * 8 + LINE]
    cdef char* scratch = buffer + (LINE - <size_t>buffer % LINE)
    cdef float singles[MAX_NUMBERS]
    cdef char* slots[MAX_VALUES]
    cdef char* pointers[MAX_OPERANDS]
    cdef bint in_place[MAX_OPERANDS]
    cdef Py_ssize_t index[MAX_NDIM]
    cdef int inner = plan.ndim - 1, d, i
    cdef Py_ssize_t rest = begin, count, longest = end - begin
    cdef char* aside = scratch + (MAX_OPERANDS + MAX_BUFFERS) * TILE * 8
    cdef bint whole = c.fused != NULL
    cdef Operand* operand
    for i in range(c.n_numbers):
        singles[i] = <float>job.numbers[i]
        slots[c.n_operands + i] = (<char*>&job.numbers[i] if c.dtype == FLOAT64
                                   else <char*>&singles[i])
        if c.number_buffers[i] >= 0:
            find_gather(c.dtype)(slots[c.n_operands + i], 0,
                                 scratch + (MAX_OPERANDS + c.number_buffers[i]) * TILE * 8, TILE)
    for i in range(c.n_operands):
        operand = &plan.operands[i]
        in_place[i] = operand.dtype == c.dtype and operand.steps[inner] == ITEMSIZE[c.dtype]
        whole = whole and in_place[i]
    if not whole:
        longest = TILE
    for d in range(plan.ndim - 1, -1, -1):
        index[d] = rest % plan.dims[d]
        rest //= plan.dims[d]
    while begin < end:
        count = min(min(plan.dims[inner] - index[inner], end - begin), longest)
        for i in range(c.n_operands):
            operand = &plan.operands[i]
            pointers[i] = slots[i] = place(operand, plan.ndim, index)
            if not in_place[i]:
                slots[i] = scratch + i * TILE * 8
                convert(operand.dtype, c.dtype, pointers[i], operand.steps[inner], slots[i], aside,
                        count)
        if c.fused != NULL:
            c.fused(NULL, slots, job.numbers, count)
        else:
            run_steps(c, slots, scratch + MAX_OPERANDS * TILE * 8, count)
        for i in range(c.n_operands):
            if c.written[i] and not in_place[i]:
                operand = &plan.operands[i]
                put_back(operand, pointers[i], operand.steps[inner], c.dtype, slots[i], aside,
                         count)
        advance(plan, index, count)
        begin += count


cdef void run_steps(const Compiled* c, char** slots, char* buffers, Py_ssize_t n) noexcept nogil:
    """Runs the loops on one tile; `slots` point at its operands and at the numbers."""
    cdef const UpdateStep* step
    cdef char* inputs[MAX_ARITY]
    cdef int i, k, value, number, first = c.n_operands + c.n_numbers
    for i in range(c.n_steps):
        step = &c.steps[i]
        slots[first + i] = (slots[step.operand] if step.operand >= 0
                            else buffers + step.buffer * TILE * 8)
        for k in range(step.loop.arity):
            value = step.inputs[k]
            number = value - c.n_operands
            inputs[k] = slots[value]
            if 0 <= number < c.n_numbers and k != step.number:
                inputs[k] = buffers + c.number_buffers[number] * TILE * 8
        if step.number >= 0:
            call_with_number(&step.loop, step.number, inputs, slots[first + i], n)
        else:
            call_loop(&step.loop, inputs, slots[first + i], n)
    for i in range(c.n_operands):
        if c.results[i] >= 0:
            memcpy(slots[i], slots[c.results[i]], n * ITEMSIZE[c.dtype])


cdef void put_back(const Operand* operand, char* pointer, Py_ssize_t step, int dtype, char* buffer,
                   char* aside, Py_ssize_t n) noexcept nogil:
    """An operand's n elements := buffer"""
    if operand.dtype == dtype:
        find_scatter(dtype)(buffer, pointer, step, n)
    elif step == ITEMSIZE[operand.dtype]:
        find_cast(dtype, operand.dtype)(buffer, pointer, n)
    else:
        find_cast(dtype, operand.dtype)(buffer, aside, n)
        find_scatter(operand.dtype)(aside, pointer, step, n)
