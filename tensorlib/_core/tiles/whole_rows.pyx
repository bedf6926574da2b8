"""One loop over whole rows: the short path of tile programs that need no tiles.

The rows of an operand lie in runs of its dtype, or are one element each; where they begin is of no
importance. So nothing is gathered but single elements, for loops that do not take numbers.
"""

from tensorlib._core.base.blocks cimport copy_blocks
from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.tiles.loops cimport (
    Loop, call_loop, call_with_number, find_gather, takes_number,
)
from tensorlib._core.tiles.plan cimport BUFFER_BYTES, Operand, Plan, SHORT_ROW, WIDE_TILE, place
from tensorlib._core.tiles.program cimport Step, TileLoops, result_dtype

cdef enum:
    FEW_ROWS = 16            # short ones, of which a call for each few would take most of the time


cdef bint goes_by_rows(const Plan* plan) noexcept nogil:
    """One loop over rows that each operand has in one run, or as one element for a row; or a copy
    of such runs."""
    cdef const TileLoops* program = plan.program
    cdef int inner = plan.ndim - 1, n = program.n_inputs, i
    cdef bint copies = program.n_steps == 0
    cdef const Operand* operand
    if program.n_steps > 1 or program.n_constants or inner == 0:
        return False
    if plan.dims[inner] < SHORT_ROW:
        if copies and inner > 1 and plan.dims[inner - 1] < FEW_ROWS:
            return False
        if not copies and not repeats_rows(plan):
            return False
    for i in range(n + 1):
        operand = &plan.operands[i]
        if operand.dtype != (program.dtypes[i] if i < n else result_dtype(program)):
            return False
        if operand.steps[inner] != ITEMSIZE[operand.dtype] and (
                i == n or copies or operand.steps[inner]):
            return False
    return True


cdef void run_whole_rows(const Plan* plan, const Py_ssize_t* index, char* scratch,
                         Py_ssize_t rows) noexcept nogil:
    """Rows from `index` on, of the two inner dims of a plan that goes by rows."""
    if plan.program.n_steps == 0:
        copy_rows(plan, index, rows)
    elif repeats_rows(plan):
        run_repeated_rows(plan, index, scratch, rows)
    else:
        run_each_row(plan, index, scratch, rows)


cdef void copy_rows(const Plan* plan, const Py_ssize_t* index, Py_ssize_t rows) noexcept nogil:
    """Copies whole rows from `index` on, of the two inner dims."""
    cdef const Operand* x = &plan.operands[0]
    cdef const Operand* y = &plan.operands[1]
    cdef int inner = plan.ndim - 1
    copy_blocks(place(x, plan.ndim, index), x.steps[inner - 1], place(y, plan.ndim, index),
                y.steps[inner - 1], rows, plan.dims[inner] * ITEMSIZE[y.dtype])


cdef inline Py_ssize_t widest(const Plan* plan) noexcept nogil:
    """The bytes for an element in a tile of any operand: 8, or 16 where one is complex128."""
    cdef Py_ssize_t size = 8
    cdef int i
    for i in range(plan.program.n_inputs):
        size = max(size, <Py_ssize_t>ITEMSIZE[plan.operands[i].dtype])
    return size


cdef bint repeats_rows(const Plan* plan) noexcept nogil:
    """Whether an operand is one row over and over, and the others go on from row to row."""
    cdef int inner = plan.ndim - 1, n = plan.program.n_inputs, found = 0, i
    cdef const Operand* operand
    if plan.dims[inner] * 2 > WIDE_TILE // widest(plan):
        return False
    for i in range(n + 1):
        operand = &plan.operands[i]
        if operand.steps[inner] and operand.steps[inner - 1] == 0 and i < n:
            found += 1
        elif (operand.steps[inner] == 0
              or operand.steps[inner - 1] != plan.dims[inner] * operand.steps[inner]):
            return False
    return found > 0


cdef void run_repeated_rows(const Plan* plan, const Py_ssize_t* index, char* scratch,
                            Py_ssize_t rows) noexcept nogil:
    """The same where an operand is one row over and over (a bias): on several rows at once."""
    # one call per row of 256 float32 takes half as long again
    cdef const Step* step = &plan.program.steps[0]
    cdef const Operand* operand
    cdef int inner = plan.ndim - 1, k
    cdef char* inputs[3]
    cdef char* output = place(&plan.operands[plan.program.n_inputs], plan.ndim, index)
    cdef Py_ssize_t moves[3]
    cdef Py_ssize_t row = plan.dims[inner], together = min(rows, WIDE_TILE // (widest(plan) * row))
    cdef Py_ssize_t done = 0
    for k in range(step.loop.arity):
        operand = &plan.operands[step.inputs[k]]
        inputs[k] = place(operand, plan.ndim, index)
        moves[k] = operand.steps[inner - 1]
        if moves[k] == 0:
            copy_blocks(inputs[k], 0, scratch + k * WIDE_TILE, row * operand.steps[inner],
                        together, row * operand.steps[inner])
            inputs[k] = scratch + k * WIDE_TILE
    while done < rows:
        together = min(together, rows - done)
        call_loop(&step.loop, inputs, output, together * row)
        for k in range(step.loop.arity):
            inputs[k] += together * moves[k]
        output += together * plan.operands[plan.program.n_inputs].steps[inner - 1]
        done += together


cdef bint rows_go_on(const Plan* plan) noexcept nogil:
    """Whether rows of what is not one element each lie behind each other, or are one row"""
    cdef int inner = plan.ndim - 1, i
    cdef const Operand* operand
    for i in range(plan.program.n_inputs + 1):
        operand = &plan.operands[i]
        if operand.steps[inner] and not (
                operand.steps[inner - 1] == plan.dims[inner] * operand.steps[inner]
                or operand.steps[inner - 1] == 0 and i < plan.program.n_inputs):
            return False
    return True


cdef void run_filled_rows(const Plan* plan, char** sources, char* output, char* scratch,
                          Py_ssize_t rows) noexcept nogil:
    """As `run_each_row`, on several rows at once: those of one element each, and one row that is
    there for all, are written out."""
    cdef const Step* step = &plan.program.steps[0]
    cdef const Loop* loop = &step.loop
    cdef const Operand* operand
    cdef int inner = plan.ndim - 1, k
    cdef char* inputs[3]
    cdef Py_ssize_t row = plan.dims[inner], nbytes, count, r
    cdef bint begins = True
    while rows > 0:
        count = min(rows, BUFFER_BYTES // (row * loop.input_size))
        for k in range(loop.arity):
            operand = &plan.operands[step.inputs[k]]
            nbytes = row * ITEMSIZE[operand.dtype]       # of `where`, one is of bools
            inputs[k] = sources[k]
            if operand.steps[inner] and operand.steps[inner - 1] == 0:
                inputs[k] = scratch + step.inputs[k] * BUFFER_BYTES
                if begins:
                    copy_blocks(sources[k], 0, inputs[k], nbytes, count, nbytes)
            elif operand.steps[inner] == 0:
                inputs[k] = scratch + step.inputs[k] * BUFFER_BYTES
                for r in range(count):
                    find_gather(operand.dtype)(sources[k] + r * operand.steps[inner - 1], 0,
                                               inputs[k] + r * nbytes, row)
            sources[k] += count * operand.steps[inner - 1]
        call_loop(loop, inputs, output, count * row)
        output += count * plan.operands[plan.program.n_inputs].steps[inner - 1]
        rows -= count
        begins = False


cdef void run_each_row(const Plan* plan, const Py_ssize_t* index, char* scratch,
                       Py_ssize_t rows) noexcept nogil:
    """Runs the loop on whole rows from `index` on, of the two inner dims.

    This is the sum with a bias or a column: for rows of 256 float32 what a tile costs beside its
    arithmetic was two thirds of the time.
    """
    cdef const Step* step = &plan.program.steps[0]
    cdef const Loop* loop = &step.loop
    cdef const Operand* operand
    cdef int inner = plan.ndim - 1, number = -1, runs = 0, k
    cdef char* inputs[3]
    cdef char* output = place(&plan.operands[plan.program.n_inputs], plan.ndim, index)
    cdef char* sources[3]
    cdef Py_ssize_t moves[3]
    cdef Py_ssize_t row = plan.dims[inner], piece = row, done, count, r
    for k in range(loop.arity):
        operand = &plan.operands[step.inputs[k]]
        sources[k] = place(operand, plan.ndim, index)
        moves[k] = operand.steps[inner]
        runs += moves[k] != 0
        if moves[k] == 0 and takes_number(loop, k):
            number = k
    if runs < loop.arity and not (number >= 0 and runs == 1):
        piece, number = min(row, plan.tile), -1
        if 2 * row * loop.input_size <= BUFFER_BYTES and rows_go_on(plan):
            run_filled_rows(plan, sources, output, scratch, rows)
            return
    for r in range(rows):
        for k in range(loop.arity):
            operand = &plan.operands[step.inputs[k]]
            inputs[k] = sources[k]
            if moves[k] == 0 and number < 0:
                inputs[k] = scratch + step.inputs[k] * BUFFER_BYTES      # as `fetch` has it
                if r == 0 or operand.steps[inner - 1]:
                    find_gather(operand.dtype)(sources[k], 0, inputs[k], piece)
            sources[k] += operand.steps[inner - 1]
        if number >= 0:
            call_with_number(loop, number, inputs, output, row)
        else:
            done = 0
            while done < row:
                count = min(piece, row - done)
                call_loop(loop, inputs, output + done * loop.output_size, count)
                done += count
                for k in range(loop.arity):
                    inputs[k] += count * moves[k]
        output += plan.operands[plan.program.n_inputs].steps[inner - 1]
