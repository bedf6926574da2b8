"""One loop over whole rows: the short path of tile programs that need no tiles.

The rows of an operand lie in runs of its dtype, or are one element each; where they begin is of no
importance. So nothing is gathered but single elements, for loops that do not take numbers.
"""

from tensorlib._core.base.blocks cimport copy_blocks
from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.storage cimport LINE
from tensorlib._core.tiles.loops cimport (
    Loop, MAX_ARITY, call_loop, call_with_number, find_gather, loop1, loop2, loop3, loop4,
    loop_mixed, numbered, taken_runs, takes_number,
)
from tensorlib._core.tiles.pieces cimport write_out
from tensorlib._core.tiles.plan cimport BUFFER_BYTES, Operand, Plan, SHORT_ROW, place
from tensorlib._core.tiles.program cimport Step, TileLoops, result_dtype

cdef enum:
    FEW_ROWS = 16            # short ones, of which a call for each few would take most of the time
    LEAST_CALLED = 16        # elements of a row worth a call of a loop with a number


cdef bint goes_by_rows(const Plan* plan) noexcept nogil:
    """One loop over rows that each operand has in one run, or as one element for a row; or a copy
    of such runs, or of one element."""
    cdef const TileLoops* program = plan.program
    cdef int inner = plan.ndim - 1, n = program.n_inputs, i
    cdef bint copies = program.n_steps == 0
    cdef const Operand* operand
    if program.n_steps > 1 or program.n_constants or inner == 0:
        return False
    if plan.dims[inner] < SHORT_ROW and not worth_a_call(plan):
        if copies and inner > 1 and plan.dims[inner - 1] < FEW_ROWS:
            return False
        if not copies and not rows_go_on(plan):
            return False
    for i in range(n + 1):
        operand = &plan.operands[i]
        if operand.dtype != (program.dtypes[i] if i < n else result_dtype(program)):
            return False
        if copies and operand.scalar and plan.dims[inner] * ITEMSIZE[operand.dtype] <= BUFFER_BYTES:
            continue
        if operand.steps[inner] != ITEMSIZE[operand.dtype] and (
                i == n or copies or operand.steps[inner]):
            return False
    return True


cdef bint worth_a_call(const Plan* plan) noexcept nogil:
    """Whether rows are runs of every operand that fill a register, for a loop that is cheap, but of
    one that it takes as a number."""
    cdef const TileLoops* program = plan.program
    cdef const Loop* loop = &program.steps[0].loop
    cdef int inner = plan.ndim - 1, number = number_of_rows(plan), i
    if program.n_steps == 0 or loop.cost > 1 or loop.strided or (
            plan.dims[inner] * loop.input_size < LINE):
        return False
    for i in range(program.n_inputs + 1):    # of one size: else the last of a row are one by one
        if number >= 0 and i == program.steps[0].inputs[number]:
            continue
        if plan.operands[i].steps[inner] == 0 or ITEMSIZE[plan.operands[i].dtype] != (
                loop.input_size):
            return False
    return True


cdef void run_whole_rows(const Plan* plan, const Py_ssize_t* index, char* scratch,
                         Py_ssize_t rows) noexcept nogil:
    """Rows from `index` on, of the two inner dims of a plan that goes by rows."""
    cdef int number = number_of_rows(plan)
    if plan.program.n_steps == 0:
        copy_rows(plan, index, scratch, rows)
    elif number >= 0 and plan.dims[plan.ndim - 1] >= LEAST_CALLED:
        run_with_numbers(plan, index, rows, number)
    elif runs_of_three(plan):
        run_mixed_rows(plan, index, rows, runs_of_three(plan))
    elif 2 * plan.dims[plan.ndim - 1] * plan.program.steps[0].loop.input_size <= BUFFER_BYTES and (
            rows_go_on(plan)):
        run_filled_rows(plan, index, scratch, rows)
    else:
        run_each_row(plan, index, scratch, rows)


cdef void copy_rows(const Plan* plan, const Py_ssize_t* index, char* scratch,
                    Py_ssize_t rows) noexcept nogil:
    """Copies whole rows from `index` on, of the two inner dims; or one element to all of them."""
    cdef const Operand* x = &plan.operands[0]
    cdef const Operand* y = &plan.operands[1]
    cdef int inner = plan.ndim - 1
    cdef char* source = place(x, plan.ndim, index)
    if x.scalar:
        find_gather(x.dtype)(source, 0, scratch, plan.dims[inner])
        source = scratch
    copy_blocks(source, x.steps[inner - 1], place(y, plan.ndim, index), y.steps[inner - 1], rows,
                plan.dims[inner] * ITEMSIZE[y.dtype])


cdef bint rows_go_on(const Plan* plan) noexcept nogil:
    """Whether rows of what is not one element each lie one after the other, or are one row."""
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


cdef int runs_of_three(const Plan* plan) noexcept nogil:
    """Which inputs of a mixed loop are runs, those of long rows; 0 where it can't be called."""
    cdef const Step* step = &plan.program.steps[0]
    cdef int inner = plan.ndim - 1, runs = 0, k
    if step.loop.mixed == NULL or plan.dims[inner] < LEAST_CALLED:
        return 0
    for k in range(3):
        runs |= (plan.operands[step.inputs[k]].steps[inner] != 0) << k
    return taken_runs(&step.loop, runs)


cdef void run_mixed_rows(const Plan* plan, const Py_ssize_t* index, Py_ssize_t rows,
                         int runs) noexcept nogil:
    """The loop for each row, of which some inputs are one element."""
    cdef const Step* step = &plan.program.steps[0]
    cdef const Operand* out = &plan.operands[plan.program.n_inputs]
    cdef const Operand* operand
    cdef int inner = plan.ndim - 1, k
    cdef char* x[3]
    cdef Py_ssize_t downs[3]
    cdef char* y = place(out, plan.ndim, index)
    for k in range(3):
        operand = &plan.operands[step.inputs[k]]
        x[k], downs[k] = place(operand, plan.ndim, index), operand.steps[inner - 1]
    for _ in range(rows):
        (<loop_mixed>step.loop.mixed)(NULL, x[0], x[1], x[2], y, plan.dims[inner], runs)
        for k in range(3):
            x[k] += downs[k]
        y += out.steps[inner - 1]


cdef void run_filled_rows(const Plan* plan, const Py_ssize_t* index, char* scratch,
                          Py_ssize_t rows) noexcept nogil:
    """Runs the loop on several rows at once: those of one element each, and one row that is there
    for all (a bias), are written out."""
    # one call per row of 256 float32 takes half as long again
    cdef const Step* step = &plan.program.steps[0]
    cdef const Loop* loop = &step.loop
    cdef const Operand* operand
    cdef int inner = plan.ndim - 1, k
    cdef char* inputs[MAX_ARITY]
    cdef char* sources[MAX_ARITY]
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
    cdef const Operand* y = &plan.operands[plan.program.n_inputs]
    cdef const Operand* operand
    cdef int inner = plan.ndim - 1, k
    cdef char* sources[2]
    cdef Py_ssize_t downs[2]
    for k in range(2):
        operand = &plan.operands[step.inputs[k]]
        sources[k], downs[k] = place(operand, plan.ndim, index), operand.steps[inner - 1]
    call_for_rows(&step.loop, number, sources, downs, place(y, plan.ndim, index),
                  y.steps[inner - 1], rows, plan.dims[inner])


cdef void run_each_row(const Plan* plan, const Py_ssize_t* index, char* scratch,
                       Py_ssize_t rows) noexcept nogil:
    """Runs the loop on whole rows from `index` on, of the two inner dims.

    This is the sum with a bias or a column, or of parts of rows: for rows of 256 float32 what a
    tile costs beside its arithmetic was two thirds of the time.
    """
    cdef const Step* step = &plan.program.steps[0]
    cdef const Loop* loop = &step.loop
    cdef const Operand* operand
    cdef int inner = plan.ndim - 1, columns = 0, runs = 0, k
    cdef char* inputs[MAX_ARITY]
    cdef char* output = place(&plan.operands[plan.program.n_inputs], plan.ndim, index)
    cdef char* sources[MAX_ARITY]
    cdef Py_ssize_t moves[MAX_ARITY]
    cdef Py_ssize_t downs[MAX_ARITY]
    cdef Py_ssize_t down = plan.operands[plan.program.n_inputs].steps[inner - 1]
    cdef Py_ssize_t row = plan.dims[inner], piece, done, count, r
    for k in range(loop.arity):
        operand = &plan.operands[step.inputs[k]]
        sources[k] = place(operand, plan.ndim, index)
        moves[k], downs[k] = operand.steps[inner], operand.steps[inner - 1]
        runs += moves[k] != 0
        columns += moves[k] == 0 and downs[k] != 0
    piece = row if runs == loop.arity else min(row, plan.tile)
    for k in range(loop.arity):
        if moves[k] == 0 and downs[k] == 0:              # one element for all
            operand = &plan.operands[step.inputs[k]]
            inputs[k] = scratch + step.inputs[k] * BUFFER_BYTES      # as `fetch` has it
            find_gather(operand.dtype)(sources[k], 0, inputs[k], piece)
            sources[k] = inputs[k]
    if columns == 0 and piece == row:
        call_for_rows(loop, -1, sources, downs, output, down, rows, row)
        return
    for r in range(rows):
        for k in range(loop.arity):
            inputs[k] = sources[k]
            if moves[k] == 0 and downs[k]:
                inputs[k] = scratch + step.inputs[k] * BUFFER_BYTES
                find_gather(plan.operands[step.inputs[k]].dtype)(sources[k], 0, inputs[k], piece)
            sources[k] += downs[k]
        done = 0
        while done < row:
            count = min(piece, row - done)
            call_loop(loop, inputs, output + done * loop.output_size, count)
            done += count
            for k in range(loop.arity):
                inputs[k] += count * moves[k]
        output += down


cdef void call_for_rows(const Loop* loop, int number, char** x, const Py_ssize_t* downs, char* y,
                        Py_ssize_t down, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """The loop for each row of n elements, of inputs that are so far apart; the input `number`, if
    it is not negative, is one element for a row. Some rows have 16: nothing else is done here."""
    cdef loop2 run = <loop2>loop.run
    cdef char* a = x[0]
    cdef char* b = x[1] if loop.arity > 1 else NULL
    cdef char* c = x[2] if loop.arity > 2 else NULL
    cdef Py_ssize_t a_down = downs[0], b_down = downs[1] if loop.arity > 1 else 0, r
    cdef char* inputs[MAX_ARITY]
    if number >= 0:
        run = numbered(loop, number)
    if number == 0 and not loop.strided:
        a, b, a_down, b_down = b, a, b_down, a_down
    if loop.strided:
        for r in range(rows):
            inputs[0], inputs[1], inputs[2] = a, b, c
            if number >= 0:
                call_with_number(loop, number, inputs, y, n)
            else:
                call_loop(loop, inputs, y, n)
            a += a_down
            b += b_down
            c += downs[2] if loop.arity > 2 else 0
            y += down
    elif loop.arity == 1:
        for r in range(rows):
            (<loop1>loop.run)(a, y, n)
            a += a_down
            y += down
    elif loop.arity == 2:
        for r in range(rows):
            run(a, b, y, n)
            a += a_down
            b += b_down
            y += down
    elif loop.arity == 3:
        for r in range(rows):
            (<loop3>loop.run)(a, b, c, y, n)
            a += a_down
            b += b_down
            c += downs[2]
            y += down
    else:
        for r in range(rows):
            (<loop4>loop.run)(a, b, c, x[3] + r * downs[3], y, n)
            a += a_down
            b += b_down
            c += downs[2]
            y += down
