"""The executor of element-wise work: contiguous loops over operands of any shapes and strides.

One loop over operands that lie contiguously is for `run_loop` (flat.pyx). `run_program` does all
else: it cuts the output into tiles that stay in the L1 cache; for each tile it gathers (and casts)
what is not contiguous, runs the loops of the program, and scatters the result. One loop over whole
rows needs no tiles. So casting, broadcasting, strides and threads are dealt with here and nowhere
else, and a loop sees one contiguous run.
"""

from cpython.object cimport PyObject

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.epochs cimport work_begins, work_ends
from tensorlib._core.base.pool cimport parallel_for, range_fn
from tensorlib._core.base.region cimport region_size
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.tensor.meta cimport is_meta, refuse_meta
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.flat cimport GRAIN, RELEASE_GIL
from tensorlib._core.tiles.loops cimport MAX_ARITY
from tensorlib._core.tiles.pieces cimport move_rows, repeat_row
from tensorlib._core.tiles.plan cimport (
    BUFFER_BYTES, Operand, Plan, SHORT_ROW, advance, as_transpositions, cost, make_plan, place,
    tile_of, transpose_rows,
)
from tensorlib._core.tiles.program cimport (
    MAX_CONSTANTS, MAX_INPUTS, MAX_SLOTS, Step, TileLoops, result_dtype,
)
from tensorlib._core.tiles.tile cimport (
    begin_tiles, fetch, number_of, repeat_constant, run_tile, scratch_bytes,
)
from tensorlib._core.tiles.transposed_operands cimport (
    LEAST_BAND, has_operand_across, run_bands, turns_far_apart,
)
from tensorlib._core.tiles.whole_rows cimport call_for_rows, goes_by_rows, run_whole_rows

cdef extern from "<alloca.h>" nogil:
    void* alloca(size_t size)

cdef enum:
    MOST = 8                 # times as long as in that an element may take, as far as it counts


# ---- programs ------------------------------------------------------------------------------------

cdef int run_program(const TileLoops* program, PyObject** inputs, Tensor out) except -1:
    """out := program(inputs), each input broadcast to the shape of `out`.

    An input either lies exactly where `out` lies or does not overlap it. Raises: RuntimeError for
    one that does not broadcast.
    """
    cdef Plan plan
    cdef Py_ssize_t numel = out.numel_, count, grain, row
    cdef bint by_bands
    cdef range_fn work = run_range
    cdef int epoch
    if numel == 0:
        return 0
    plan.program = program
    make_plan(&plan, inputs, out)
    plan.tile = tile_of(&plan, numel)
    if region_size:
        if is_meta(out):
            return 0
        refuse_meta(inputs, program.n_inputs)
    row = plan.dims[plan.ndim - 1]
    by_bands = has_operand_across(&plan)
    if numel < RELEASE_GIL:
        if as_transpositions(&plan):
            transpose_rows(&plan, 0, numel // row)
        elif by_bands:
            run_bands(&plan, 0, numel // row)
        else:
            run_range(&plan, 0, numel)
        return 0
    count, grain = numel, GRAIN // min(cost(&plan), MOST)
    if as_transpositions(&plan):
        work, grain = run_bands if turns_far_apart(&plan) else transpose_rows, GRAIN
    elif by_bands:
        work = run_bands
    if work != run_range:
        count, grain = numel // row, max(grain // row, LEAST_BAND)
    epoch = work_begins()
    with nogil:
        parallel_for(work, &plan, count, grain)
    return work_ends(epoch)


cdef void run_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Runs the elements [begin, end) of the plan's order."""
    cdef Plan* plan = <Plan*>context
    cdef bint direct = needs_no_tiles(plan), by_rows = goes_by_rows(plan)
    cdef bint several = not by_rows and goes_by_several_rows(plan), gathered = is_gathered(plan)
    cdef bint in_steps = not by_rows and goes_in_steps(plan)
    cdef Py_ssize_t filled[MAX_INPUTS + MAX_CONSTANTS]
    cdef char* scratch = begin_tiles(plan.program, filled,
                                     <char*>alloca(scratch_bytes(plan.program)))
    cdef char* pointers[MAX_INPUTS + 1]
    cdef Py_ssize_t steps[MAX_INPUTS + 1]
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t at[MAX_NDIM]
    cdef int ndim = plan.ndim, inner = plan.ndim - 1, n = plan.program.n_inputs, d, i
    cdef Py_ssize_t row = plan.dims[inner], left, count, rest
    rest = begin
    for d in range(ndim - 1, -1, -1):
        index[d] = rest % plan.dims[d]
        rest //= plan.dims[d]
    while begin < end:
        if (by_rows or in_steps) and index[inner] == 0 and end - begin >= row:
            count = min(plan.dims[inner - 1] - index[inner - 1], (end - begin) // row)
            if by_rows:
                run_whole_rows(plan, index, scratch, count)
            else:
                run_in_steps(plan, index, filled, scratch, count)
            index[inner - 1] += count - 1
            advance(plan, index, row)
            count *= row
        elif gathered and not by_rows:
            count = end - begin
            move_rows(plan, &plan.operands[0], index, at,
                      plan.operands[1].data + begin * ITEMSIZE[plan.operands[1].dtype], count,
                      False)
        elif (row >= SHORT_ROW or ndim == 1) and not several:
            left = row - index[inner]
            count = min(left, end - begin)
            if not direct:
                count = min(count, plan.tile)
            for i in range(n + 1):
                pointers[i] = place(&plan.operands[i], ndim, index)
                steps[i] = plan.operands[i].steps[inner]
            run_tile(plan, pointers, steps, filled, scratch, count)
            advance(plan, index, count)
        else:
            count = min(plan.tile, end - begin)
            if index[inner] == 0:
                count = min(plan.tile // row * row, count)
            elif by_rows or several or in_steps:     # the next row is whole again
                count = min(count, row - index[inner])
            run_short_rows(plan, index, begin, filled, scratch, count)
        begin += count


# ---- rows, step by step --------------------------------------------------------------------------

cdef bint goes_in_steps(const Plan* plan) noexcept nogil:
    """A program of several steps over rows that fit in a tile, which each operand has in one run or
    as one element for all. So parts of rows need not be gathered."""
    cdef const TileLoops* program = plan.program
    cdef const Operand* operand
    cdef int inner = plan.ndim - 1, n = program.n_inputs, i
    if program.n_steps == 0 or inner == 0 or plan.dims[inner] > plan.tile or (
            plan.dims[inner] < SHORT_ROW // 2):
        return False
    for i in range(n + 1):
        operand = &plan.operands[i]
        if operand.dtype != (program.dtypes[i] if i < n else result_dtype(program)) or (
                operand.steps[inner] != ITEMSIZE[operand.dtype] and (i == n or not operand.scalar)):
            return False
    return True


cdef void run_in_steps(const Plan* plan, const Py_ssize_t* index, Py_ssize_t* filled, char* scratch,
                       Py_ssize_t rows) noexcept nogil:
    """Rows from `index` on, of the two inner dims: each step on all rows that fit in a tile."""
    cdef const TileLoops* program = plan.program
    cdef const Step* step
    cdef int inner = plan.ndim - 1, n = program.n_inputs, first = n + program.n_constants
    cdef int i, k, value, number
    cdef Py_ssize_t row = plan.dims[inner], most = max(plan.tile // row, <Py_ssize_t>1), count, down
    cdef char* pointers[MAX_INPUTS + 1]
    cdef Py_ssize_t steps[MAX_INPUTS + 1]
    cdef char* slots[MAX_SLOTS]
    cdef char* inputs[MAX_ARITY]
    cdef Py_ssize_t downs[MAX_ARITY]
    for i in range(n + 1):
        pointers[i], steps[i] = place(&plan.operands[i], plan.ndim, index), (
            plan.operands[i].steps[inner])
    while rows > 0:
        count = min(most, rows)
        for i in range(program.n_steps):
            step = &program.steps[i]
            number = number_of(plan, step, steps)
            for k in range(step.loop.arity):
                value = step.inputs[k]
                downs[k] = row * ITEMSIZE[program.dtypes[value]]
                if value >= first:
                    inputs[k] = slots[value]
                elif value >= n:
                    inputs[k], downs[k] = repeat_constant(program, value, filled, scratch, row), 0
                else:
                    downs[k] = plan.operands[value].steps[inner - 1]
                    inputs[k] = pointers[value] if k == number else fetch(
                        plan, value, pointers[value], steps[value], filled, scratch, row)
            value = first + i
            down = row * ITEMSIZE[program.dtypes[value]]
            slots[value] = scratch + (first + step.buffer) * BUFFER_BYTES
            if i == program.n_steps - 1:
                slots[value], down = pointers[n], plan.operands[n].steps[inner - 1]
            call_for_rows(&step.loop, number, inputs, downs, slots[value], down, count, row)
        for i in range(n + 1):
            pointers[i] += count * plan.operands[i].steps[inner - 1]
        rows -= count


# ---- tiles ---------------------------------------------------------------------------------------

cdef bint needs_no_tiles(const Plan* plan) noexcept nogil:
    """One loop (or a copy) over operands that it can read and write where they are."""
    cdef const TileLoops* program = plan.program
    cdef int i, inner = plan.ndim - 1
    if program.n_steps > 1 or program.n_constants:       # constants are repeated over tiles
        return False
    for i in range(program.n_inputs):
        if (plan.operands[i].dtype != program.dtypes[i]
                or plan.operands[i].steps[inner] != ITEMSIZE[plan.operands[i].dtype]):
            return False
    return (plan.operands[program.n_inputs].dtype == result_dtype(program)
            and plan.operands[program.n_inputs].steps[inner] == ITEMSIZE[result_dtype(program)])


cdef bint goes_by_several_rows(const Plan* plan) noexcept nogil:
    """Loops, or one and casts, over rows of which two fit in a tile, where an operand is one row
    over and over (a bias) or a column, and the others go on from row to row."""
    cdef const Operand* operand
    cdef int i
    if plan.ndim != 2 or plan.program.n_steps == 0 or 2 * plan.dims[1] > plan.tile:
        return False
    for i in range(plan.program.n_inputs + 1):
        operand = &plan.operands[i]
        if not (operand.linear or operand.scalar or operand.steps[0] == 0
                or operand.steps[1] == 0):
            return False
    return True


cdef void run_short_rows(Plan* plan, Py_ssize_t* index, Py_ssize_t begin, Py_ssize_t* filled,
                         char* scratch, Py_ssize_t count) noexcept nogil:
    """One tile of several rows: gathers each operand's pieces, runs, scatters the pieces back."""
    cdef int n = plan.program.n_inputs, inner = plan.ndim - 1, i
    cdef char* pointers[MAX_INPUTS + 1]
    cdef Py_ssize_t steps[MAX_INPUTS + 1]
    cdef Py_ssize_t at[MAX_NDIM]
    cdef char* pieces
    cdef Py_ssize_t size
    cdef char* gathered = scratch + (plan.program.first_aside + 1) * BUFFER_BYTES
    cdef Operand* operand
    for i in range(n + 1):
        operand = &plan.operands[i]
        size = ITEMSIZE[operand.dtype]
        pointers[i] = operand.data + (begin * size if operand.linear else 0)
        steps[i] = 0 if operand.scalar else size
        if operand.linear or operand.scalar:
            continue
        pieces = gathered + i * BUFFER_BYTES
        pointers[i] = pieces
        if i < n and (plan.ndim != 2 or operand.steps[0] != 0):
            move_rows(plan, operand, index, at, pieces, count, False)
        elif i < n and (index[1] or filled[i] < count):      # else it is there from tiles before
            repeat_row(operand, index[1], plan.dims[1], pieces, count)
            filled[i] = 0 if index[1] else count
    run_tile(plan, pointers, steps, filled, scratch, count)
    operand = &plan.operands[n]
    if not operand.linear:
        move_rows(plan, operand, index, at, pointers[n], count, True)
    index[inner] += count
    for i in range(inner, 0, -1):
        if index[i] < plan.dims[i]:
            break
        index[i - 1] += index[i] // plan.dims[i]
        index[i] %= plan.dims[i]


cdef bint is_gathered(const Plan* plan) noexcept nogil:
    """Whether the plan is a copy into contiguous memory, to which elements can be gathered."""
    return (plan.program.n_steps == 0 and plan.operands[1].linear
            and plan.operands[0].dtype == plan.operands[1].dtype == plan.program.dtypes[0])
