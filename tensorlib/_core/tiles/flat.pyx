"""One loop over contiguous operands and scalars: the short path of the smallest calls."""

from tensorlib._core.base.work cimport share
from tensorlib._core.tiles.loops cimport (
    Loop, MAX_ARITY, call_loop, call_with_number, find_gather, loop_mixed, taken_runs,
    takes_number,
)

cdef enum:
    WIDEST = 16              # bytes of an element


cdef struct Flat:
    const Loop* loop
    char* inputs[MAX_ARITY]
    char* output
    bint is_scalar[MAX_ARITY]
    bint has_scalar
    int number               # the place of an input that the loop takes as a number, or -1
    int runs                 # which of three inputs are no numbers, where a mixed loop is called


cdef int run_loop(const Loop* loop, char** inputs, const bint* is_scalar, char* output,
                  Py_ssize_t n) except -1:
    """output := loop(inputs) over n contiguous elements, or scalars, of the loop's dtype."""
    cdef Flat flat
    cdef int i
    flat.loop = loop
    flat.output = output
    flat.has_scalar = False
    for i in range(loop.arity):
        flat.inputs[i] = inputs[i]
        flat.is_scalar[i] = is_scalar[i]
        flat.has_scalar |= is_scalar[i]
    flat.number, flat.runs = -1, 0
    if flat.has_scalar and loop.mixed != NULL:
        for i in range(3):
            flat.runs |= (not is_scalar[i]) << i
        flat.runs = taken_runs(loop, flat.runs)
    if flat.has_scalar and loop.with_number != NULL and is_scalar[0] != is_scalar[1]:
        if loop.arity == 3:
            flat.number = 2 if is_scalar[1] and is_scalar[2] else -1
        elif takes_number(loop, is_scalar[1]):
            flat.number = is_scalar[1]
    return share(run_flat, &flat, output, n, GRAIN // loop.cost, n < RELEASE_GIL)


cdef int run_with_single(const Loop* loop, char** inputs, int place, char* output,
                         Py_ssize_t n) except -1:
    """The same by the loop of a half type `with_single`, whose input at `place` is one float32."""
    cdef Loop single = loop[0]
    cdef Flat flat
    cdef int i
    single.with_number = loop.with_single
    flat.loop = &single
    flat.output = output
    flat.number, flat.runs = place, 0
    for i in range(loop.arity):
        flat.inputs[i] = inputs[i]
        flat.is_scalar[i] = i == place
    return share(run_flat, &flat, output, n, GRAIN // loop.cost, n < RELEASE_GIL)


cdef void run_flat(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Flat* flat = <Flat*>context
    cdef const Loop* loop = flat.loop
    cdef char splats[MAX_ARITY * TILE * WIDEST]
    cdef char* pointers[MAX_ARITY]
    cdef Py_ssize_t count = end - begin
    cdef int i
    for i in range(loop.arity):
        pointers[i] = flat.inputs[i] + (0 if flat.is_scalar[i] else begin * loop.input_size)
    if flat.runs:
        (<loop_mixed>loop.mixed)(NULL, pointers[0], pointers[1], pointers[2],
                                 flat.output + begin * loop.output_size, count, flat.runs)
        return
    if flat.number >= 0:
        call_with_number(loop, flat.number, pointers, flat.output + begin * loop.output_size, count)
        return
    if flat.has_scalar:
        count = min(count, <Py_ssize_t>TILE)
        for i in range(loop.arity):
            if flat.is_scalar[i]:
                pointers[i] = splats + i * TILE * WIDEST
                find_gather(loop.input_dtype)(flat.inputs[i], 0, pointers[i], count)
    while begin < end:
        count = min(count, end - begin)
        call_loop(loop, pointers, flat.output + begin * loop.output_size, count)
        for i in range(loop.arity):
            if not flat.is_scalar[i]:
                pointers[i] += count * loop.input_size
        begin += count
