"""One tile: its operands are gathered and cast, the loops of the program run, and their results are
cast and scattered."""

from libc.stdint cimport int64_t

from tensorlib._core.base.dtypes cimport FLOAT64, INT64, ITEMSIZE
from tensorlib._core.base.storage cimport LINE
from tensorlib._core.tiles.loops cimport (
    MAX_ARITY, call_loop, call_with_number, find_cast, find_gather, find_scatter, takes_number,
)
from tensorlib._core.tiles.plan cimport BUFFER_BYTES, LEAST_BUFFERS, Operand, Plan
from tensorlib._core.tiles.program cimport MAX_SLOTS, Step, TileLoops, result_dtype


cdef Py_ssize_t scratch_bytes(const TileLoops* program) noexcept nogil:
    """Of the buffers: of inputs and constants, by their slots; of results; of what is cast on its
    way; of operands whose rows are gathered."""
    return LINE + BUFFER_BYTES * max(program.first_aside + 2 + program.n_inputs,
                                     <int>LEAST_BUFFERS)


cdef char* begin_tiles(const TileLoops* program, Py_ssize_t* filled, char* scratch) noexcept nogil:
    """Where the buffers in `scratch` begin; of each slot's one element for all, none is there yet,
    but of the constants."""
    cdef int n = program.n_inputs, i
    scratch += LINE - <size_t>scratch % LINE
    for i in range(n + program.n_constants):
        filled[i] = 0
        if i >= n:
            repeat_constant(program, i, filled, scratch, 1)
    return scratch


cdef void run_tile(const Plan* plan, char** pointers, const Py_ssize_t* steps, Py_ssize_t* filled,
                   char* scratch, Py_ssize_t n) noexcept nogil:
    """Runs the program on n elements; operand i starts at pointers[i] and advances by steps[i]."""
    cdef const TileLoops* program = plan.program
    cdef const Step* step
    cdef char* slots[MAX_SLOTS]
    cdef char* inputs[MAX_ARITY]
    cdef char* result
    cdef int i, k, value, number, first = program.n_inputs + program.n_constants
    cdef int dtype = result_dtype(program)
    cdef const Operand* out = &plan.operands[program.n_inputs]
    cdef char* target = pointers[program.n_inputs]
    cdef Py_ssize_t out_step = steps[program.n_inputs]
    cdef bint direct = out.dtype == dtype and out_step == ITEMSIZE[dtype]
    if program.n_steps == 0 and direct:
        convert(plan.operands[0].dtype, dtype, pointers[0], steps[0], target,
                scratch + program.first_aside * BUFFER_BYTES, n)
        return
    for i in range(first):
        slots[i] = NULL                      # fetched when a loop takes it as a run
    if program.n_steps == 0:
        result = fetch(plan, 0, pointers[0], steps[0], filled, scratch, n)
    else:
        for i in range(program.n_steps):
            step = &program.steps[i]
            number = number_of(plan, step, steps)
            for k in range(step.loop.arity):
                value = step.inputs[k]
                if k == number:
                    inputs[k] = (pointers[value] if value < program.n_inputs
                                 else scratch + value * BUFFER_BYTES)
                    continue
                if slots[value] == NULL and value < program.n_inputs:
                    slots[value] = fetch(plan, value, pointers[value], steps[value], filled,
                                         scratch, n)
                elif slots[value] == NULL:
                    slots[value] = repeat_constant(program, value, filled, scratch, n)
                inputs[k] = slots[value]
            slots[first + i] = (
                target if direct and i == program.n_steps - 1
                else scratch + (first + step.buffer) * BUFFER_BYTES)
            if number >= 0:
                call_with_number(&step.loop, number, inputs, slots[first + i], n)
            else:
                call_loop(&step.loop, inputs, slots[first + i], n)
        result = slots[first + program.n_steps - 1]
    if direct:
        return
    if out.dtype != dtype:
        if out_step == ITEMSIZE[out.dtype]:
            find_cast(dtype, out.dtype)(result, target, n)
            return
        find_cast(dtype, out.dtype)(result, scratch + program.first_aside * BUFFER_BYTES, n)
        result = scratch + program.first_aside * BUFFER_BYTES
    find_scatter(out.dtype)(result, target, out_step, n)


cdef inline int number_of(const Plan* plan, const Step* step,
                          const Py_ssize_t* steps) noexcept nogil:
    """The place of a step's input that is one number in this tile, for a loop that takes one; -1
    for none: a constant, or an operand that does not change along the inner dim."""
    cdef const TileLoops* program = plan.program
    cdef int k, value
    if step.loop.arity != 2 or step.loop.with_number == NULL:
        return -1
    for k in range(1, -1, -1):
        value = step.inputs[k]
        if value >= program.n_inputs + program.n_constants or not takes_number(&step.loop, k):
            continue
        if value >= program.n_inputs or steps[value] == 0 and (
                plan.operands[value].dtype == program.dtypes[value]):
            return k
    return -1


cdef char* fetch(const Plan* plan, int i, char* pointer, Py_ssize_t step, Py_ssize_t* filled,
                 char* scratch, Py_ssize_t n) noexcept nogil:
    """The n elements of input i as a contiguous run of the slot's dtype."""
    cdef int have = plan.operands[i].dtype, want = plan.program.dtypes[i]
    cdef char* buffer = scratch + i * BUFFER_BYTES
    if step == ITEMSIZE[have] and have == want:
        return pointer
    if plan.operands[i].scalar:
        if filled[i] >= n:
            return buffer
        filled[i] = n
    convert(have, want, pointer, step, buffer, scratch + plan.program.first_aside * BUFFER_BYTES, n)
    return buffer


cdef void convert(int have, int want, char* pointer, Py_ssize_t step, char* target, char* aside,
                  Py_ssize_t n) noexcept nogil:
    """target := n elements of dtype `have` at `step` bytes, as a contiguous run of dtype `want`.

    n is at most a tile, which `aside` holds, unless the elements can be copied or cast from
    where they are.
    """
    if have == want:
        find_gather(have)(pointer, step, target, n)
    elif step == ITEMSIZE[have]:
        find_cast(have, want)(pointer, target, n)
    else:
        find_gather(have)(pointer, step, aside, n)
        find_cast(have, want)(aside, target, n)


cdef char* repeat_constant(const TileLoops* program, int slot, Py_ssize_t* filled, char* scratch,
                           Py_ssize_t n) noexcept nogil:
    """A constant n times, in the buffer of its slot."""
    cdef double value = program.constants[slot - program.n_inputs]
    cdef int dtype = program.dtypes[slot]
    cdef int64_t whole
    cdef char* buffer = scratch + slot * BUFFER_BYTES
    if filled[slot] >= n:
        return buffer
    filled[slot] = n
    if dtype == INT64:
        whole = <int64_t>value
        find_gather(INT64)(<char*>&whole, 0, buffer, n)
    elif dtype == FLOAT64:
        find_gather(FLOAT64)(<char*>&value, 0, buffer, n)
    else:
        find_cast(FLOAT64, dtype)(<char*>&value, buffer, 1)
        find_gather(dtype)(buffer, 0, buffer, n)
    return buffer
