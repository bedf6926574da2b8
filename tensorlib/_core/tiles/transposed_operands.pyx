"""Transposed operands, which are contiguous along the columns: bands of rows are transposed first.

A cache line of such an operand has elements of several rows, so several rows, a band, are processed
at a time. A band is transposed as a whole, as far as it fits in the L2 cache: writing output in
pieces of a few cache lines, far apart, takes up to ten times as long (70 ns for a line instead of
5, on a Xeon of the fourth generation).
"""

from tensorlib._core.base.blocks cimport copy_blocks
from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.storage cimport LINE
from tensorlib._core.tiles.loops cimport MAX_ARITY, find_gather, find_transpose
from tensorlib._core.tiles.plan cimport BUFFER_BYTES, Operand, Plan, SHORT_ROW, advance, place
from tensorlib._core.tiles.program cimport (
    MAX_CONSTANTS, MAX_INPUTS, Step, TileLoops, result_dtype,
)
from tensorlib._core.tiles.tile cimport begin_tiles, run_tile, scratch_bytes
from tensorlib._core.tiles.whole_rows cimport call_for_rows

cdef extern from "<alloca.h>" nogil:
    void* alloca(size_t size)

cdef enum:
    MOST_BAND = 64
    RUN = 128                # bytes of a column that are read at once, where so many rows are taken
    TURNED_BYTES = 262144    # of a band, once it is turned
    FAR_BYTES = 1 << 21      # of a copy whose output does not stay in the cache


cdef inline bint lies_across(const Operand* operand, int inner) noexcept nogil:
    """Whether the elements of a column are neighbours, and not those of a row."""
    cdef Py_ssize_t down = operand.steps[inner - 1], along = operand.steps[inner]
    return down != 0 and -LINE < down < LINE and not -LINE < along < LINE


cdef bint has_operand_across(const Plan* plan) noexcept nogil:
    """Whether an operand lies across the rows; not of a copy, which has loops of its own."""
    cdef int inner = plan.ndim - 1, i
    if inner == 0 or plan.dims[inner] < SHORT_ROW:
        return False
    if plan.program.n_steps == 0 and plan.operands[1].linear and (
            plan.operands[0].dtype == plan.operands[1].dtype):
        return False
    for i in range(plan.program.n_inputs):
        if lies_across(&plan.operands[i], inner):
            return True
    return False


cdef bint turns_far_apart(const Plan* plan) noexcept nogil:
    """Whether a copy that transposes matrices writes rows that are long and many."""
    cdef int inner = plan.ndim - 1, d
    cdef Py_ssize_t nbytes = ITEMSIZE[plan.operands[1].dtype]
    for d in range(plan.ndim):
        nbytes *= plan.dims[d]
    return (nbytes >= FAR_BYTES and plan.dims[inner - 1] >= LEAST_BAND
            and lies_across(&plan.operands[0], inner)
            and plan.dims[inner] * ITEMSIZE[plan.operands[1].dtype] >= 16 * LINE)


cdef void run_bands(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Runs the rows [begin, end) of the plan's order, a band at a time."""
    cdef Plan* plan = <Plan*>context
    cdef int inner = plan.ndim - 1, n = plan.program.n_inputs, d, i
    cdef Py_ssize_t filled[MAX_INPUTS + MAX_CONSTANTS]
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t size = 1, height, width, rows, nbytes, rest = begin
    cdef char* scratch = begin_tiles(plan.program, filled,
                                     <char*>alloca(scratch_bytes(plan.program)))
    cdef char* taken
    cdef char* turned
    for i in range(n + 1):
        size = max(size, ITEMSIZE[plan.operands[i].dtype])
    height = min(max(RUN // size, <Py_ssize_t>LEAST_BAND), <Py_ssize_t>MOST_BAND)
    width = min(plan.dims[inner], TURNED_BYTES // (size * height))
    nbytes = 2 * n * size * height * width
    taken = turned = take_scratch(nbytes)
    if taken == NULL:
        height = LEAST_BAND
        width = min(width, BUFFER_BYTES // (size * height))
        turned = <char*>alloca(2 * n * size * height * width)
    index[inner] = 0
    for d in range(inner - 1, -1, -1):
        index[d] = rest % plan.dims[d]
        rest //= plan.dims[d]
    while begin < end:
        rows = min(min(height, plan.dims[inner - 1] - index[inner - 1]), end - begin)
        run_band(plan, index, rows, width, turned, size * height * width, filled, scratch)
        index[inner - 1] += rows - 1
        advance(plan, index, plan.dims[inner])
        begin += rows
    if taken != NULL:
        give_scratch(taken, nbytes)


cdef void run_band(const Plan* plan, const Py_ssize_t* index, Py_ssize_t rows, Py_ssize_t most,
                   char* turned, Py_ssize_t nbytes, Py_ssize_t* filled,
                   char* scratch) noexcept nogil:
    """Rows from `index` on, in pieces of at most so many columns; `turned` has two blocks of
    `nbytes` for each input."""
    cdef int inner = plan.ndim - 1, n = plan.program.n_inputs, i
    cdef Py_ssize_t row = plan.dims[inner], done = 0, width, size, c
    cdef char* pointers[MAX_INPUTS + 1]
    cdef Py_ssize_t steps[MAX_INPUTS + 1]
    cdef Py_ssize_t downs[MAX_INPUTS + 1]
    cdef char* columns
    cdef char* target
    cdef const Operand* operand
    while done < row:
        width = min(most, row - done)
        for i in range(n + 1):
            operand = &plan.operands[i]
            downs[i], steps[i] = operand.steps[inner - 1], operand.steps[inner]
            pointers[i] = place(operand, plan.ndim, index) + done * steps[i]
            if i == n or not lies_across(operand, inner):
                continue
            size = ITEMSIZE[operand.dtype]
            target, columns = turned + 2 * i * nbytes, turned + (2 * i + 1) * nbytes
            if downs[i] != size:             # with gaps, which are left out first
                for c in range(width):
                    find_gather(operand.dtype)(
                        pointers[i] + c * steps[i], downs[i], columns + c * rows * size, rows)
                pointers[i], steps[i] = columns, rows * size
            find_transpose(operand.dtype)(pointers[i], steps[i], target, width * size, rows, width)
            pointers[i], downs[i], steps[i] = target, width * size, size
        run_rows(plan, pointers, steps, downs, rows, width, filled, scratch)
        done += width


cdef void run_rows(const Plan* plan, char** pointers, const Py_ssize_t* steps,
                   const Py_ssize_t* downs, Py_ssize_t rows, Py_ssize_t n, Py_ssize_t* filled,
                   char* scratch) noexcept nogil:
    """The program on rows of n elements; one loop over runs, or a copy of them, needs no tiles."""
    cdef const TileLoops* program = plan.program
    cdef const Step* step = &program.steps[0]
    cdef bint direct = program.n_steps <= 1 and program.n_constants == 0
    cdef int last = program.n_inputs, i, dtype
    cdef char* inputs[MAX_ARITY]
    cdef Py_ssize_t input_downs[MAX_ARITY]
    cdef char* at[MAX_INPUTS + 1]
    cdef Py_ssize_t r, done
    for i in range(last + 1):
        dtype = program.dtypes[i] if i < last else result_dtype(program)
        direct = direct and plan.operands[i].dtype == dtype and steps[i] == ITEMSIZE[dtype]
    if direct and program.n_steps == 0:
        copy_blocks(pointers[0], downs[0], pointers[last], downs[last], rows, n * steps[last])
    elif direct:
        for i in range(step.loop.arity):
            inputs[i], input_downs[i] = pointers[step.inputs[i]], downs[step.inputs[i]]
        call_for_rows(&step.loop, -1, inputs, input_downs, pointers[last], downs[last], rows, n)
    else:
        for r in range(rows):
            done = 0
            while done < n:
                for i in range(last + 1):
                    at[i] = pointers[i] + r * downs[i] + done * steps[i]
                run_tile(plan, at, steps, filled, scratch, min(plan.tile, n - done))
                done += plan.tile
