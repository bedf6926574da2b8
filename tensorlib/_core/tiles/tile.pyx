"""The executor of element-wise work: walks any shapes and strides and runs contiguous loops.

A program is a list of loops. The walker cuts the output into tiles that stay in the L1 cache; for
each tile it gathers (and casts) what is not contiguous, runs the loops, and scatters the result.
So casting, broadcasting, strides and threads are dealt with here and nowhere else, and a loop sees
one contiguous run.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport BOOL, FLOAT64, INT64, ITEMSIZE, dtype_object
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.loops cimport (
    Loop, call_loop, find_cast, find_gather, find_loop, find_scatter, find_transpose, loop_id,
)
from tensorlib._core.tiles.plan cimport (
    MAX_CONSTANTS, MAX_INPUTS, MAX_SLOTS, MAX_STEPS, Operand, Program, Step, Walk, advance, place,
    plan, result_dtype,
)
from tensorlib._core.tiles.rows cimport SHORT_ROW, TILE, goes_by_rows, run_whole_rows

cdef enum:
    ROWS = 16                # of a transposition in one chunk, at least


cdef class TileProgram:
    """Loops to run in order on each tile, compiled for a dtype when first used.

    `steps` holds (loop name, input slots); slots count the inputs, then the constants, then the
    steps. With no steps the program copies and casts its input.
    """

    def __cinit__(self, int n_inputs, steps, constants=(), boolean_inputs=()):
        if n_inputs > MAX_INPUTS or len(constants) > MAX_CONSTANTS or len(steps) > MAX_STEPS:
            raise ValueError(f"TileProgram: too long: {steps}")
        self.n_inputs = n_inputs
        self.steps = tuple(steps)
        self.constants = tuple(constants)
        self.boolean_inputs = tuple(boolean_inputs)

    cdef const Program* at(self, int dtype) except NULL:
        """The program for inputs of `dtype`. Raises RuntimeError where a loop is missing."""
        if not self.ready[dtype]:
            self.compile(dtype)
        return &self.compiled[dtype]

    cdef int compile(self, int dtype) except -1:
        cdef Program* program = &self.compiled[dtype]
        cdef Loop* loop
        cdef int i, slot, n_slots = self.n_inputs + len(self.constants)
        program.n_inputs = self.n_inputs
        program.n_constants = len(self.constants)
        program.n_steps = len(self.steps)
        for i in range(n_slots):
            program.dtypes[i] = BOOL if i in self.boolean_inputs else dtype
        for i in range(program.n_constants):
            program.constants[i] = self.constants[i]
        for i, (name, slots) in enumerate(self.steps):
            loop = find_loop(loop_id(name), program.dtypes[slots[-1]])
            if loop.run == NULL:
                raise RuntimeError(f"{name}: not implemented for {dtype_object(dtype)}")
            program.steps[i].loop = loop[0]
            for slot in range(len(slots)):
                program.steps[i].inputs[slot] = slots[slot]
            program.dtypes[n_slots + i] = loop.result
        self.ready[dtype] = True
        return 0


# ---- the walk ------------------------------------------------------------------------------------

cdef int run_program(const Program* program, PyObject** inputs, Tensor out) except -1:
    """out := program(inputs), each input broadcast to the shape of `out`.

    An input either lies exactly where `out` lies or does not overlap it.
    """
    cdef Walk walk
    cdef Py_ssize_t numel = out.numel_
    if numel == 0:
        return 0
    walk.program = program
    plan(&walk, inputs, out)
    if numel < RELEASE_GIL:
        run_range(&walk, 0, numel)
    elif is_transposition(&walk):
        with nogil:
            parallel_for(run_rows, &walk, walk.dims[0], max(GRAIN // walk.dims[1], ROWS))
    else:
        with nogil:
            parallel_for(run_range, &walk, numel, GRAIN)
    return 0


cdef bint is_transposition(const Walk* walk) noexcept:
    """A copy of a matrix whose columns are contiguous to one whose rows are."""
    cdef Py_ssize_t size = ITEMSIZE[walk.operands[1].dtype]
    return (walk.program.n_steps == 0 and walk.ndim == 2
            and walk.operands[0].dtype == walk.operands[1].dtype
            and walk.operands[0].steps[0] == size and walk.operands[1].steps[1] == size)


cdef void run_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Rows [begin, end) of a transposition."""
    cdef Walk* walk = <Walk*>context
    cdef Operand* x = &walk.operands[0]
    cdef Operand* y = &walk.operands[1]
    find_transpose(x.dtype)(x.data + begin * x.steps[0], x.steps[1], y.data + begin * y.steps[0],
                            y.steps[0], end - begin, walk.dims[1])


cdef void run_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Runs the elements [begin, end) of the walk's order."""
    cdef Walk* walk = <Walk*>context
    cdef char scratch[(MAX_SLOTS + 2) * TILE * 8]
    cdef Py_ssize_t filled[MAX_INPUTS]
    cdef char* pointers[MAX_INPUTS + 1]
    cdef Py_ssize_t steps[MAX_INPUTS + 1]
    cdef Py_ssize_t index[MAX_NDIM]
    cdef int ndim = walk.ndim, inner = walk.ndim - 1, n = walk.program.n_inputs, d, i
    cdef Py_ssize_t row = walk.dims[inner], room, count, rest
    cdef bint direct = needs_no_tiles(walk), by_rows = goes_by_rows(walk)
    for i in range(n):
        filled[i] = 0
    for i in range(walk.program.n_constants):
        splat(walk.program.constants[i], walk.program.dtypes[n + i], scratch + (n + i) * TILE * 8,
              min(end - begin, <Py_ssize_t>TILE))
    rest = begin
    for d in range(ndim - 1, -1, -1):
        index[d] = rest % walk.dims[d]
        rest //= walk.dims[d]
    while begin < end:
        if by_rows and index[inner] == 0 and end - begin >= row:
            count = min(walk.dims[inner - 1] - index[inner - 1], (end - begin) // row)
            run_whole_rows(walk, index, scratch, count)
            index[inner - 1] += count - 1
            advance(walk, index, row)
            count *= row
        elif row >= SHORT_ROW or ndim == 1:
            room = row - index[inner]
            count = min(room, end - begin)
            if not direct:
                count = min(count, TILE)
            for i in range(n + 1):
                pointers[i] = place(&walk.operands[i], ndim, index)
                steps[i] = walk.operands[i].steps[inner]
            run_tile(walk, pointers, steps, filled, scratch, count)
            advance(walk, index, count)
        else:
            count = min(<Py_ssize_t>TILE, end - begin)
            if by_rows:                          # the next row is whole again
                count = min(count, row - index[inner])
            run_short_rows(walk, index, begin, filled, scratch, count)
        begin += count


cdef bint needs_no_tiles(const Walk* walk) noexcept nogil:
    """One loop (or a copy) over operands that it can read and write where they are."""
    cdef const Program* program = walk.program
    cdef int i, inner = walk.ndim - 1
    if program.n_steps > 1 or program.n_constants:       # constants are spread over tiles
        return False
    for i in range(program.n_inputs):
        if (walk.operands[i].dtype != program.dtypes[i]
                or walk.operands[i].steps[inner] != ITEMSIZE[walk.operands[i].dtype]):
            return False
    return (walk.operands[program.n_inputs].dtype == result_dtype(program)
            and walk.operands[program.n_inputs].steps[inner] == ITEMSIZE[result_dtype(program)])


cdef void run_short_rows(Walk* walk, Py_ssize_t* index, Py_ssize_t begin, Py_ssize_t* filled,
                         char* scratch, Py_ssize_t count) noexcept nogil:
    """One tile of several rows: gathers each operand's pieces, runs, scatters the pieces back."""
    cdef int n = walk.program.n_inputs, inner = walk.ndim - 1, i
    cdef char* pointers[MAX_INPUTS + 1]
    cdef Py_ssize_t steps[MAX_INPUTS + 1]
    cdef Py_ssize_t at[MAX_NDIM]
    cdef char* pieces
    cdef Py_ssize_t size
    cdef char gathered[(MAX_INPUTS + 1) * TILE * 8]
    cdef Operand* operand
    for i in range(n + 1):
        operand = &walk.operands[i]
        size = ITEMSIZE[operand.dtype]
        pointers[i] = operand.data + (begin * size if operand.linear else 0)
        steps[i] = 0 if operand.scalar else size
        if operand.linear or operand.scalar:
            continue
        pieces = gathered + i * TILE * 8
        pointers[i] = pieces
        if i < n:
            move_rows(walk, operand, index, at, pieces, count, False)
    run_tile(walk, pointers, steps, filled, scratch, count)
    operand = &walk.operands[n]
    if not operand.linear:
        move_rows(walk, operand, index, at, pointers[n], count, True)
    while count:
        size = min(count, walk.dims[inner] - index[inner])
        advance(walk, index, size)
        count -= size


cdef void move_rows(const Walk* walk, const Operand* operand, const Py_ssize_t* index,
                    Py_ssize_t* at, char* pieces, Py_ssize_t count, bint back) noexcept nogil:
    """Gathers `count` elements from `index` on into `pieces`, or scatters them back."""
    cdef int inner = walk.ndim - 1, d
    cdef Py_ssize_t size = ITEMSIZE[operand.dtype], length
    for d in range(walk.ndim):
        at[d] = index[d]
    if walk.ndim == 2 and operand.steps[0] == 0 and not back:
        repeat_row(operand, at[1], walk.dims[1], pieces, count)
        return
    while count:
        length = min(count, walk.dims[inner] - at[inner])
        if back:
            find_scatter(operand.dtype)(
                pieces, place(operand, walk.ndim, at), operand.steps[inner], length)
        else:
            find_gather(operand.dtype)(
                place(operand, walk.ndim, at), operand.steps[inner], pieces, length)
        pieces += length * size
        count -= length
        advance(walk, at, length)


cdef void repeat_row(const Operand* operand, Py_ssize_t first, Py_ssize_t row, char* pieces,
                     Py_ssize_t count) noexcept nogil:
    """One row over and over, from its element `first` on, by copies that double in length."""
    cdef Py_ssize_t size = ITEMSIZE[operand.dtype], done = min(row - first, count), length
    find_gather(operand.dtype)(
        operand.data + first * operand.steps[1], operand.steps[1], pieces, done)
    if done < count:
        length = min(first, count - done)
        find_gather(operand.dtype)(operand.data, operand.steps[1], pieces + done * size, length)
        done += length
    while done < count:                      # what is there is a whole number of rows
        length = min(done, count - done)
        memcpy(pieces + done * size, pieces, length * size)
        done += length


cdef void run_tile(const Walk* walk, char** pointers, const Py_ssize_t* steps, Py_ssize_t* filled,
                   char* scratch, Py_ssize_t n) noexcept nogil:
    """Runs the program on n elements; operand i starts at pointers[i] and advances by steps[i]."""
    cdef const Program* program = walk.program
    cdef const Step* step
    cdef char* slots[MAX_SLOTS]
    cdef char* inputs[3]
    cdef char* result
    cdef int i, k, first = program.n_inputs + program.n_constants
    cdef int dtype = result_dtype(program)
    cdef const Operand* out = &walk.operands[program.n_inputs]
    cdef char* target = pointers[program.n_inputs]
    cdef Py_ssize_t out_step = steps[program.n_inputs]
    cdef bint direct = out.dtype == dtype and out_step == ITEMSIZE[dtype]
    if program.n_steps == 0 and direct:
        convert(walk.operands[0].dtype, dtype, pointers[0], steps[0], target, scratch, n)
        return
    for i in range(program.n_inputs):
        slots[i] = fetch(walk, i, pointers[i], steps[i], filled, scratch, n)
    for i in range(program.n_constants):
        slots[program.n_inputs + i] = scratch + (program.n_inputs + i) * TILE * 8
    if program.n_steps == 0:
        result = slots[0]
    else:
        for i in range(program.n_steps):
            step = &program.steps[i]
            for k in range(step.loop.arity):
                inputs[k] = slots[step.inputs[k]]
            slots[first + i] = (
                target if direct and i == program.n_steps - 1
                else scratch + (first + i) * TILE * 8)
            call_loop(&step.loop, inputs, slots[first + i], n)
        result = slots[first + program.n_steps - 1]
    if direct:
        return
    if out.dtype != dtype:
        if out_step == ITEMSIZE[out.dtype]:
            find_cast(dtype, out.dtype)(result, target, n)
            return
        find_cast(dtype, out.dtype)(result, scratch + MAX_SLOTS * TILE * 8, n)
        result = scratch + MAX_SLOTS * TILE * 8
    find_scatter(out.dtype)(result, target, out_step, n)


cdef char* fetch(const Walk* walk, int i, char* pointer, Py_ssize_t step, Py_ssize_t* filled,
                 char* scratch, Py_ssize_t n) noexcept nogil:
    """The n elements of input i as a contiguous run of the slot's dtype."""
    cdef int have = walk.operands[i].dtype, want = walk.program.dtypes[i]
    cdef char* room = scratch + i * TILE * 8
    if step == ITEMSIZE[have] and have == want:
        return pointer
    if walk.operands[i].scalar:
        if filled[i] >= n:
            return room
        filled[i] = n
    convert(have, want, pointer, step, room, scratch, n)
    return room


cdef void convert(int have, int want, char* pointer, Py_ssize_t step, char* target, char* scratch,
                  Py_ssize_t n) noexcept nogil:
    """target := n elements of dtype `have` at `step` bytes, as a contiguous run of dtype `want`.

    n is at most TILE unless the elements can be copied or cast from where they are.
    """
    cdef char* aside = scratch + (MAX_SLOTS + 1) * TILE * 8
    if have == want:
        find_gather(have)(pointer, step, target, n)
    elif step == ITEMSIZE[have]:
        find_cast(have, want)(pointer, target, n)
    else:
        find_gather(have)(pointer, step, aside, n)
        find_cast(have, want)(aside, target, n)


cdef void splat(double value, int dtype, char* room, Py_ssize_t n) noexcept nogil:
    cdef int64_t whole
    if dtype == INT64:
        whole = <int64_t>value
        find_gather(INT64)(<char*>&whole, 0, room, n)
    elif dtype == FLOAT64:
        find_gather(FLOAT64)(<char*>&value, 0, room, n)
    else:
        find_cast(FLOAT64, dtype)(<char*>&value, room, 1)
        find_gather(dtype)(room, 0, room, n)
