"""Connectionist temporal classification: the probabilities of all alignments of sequences with
labels, and their gradients. Outside autograd.

The states of an alignment are blank, the first label, blank, the second label, ..., blank.
"""

from libc.stdint cimport int64_t

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT_KIND, INT64, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport share
from tensorlib._core.reduce.schedule cimport RELEASE_GIL
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed, zero

cdef enum:
    PIECE = 1 << 12      # states in a piece of work
    VECTOR = 8           # states that a loop computes together
    EDGE = 8             # states that never occur, before the first: two, rounded up to a vector

cdef extern from * nogil:
    """
    #define NEVER (-1e30)        /* in place of log(0), so that sums stay finite */
    """
    const double NEVER

ctypedef void (*step_float)(const float* row, const float* skips, const float* emitted,
                            float* next, Py_ssize_t n) noexcept nogil
ctypedef void (*step_double)(const double* row, const double* skips, const double* emitted,
                             double* next, Py_ssize_t n) noexcept nogil
ctypedef void (*occupied_float)(const float* row, const float* back, const float* emitted,
                                float total, float* y, Py_ssize_t n) noexcept nogil
ctypedef void (*occupied_double)(const double* row, const double* back, const double* emitted,
                                 double total, double* y, Py_ssize_t n) noexcept nogil

cdef void* loops[2][2]       # step and occupied; float32 and float64
find_pairs("alignments", ("step", "occupied"), loops[0])

cdef struct Sequences:
    const char* logs         # (steps, count, classes)
    const int64_t* labels    # (count, width)
    int64_t* lengths         # (2, count): of the sequences, and of their labels
    const char* g            # (count,)
    char* losses
    char* dx
    Py_ssize_t steps, count, classes, width
    int64_t blank
    bint is_single, failed
    Py_ssize_t wrong         # a sequence with a label out of range, or -1


cdef inline void step(const floating* row, const floating* skips, const floating* emitted,
                      floating* next, Py_ssize_t n) noexcept nogil:
    if floating is float:
        (<step_float>loops[0][0])(row, skips, emitted, next, n)
    else:
        (<step_double>loops[0][1])(row, skips, emitted, next, n)


cdef inline void occupied(const floating* row, const floating* back, const floating* emitted,
                          floating total, floating* y, Py_ssize_t n) noexcept nogil:
    if floating is float:
        (<occupied_float>loops[1][0])(row, back, emitted, total, y, n)
    else:
        (<occupied_double>loops[1][1])(row, back, emitted, total, y, n)


cdef inline void take_logs(const floating* logs, const int64_t* states, floating* emitted,
                           Py_ssize_t n) noexcept nogil:
    """emitted := the logarithm of what each state emits at a step, at least NEVER; NaN stays"""
    cdef floating value
    cdef Py_ssize_t i
    for i in range(n):
        value = logs[states[i]]
        emitted[i] = <floating>NEVER if value < NEVER else value


cdef inline void turned(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[n - 1 - i]


cdef inline void first_step(const floating* emitted, floating* row, Py_ssize_t n,
                            Py_ssize_t padded) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(padded):
        row[i] = emitted[i] if i < min(n, 2) else <floating>NEVER


cdef bint list_states(Sequences* of, Py_ssize_t b, int64_t* states, Py_ssize_t n) noexcept nogil:
    """states := the labels of all states. Returns False for a label out of range; each is read just
    once, as another thread may write to them."""
    cdef const volatile int64_t* labels = of.labels + b * of.width
    cdef Py_ssize_t i
    for i in range(n):
        states[i] = labels[i // 2] if i % 2 else of.blank
        if not 0 <= states[i] < of.classes:
            return False
    return True


cdef inline void go(Sequences* of, Py_ssize_t b, floating* scratch, Py_ssize_t n,
                    Py_ssize_t padded, Py_ssize_t length) noexcept nogil:
    """Computes the loss of a sequence, or its gradient; `scratch` begins with the states."""
    cdef const floating* logs = <const floating*>of.logs + b * of.classes
    cdef Py_ssize_t stride = padded + EDGE, across = of.count * of.classes, i, t
    cdef Py_ssize_t kept = max(<Py_ssize_t>2, length) if of.dx != NULL else 2
    cdef int64_t* states = <int64_t*>scratch
    cdef floating* emitted = <floating*>(states + padded)
    cdef floating* skips = emitted + padded
    cdef floating* skips_back = skips + padded
    cdef floating* emitted_back = skips_back + padded
    cdef floating* rows = emitted_back + padded + EDGE
    cdef floating* back = rows + kept * stride
    cdef floating* row = rows
    cdef floating* next
    cdef floating* dx
    cdef floating total, g = 0
    for i in range(padded):
        skips[i] = 0 if 2 <= i < n and states[i] != of.blank and (
            states[i] != states[i - 2]) else <floating>NEVER
        emitted[i] = emitted_back[i] = <floating>NEVER
    for t in range(kept + 2):
        for i in range(<Py_ssize_t>EDGE):
            rows[t * stride - EDGE + i] = <floating>NEVER
    for i in range(padded):
        row[i] = 0 if i == 0 else <floating>NEVER
    for t in range(length):
        take_logs(logs + t * across, states, emitted, n)
        if t == 0:
            first_step(emitted, row, n, padded)
            continue
        next = rows + (t if of.dx != NULL else t % 2) * stride
        step(row, skips, emitted, next, padded)
        row = next
    total = row[n - 1]
    if n > 1:                # one more step into the last state, as an alignment may end in two
        for i in range(padded):
            emitted_back[i] = 0
        skips_back[0] = <floating>NEVER
        step(row + n - 1, skips_back, emitted_back, &total, 1)
    if of.dx == NULL:
        (<floating*>of.losses)[b] = -total
        return
    g = (<const floating*>of.g)[b]
    for i in range(padded):
        skips_back[i] = skips[n + 1 - i] if 2 <= i < n else <floating>NEVER
        emitted_back[i] = <floating>NEVER
    for t in range(length - 1, -1, -1):
        take_logs(logs + t * across, states, emitted, n)
        turned(emitted, emitted_back, n)
        next = back + t % 2 * stride
        if t == length - 1:
            first_step(emitted_back, next, n, padded)
        else:
            step(back + (t + 1) % 2 * stride, skips_back, emitted_back, next, padded)
        occupied(rows + t * stride, next + n - 1, emitted, total, emitted_back, padded)
        dx = <floating*>of.dx + t * across + b * of.classes
        if total <= NEVER / 2:               # no alignment: the loss is infinite, the gradient 0
            for i in range(n):
                emitted_back[i] = 0
        for i in range(n):
            dx[states[i]] -= g * emitted_back[i]
        for i in range(padded):
            emitted_back[i] = <floating>NEVER


cdef Py_ssize_t scratch_size(Sequences* of) noexcept nogil:
    """The bytes for the states, four rows with an edge, and what both directions keep."""
    cdef Py_ssize_t padded = 2 * of.width + VECTOR, item = 4 if of.is_single else 8
    cdef Py_ssize_t kept = of.steps + 4 if of.dx != NULL else 4
    return times(times(kept + 6, padded + EDGE), item) + padded * <Py_ssize_t>sizeof(int64_t)


cdef void run(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Sequences* of = <Sequences*>context
    cdef Py_ssize_t b, n, padded, size = scratch_size(of)
    cdef char* scratch = take_scratch(size)
    if scratch == NULL:
        of.failed = True
        return
    for b in range(begin, end):
        n = 2 * of.lengths[of.count + b] + 1
        padded = (n + VECTOR - 1) // VECTOR * VECTOR
        if not list_states(of, b, <int64_t*>scratch, n):
            of.wrong = b
            break
        if of.is_single:
            go(of, b, <float*>scratch, n, padded, of.lengths[b])
        else:
            go(of, b, <double*>scratch, n, padded, of.lengths[b])
    give_scratch(scratch, size)


cdef int take_lengths(int64_t* target, tuple given, Py_ssize_t count, Py_ssize_t most) except -1:
    cdef Py_ssize_t b, length
    if len(given) != count:
        raise RuntimeError(f"ctc_loss: expects {count} lengths, got {len(given)}")
    for b in range(count):
        length = given[b]
        if not 0 <= length <= most:
            raise RuntimeError(f"ctc_loss: lengths must be up to {most}, got {length}")
        target[b] = length
    return 0


cdef Tensor computed(Tensor grad, Tensor log_probs, Tensor labels, tuple inputs, tuple sizes,
                     int64_t blank):
    cdef Sequences of
    cdef Tensor x, places, g, out
    cdef Py_ssize_t room
    cdef Py_ssize_t[1] dims
    if KIND[log_probs.type] != FLOAT_KIND or log_probs.ndim_ != 3 or labels.ndim_ != 2 or (
            labels.dims[0] != log_probs.dims[1]) or not 0 <= blank < log_probs.dims[2]:
        raise RuntimeError("ctc_loss: expects log_probs (T, B, C) of a floating dtype and labels "
                           f"(B, S), got {dtype_object(log_probs.type)} of shape "
                           f"{tuple(log_probs.shape)} and {tuple(labels.shape)}")
    if grad is not None and (grad.ndim_ != 1 or grad.dims[0] != labels.dims[0]):
        raise RuntimeError(f"ctc_loss: a gradient of shape {tuple(grad.shape)} for labels of shape "
                           f"{tuple(labels.shape)}")
    x = packed(cast(log_probs, compute_dtype(log_probs.type)))
    places = packed(cast(labels, INT64))
    of.steps, of.count, of.classes, of.width = x.dims[0], x.dims[1], x.dims[2], places.dims[1]
    of.logs, of.labels = x.data_pointer, <int64_t*>places.data_pointer
    of.blank, of.is_single, of.failed, of.wrong = blank, x.type == FLOAT32, False, -1
    dims[0] = of.count
    of.losses = of.dx = NULL
    of.g = NULL
    if grad is None:
        out = new_tensor(x.type, 1, dims)
        of.losses = out.data_pointer
    else:
        g, out = packed(cast(grad, x.type)), new_like(x, x.type)
        zero(out)
        of.g, of.dx = g.data_pointer, out.data_pointer
    room = times(of.count, 2 * <Py_ssize_t>sizeof(int64_t)) + 1
    of.lengths = <int64_t*>take_scratch(room)
    try:
        if of.lengths == NULL:
            raise MemoryError("ctc_loss: no memory for the lengths")
        take_lengths(of.lengths, inputs, of.count, of.steps)
        take_lengths(of.lengths + of.count, sizes, of.count, of.width)
        share(run, &of, out.data_pointer, of.count,
              1 + PIECE // (1 + times(of.steps, 2 * of.width + 1)),
              times(of.steps, times(of.count, of.width)) < RELEASE_GIL // 16)
    finally:
        if of.lengths != NULL:
            give_scratch(<char*>of.lengths, room)
    if of.failed:
        raise MemoryError("ctc_loss: no memory for the states of a sequence")
    if of.wrong >= 0:
        raise RuntimeError(f"ctc_loss: a target is out of range for {of.classes} labels")
    return cast(out, log_probs.type)


def ctc_losses(Tensor log_probs, Tensor labels, tuple inputs, tuple sizes, int64_t blank):
    """-log of the probability of all alignments that give the labels, of each sequence."""
    return computed(None, log_probs, labels, inputs, sizes, blank)


def ctc_losses_backward(Tensor grad, Tensor log_probs, Tensor labels, tuple inputs, tuple sizes,
                        int64_t blank):
    """The gradient of `ctc_losses`."""
    return computed(grad, log_probs, labels, inputs, sizes, blank)
