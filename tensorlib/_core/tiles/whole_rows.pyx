"""One loop over whole rows: the short path of tile programs that need no tiles.

The rows of an operand lie in runs of its dtype, or are one element each; where they begin is of no
importance. So nothing is gathered but single elements, for loops that do not take numbers.
"""

from tensorlib._core.base.blocks cimport copy_blocks
from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.tiles.loops cimport (
    Loop, call_loop, find_gather, takes_number,
)
from tensorlib._core.tiles.pieces cimport write_out
from tensorlib._core.tiles.plan cimport BUFFER_BYTES, Operand, Plan, SHORT_ROW, place
from tensorlib._core.tiles.program cimport Step, TileLoops, result_dtype

ctypedef void (*number_loop)(const void*, const void*, void*, Py_ssize_t) noexcept nogil

cdef enum:
    FEW_ROWS = 16            # short ones, of which a call for each few would take most of the time
    LEAST_CALLED = 16        # elements of a row worth a call of a loop with a number


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
        if not copies and not rows_go_on(plan):
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
    cdef int number = number_of_rows(plan)
    if plan.program.n_steps == 0:
        copy_rows(plan, index, rows)
    elif number >= 0 and plan.dims[plan.ndim - 1] >= LEAST_CALLED:
        run_with_numbers(plan, index, rows, number)
    elif 2 * plan.dims[plan.ndim - 1] * plan.program.steps[0].loop.input_size <= BUFFER_BYTES and (
            rows_go_on(plan)):
        run_filled_rows(plan, index, scratch, rows)
    else:
        run_each_row(plan, index, scratch, rows)


cdef void copy_rows(const Plan* plan, const Py_ssize_t* index, Py_ssize_t rows) noexcept nogil:
    """Copies whole rows from `index` on, of the two inner dims."""
    cdef const Operand* x = &plan.operands[0]
    cdef const Operand* y = &plan.operands[1]
    cdef int inner = plan.ndim - 1
    copy_blocks(place(x, plan.ndim, index), x.steps[inner - 1], place(y, plan.ndim, index),
                y.steps[inner - 1], rows, plan.dims[inner] * ITEMSIZE[y.dtype])


cdef bint rows_go_on(const Plan* plan) noexcept nogil:
    """Whether rows of what is not one element each lie behind each other, or are one row."""
    cdef int inner = plan.ndim - 1, i
    cdef const Operand* operand
    for i in range(plan.program.n_inputs + 1):
        operand = &plan.operands[i]
        if operand.steps[inner] and not (
                operand.steps[inner - 1] == plan.dims[inner] * operand.steps[inner]
                or operand.steps[inner - 1] == 0 and i < plan.program.n_inputs):
            return False
    return True


cdef int number_of_rows(const Plan* plan) noexcept nogil:
    """The place of the input that is one element for a row, of a loop that takes a number; else -1.
    """
    cdef const Step* step = &plan.program.steps[0]
    cdef int inner = plan.ndim - 1, k
    if plan.program.n_steps and step.loop.arity == 2:
        for k in range(2):
            if (takes_number(&step.loop, k) and plan.operands[step.inputs[k]].steps[inner] == 0
                    and plan.operands[step.inputs[1 - k]].steps[inner]):
                return k
    return -1


cdef void run_filled_rows(const Plan* plan, const Py_ssize_t* index, char* scratch,
                          Py_ssize_t rows) noexcept nogil:
    """Runs the loop on several rows at once: those of one element each, and one row that is there
    for all (a bias), are written out."""
    # one call per row of 256 float32 takes half as long again
    cdef const Step* step = &plan.program.steps[0]
    cdef const Loop* loop = &step.loop
    cdef const Operand* operand
    cdef int inner = plan.ndim - 1, k
    cdef char* inputs[3]
    cdef char* sources[3]
    cdef char* output = place(&plan.operands[plan.program.n_inputs], plan.ndim, index)
    cdef Py_ssize_t row = plan.dims[inner], most = BUFFER_BYTES // (row * loop.input_size)
    cdef Py_ssize_t count
    cdef bint begins = True
    for k in range(loop.arity):
        sources[k] = place(&plan.operands[step.inputs[k]], plan.ndim, index)
    while rows > 0:
        count = min(rows, most)
        for k in range(loop.arity):
            operand = &plan.operands[step.inputs[k]]
            inputs[k] = sources[k]
            sources[k] += count * operand.steps[inner - 1]
            if operand.steps[inner] and operand.steps[inner - 1]:
                continue
            if begins or operand.steps[inner - 1]:
                write_out(inputs[k], operand.steps[inner - 1], operand.steps[inner], operand.dtype,
                          scratch + step.inputs[k] * BUFFER_BYTES, row, count)
            inputs[k] = scratch + step.inputs[k] * BUFFER_BYTES
        call_loop(loop, inputs, output, count * row)
        output += count * plan.operands[plan.program.n_inputs].steps[inner - 1]
        rows -= count
        begins = False


cdef void run_with_numbers(const Plan* plan, const Py_ssize_t* index, Py_ssize_t rows,
                           int number) noexcept nogil:
    """The loop for each row, whose input `number` is one element."""
    cdef const Step* step = &plan.program.steps[0]
    cdef const Operand* x = &plan.operands[step.inputs[1 - number]]
    cdef const Operand* column = &plan.operands[step.inputs[number]]
    cdef const Operand* y = &plan.operands[plan.program.n_inputs]
    cdef int inner = plan.ndim - 1
    cdef number_loop run = <number_loop>step.loop.with_number
    cdef char* row = place(x, plan.ndim, index)
    cdef char* element = place(column, plan.ndim, index)
    cdef char* output = place(y, plan.ndim, index)
    cdef Py_ssize_t r
    for r in range(rows):                # of 16 elements each: nothing else may be done here
        run(row, element, output, plan.dims[inner])
        row += x.steps[inner - 1]
        element += column.steps[inner - 1]
        output += y.steps[inner - 1]


cdef void run_each_row(const Plan* plan, const Py_ssize_t* index, char* scratch,
                       Py_ssize_t rows) noexcept nogil:
    """Runs the loop on whole rows from `index` on, of the two inner dims.

    This is the sum with a bias or a column: for rows of 256 float32 what a tile costs beside its
    arithmetic was two thirds of the time.
    """
    cdef const Step* step = &plan.program.steps[0]
    cdef const Loop* loop = &step.loop
    cdef const Operand* operand
    cdef int inner = plan.ndim - 1, runs = 0, k
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
    if runs < loop.arity:
        piece = min(row, plan.tile)
    for r in range(rows):
        for k in range(loop.arity):
            operand = &plan.operands[step.inputs[k]]
            inputs[k] = sources[k]
            if moves[k] == 0:
                inputs[k] = scratch + step.inputs[k] * BUFFER_BYTES      # as `fetch` has it
                if r == 0 or operand.steps[inner - 1]:
                    find_gather(operand.dtype)(sources[k], 0, inputs[k], piece)
            sources[k] += operand.steps[inner - 1]
        done = 0
        while done < row:
            count = min(piece, row - done)
            call_loop(loop, inputs, output + done * loop.output_size, count)
            done += count
            for k in range(loop.arity):
                inputs[k] += count * moves[k]
        output += plan.operands[plan.program.n_inputs].steps[inner - 1]
