"""Fourier transforms along one dim, by the library's kernels or by pocketfft's loops in NumPy.

The kernels (`_kernels/fourier/fourier.h`) are for numbers of points with small prime factors: 1,024
rows of 1,024 complex64 take a sixth of NumPy's time on AMD EPYC with AVX2. Others are convolutions
of such numbers, from 64 points on. What remains uses NumPy's loops, which are not public, and may
be missing in a later NumPy.

A loop takes any step between the elements of a row, but processes rows one by one. Along another
dim than the last it would read a cache line for each element. So some rows that are side by side in
memory are gathered, transformed, and put back, a cache line at a time; our kernels gather short
rows themselves.

A loop takes several rows at once, in the lanes of vectors, and the last ones one by one. The sizes
alone decide which rows go together, so that results do not depend on the number of threads.
"""

from cpython.exc cimport PyErr_Clear, PyErr_Occurred
from cpython.object cimport PyObject
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport COMPLEX128, COMPLEX64, FLOAT32, FLOAT64, ITEMSIZE
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.ufunc cimport PyUFuncObject, ufunc_loop
from tensorlib._core.base.work cimport share
from tensorlib._core.products.plans cimport (
    FourierPlan, Functions, chirp_of, has_plan, plan_of,
)
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport packed
from tensorlib._kernels.fourier.fourier_plan cimport (
    COMPLEX_TO_COMPLEX, HALF_TO_REAL, REAL_TO_HALF, Job, Plan,
)

import numpy
import numpy.fft

pocketfft = getattr(numpy.fft, "_pocketfft_umath", None)

cdef enum:
    SIDE_BY_SIDE = 16                # rows that are gathered at once: two cache lines of complex64
    PADDING = 64                    # bytes between gathered rows, as their sizes may be powers of 2
    CHUNK = 1 << 14                  # elements of a piece of work
    RELEASE_GIL = 1 << 11            # elements from which on the GIL is released
    MOST_GATHERED = 1 << 22          # bytes: longer rows are read where they lie
    FEW = 4                          # rows: with fewer, the lanes are filled from within each row
    LAST_PART = 3                    # the last step of the transform of a row by a table
    PARTED = 1 << 15                 # points from which on threads share each row, if these are few

cdef enum Transform:
    FORWARD, BACKWARD, REAL_EVEN, REAL_ODD, TO_REAL, TRANSFORMS

cdef extern from "Python.h":
    void* PyGILState_GetThisThreadState() nogil

cdef ufunc_loop loops[TRANSFORMS][2]             # for parts of float32 and of float64
cdef void* loop_data[TRANSFORMS][2]

ctypedef struct Rows:
    ufunc_loop loop
    void* data
    const char* source
    char* target
    int ndim                                     # all dims but the one that is transformed
    Py_ssize_t dims[MAX_NDIM]
    Py_ssize_t source_steps[MAX_NDIM]            # all steps are in bytes
    Py_ssize_t target_steps[MAX_NDIM]
    Py_ssize_t n_in, n_out, step_in, step_out, size_in, size_out
    Py_ssize_t n_whole                 # elements of a row that is completed from its half, or n_out
    Py_ssize_t count, unit                       # the number of rows, and how many go together
    float factor
    double factor_double
    bint failed                                  # a loop in a worker had no memory
    bint double_
    const Plan* plan                             # for our kernels, or NULL
    Functions* functions
    Job job
    bint turned                              # whether the direction is opposite to that of the loop


cdef int find_loops() except -1:
    """Fills `loops`."""
    cdef PyUFuncObject* ufunc
    cdef int which, i, number
    if pocketfft is None:
        return 0
    kinds = {numpy.dtype(c).num: k for c, k in (("f4", 0), ("c8", 0), ("f8", 1), ("c16", 1))}
    for which, name in enumerate(("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft")):
        found = getattr(pocketfft, name, None)
        if not isinstance(found, numpy.ufunc):
            continue
        ufunc = <PyUFuncObject*><PyObject*>found
        for i in range(ufunc.ntypes):
            number = kinds.get(ufunc.types[3 * i], -1)
            if number >= 0:
                loops[which][number] = ufunc.functions[i]
                loop_data[which][number] = ufunc.data[i] if ufunc.data != NULL else NULL
    return 0


find_loops()


def has(Py_ssize_t n, bint halved):
    """Whether there are kernels or loops for transforms of n points; `halved`: of n real
    numbers."""
    cdef int which
    for which in range(<int>TRANSFORMS):
        if loops[which][0] == NULL or loops[which][1] == NULL:
            return has_plan(n // 2 if halved and n % 2 == 0 else n)
    return True


# ---- rows ----------------------------------------------------------------------------------------

cdef inline void move(const char* source, char* target, Py_ssize_t size) noexcept nogil:
    """Moves an element of 4, 8 or 16 bytes of any alignment."""
    if size == 8:
        memcpy(target, source, 8)
    elif size == 4:
        memcpy(target, source, 4)
    else:
        memcpy(target, source, 16)


cdef void exchange(const char* source, char* target, Py_ssize_t count, Py_ssize_t n,
                   Py_ssize_t source_row, Py_ssize_t source_step, Py_ssize_t target_row,
                   Py_ssize_t target_step, Py_ssize_t size) noexcept nogil:
    """target[row, j] := source[row, j] for `count` rows of `n` elements."""
    cdef Py_ssize_t j, row
    for j in range(n):
        for row in range(count):
            move(source + row * source_row + j * source_step,
                 target + row * target_row + j * target_step, size)


cdef void call(Rows* r, const char* source, char* target, Py_ssize_t count, Py_ssize_t source_row,
               Py_ssize_t target_row, Py_ssize_t step_in, Py_ssize_t step_out) noexcept nogil:
    """`count` transforms."""
    cdef Py_ssize_t row
    if r.plan != NULL:
        call_kernel(r, source, target, count, source_row, target_row, step_in, step_out)
    else:
        call_loop(r, source, target, count, source_row, target_row, step_in, step_out)
    for row in range(count if r.turned or r.n_whole != r.n_out else 0):
        finish_row(r, target + row * target_row, step_out)


cdef void call_loop(Rows* r, const char* source, char* target, Py_ssize_t count,
                    Py_ssize_t source_row, Py_ssize_t target_row, Py_ssize_t step_in,
                    Py_ssize_t step_out) noexcept nogil:
    """Transforms `count` rows by NumPy's loop."""
    cdef char* args[3]
    cdef Py_ssize_t[3] dimensions
    cdef Py_ssize_t[5] steps
    args[0] = <char*>source
    args[1] = <char*>&r.factor_double if r.double_ else <char*>&r.factor
    args[2] = target
    dimensions[0], dimensions[1], dimensions[2] = count, r.n_in, r.n_out
    steps[0], steps[1], steps[2], steps[3], steps[4] = source_row, 0, target_row, step_in, step_out
    r.loop(args, dimensions, steps, r.data)


cdef inline Job job_of(Rows* r, const char* source, char* target, Py_ssize_t source_row,
                       Py_ssize_t target_row, Py_ssize_t step_in,
                       Py_ssize_t step_out) noexcept nogil:
    """The description of rows for our kernels."""
    cdef Job job = r.job
    job.source.at, job.source.point, job.source.lane = <char*>source, step_in, source_row
    job.target.at, job.target.point, job.target.lane = target, step_out, target_row
    return job


cdef void call_kernel(Rows* r, const char* source, char* target, Py_ssize_t count,
                      Py_ssize_t source_row, Py_ssize_t target_row, Py_ssize_t step_in,
                      Py_ssize_t step_out) noexcept nogil:
    """Transforms `count` rows by our kernel."""
    cdef Job job = job_of(r, source, target, source_row, target_row, step_in, step_out)
    cdef size_t nbytes = r.functions.points_size(r.plan) + r.functions.table_size(
        r.plan, r.job.kind)
    cdef char* room = take_scratch(nbytes)
    if room == NULL:
        r.failed = True
        return
    r.functions.transform(&job, count, room)
    give_scratch(room, nbytes)


cdef void finish(Rows* r, char* row, Py_ssize_t step, floating kind) noexcept nogil:
    """Completes a row after a loop: for the opposite direction, and the second half of a real
    transform.

    For real input, the opposite direction gives conjugate numbers; for real output, the reverse
    order. The second half is the first one, conjugated and reversed.
    """
    cdef Py_ssize_t k
    cdef floating* a
    cdef floating* b
    cdef floating kept
    if r.size_out == sizeof(floating):
        for k in range(1, (r.n_out + 1) // 2):
            a, b = <floating*>(row + k * step), <floating*>(row + (r.n_out - k) * step)
            kept, a[0] = a[0], b[0]
            b[0] = kept
        return
    for k in range(r.n_out, r.n_whole):
        a, b = <floating*>(row + (r.n_whole - k) * step), <floating*>(row + k * step)
        b[0] = a[0]
        b[1] = a[1] if r.turned else -a[1]
    if r.turned:
        for k in range(r.n_out):
            a = <floating*>(row + k * step)
            a[1] = -a[1]


cdef inline void finish_row(Rows* r, char* row, Py_ssize_t step) noexcept nogil:
    if r.double_:
        finish[double](r, row, step, 0)
    else:
        finish[float](r, row, step, 0)


cdef void gathered(Rows* r, const char* source, char* target, Py_ssize_t count,
                   Py_ssize_t source_row, Py_ssize_t target_row) noexcept nogil:
    """The same for rows that are gathered first, and put back."""
    cdef Py_ssize_t row_in = r.n_in * r.size_in + PADDING
    cdef Py_ssize_t row_out = r.n_whole * r.size_out + PADDING
    cdef size_t nbytes = count * (row_in + row_out)
    cdef char* scratch = take_scratch(nbytes) if nbytes <= MOST_GATHERED else NULL
    cdef char* results
    if scratch == NULL:                             # the loop itself takes the steps
        call(r, source, target, count, source_row, target_row, r.step_in, r.step_out)
        return
    results = scratch + count * row_in
    exchange(source, scratch, count, r.n_in, source_row, r.step_in, row_in, r.size_in, r.size_in)
    call(r, scratch, results, count, row_in, row_out, r.size_in, r.size_out)
    exchange(results, target, count, r.n_whole, row_out, r.size_out, target_row, r.step_out,
             r.size_out)
    give_scratch(scratch, nbytes)


cdef void run_rows(Rows* r, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Transforms the rows [begin, end), in the order of the other dims."""
    cdef bint side_by_side = r.step_in != r.size_in or r.step_out != r.size_out
    cdef bint all_at_once = r.plan != NULL and (r.plan.second.n == 1 or r.plan.striped) and (
        r.plan.inner == NULL)
    cdef Py_ssize_t row = begin, rest, count, inner, source_row, target_row
    cdef const char* source
    cdef char* target
    cdef int d, last = r.ndim - 1
    inner = r.dims[last] if r.ndim else 1
    source_row = r.source_steps[last] if r.ndim else 0
    target_row = r.target_steps[last] if r.ndim else 0
    while row < end:
        source, target, rest = r.source, r.target, row
        for d in range(last, -1, -1):
            source += rest % r.dims[d] * r.source_steps[d]
            target += rest % r.dims[d] * r.target_steps[d]
            rest //= r.dims[d]
        count = min(end - row, inner - row % inner)
        if side_by_side and inner > 1 and not all_at_once:
            count = min(count, SIDE_BY_SIDE)
            gathered(r, source, target, count, source_row, target_row)
        else:
            call(r, source, target, count, source_row, target_row, r.step_in, r.step_out)
        row += count


cdef void run_units(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Transforms all rows of the units [begin, end).

    A loop without memory sets MemoryError. On the caller's thread the error stays set, and the
    caller sees it; a worker first gets a Python thread state, to hold the error.
    """
    cdef Rows* r = <Rows*>context
    cdef Py_ssize_t unit
    if PyGILState_GetThisThreadState() != NULL:
        for unit in range(begin, end):
            run_rows(r, unit * r.unit, min((unit + 1) * r.unit, r.count))
        return
    with gil:
        with nogil:
            for unit in range(begin, end):
                run_rows(r, unit * r.unit, min((unit + 1) * r.unit, r.count))
        if PyErr_Occurred() != NULL:
            PyErr_Clear()
            r.failed = True


ctypedef struct Part:
    Rows* rows
    Job job
    char* table
    int part


cdef void run_part(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes a part of the transform of one row, for the groups [begin, end)."""
    cdef Part* p = <Part*>context
    cdef size_t nbytes = p.rows.functions.points_size(p.rows.plan)
    cdef char* rooms = take_scratch(nbytes)
    if rooms == NULL:
        p.rows.failed = True
        return
    p.rows.functions.part(&p.job, p.job.source, p.job.target, p.part, begin, end, p.table, rooms)
    give_scratch(rooms, nbytes)
    if p.part == LAST_PART and p.rows.n_whole != p.rows.n_out:
        finish_row(p.rows, p.job.target.at, p.rows.step_out)


cdef int run_parted(Rows* r, const void* memory) except -1:
    """Transforms a few long rows, each of which threads share."""
    cdef Part p
    cdef Py_ssize_t row, rest, groups
    cdef const char* source
    cdef char* target
    cdef size_t nbytes = r.functions.table_size(r.plan, r.job.kind)
    cdef Py_ssize_t lanes = r.functions.lanes()
    cdef int d
    p.rows, p.table = r, take_scratch(nbytes)
    if p.table == NULL:
        r.failed = True
        return 0
    for row in range(r.count):
        source, target, rest = r.source, r.target, row
        for d in range(r.ndim - 1, -1, -1):
            source += rest % r.dims[d] * r.source_steps[d]
            target += rest % r.dims[d] * r.target_steps[d]
            rest //= r.dims[d]
        p.job = job_of(r, source, target, 0, 0, r.step_in, r.step_out)
        for p.part in range(LAST_PART + 1):
            groups = 1
            if p.part == 1:
                groups = (r.plan.second.n + lanes - 1) // lanes
            elif p.part == 2:
                groups = (r.plan.first.n + lanes - 1) // lanes
            share(run_part, &p, memory, groups, 1, False)
    give_scratch(p.table, nbytes)
    return 0


cdef void add_dim(Rows* r, Py_ssize_t size, Py_ssize_t source_step,
                  Py_ssize_t target_step) noexcept:
    """Adds one of the other dims, merged with the one before it where the steps allow."""
    cdef int before = r.ndim - 1
    if (before >= 0 and r.source_steps[before] == size * source_step
            and r.target_steps[before] == size * target_step):
        r.dims[before] *= size
    else:
        before = r.ndim
        r.dims[before] = size
        r.ndim += 1
    r.source_steps[before] = source_step
    r.target_steps[before] = target_step


cdef Py_ssize_t rows_together(Py_ssize_t n, Py_ssize_t count) noexcept:
    """How many of `count` rows of `n` points go together: enough to fill the lanes of vectors,
    unless there are few long rows."""
    if n < CHUNK:
        return (CHUNK // n // SIDE_BY_SIDE + 1) * SIDE_BY_SIDE
    return 4 if count >= 8 else 1


def transform(Tensor x not None, int dim, Py_ssize_t n, bint forward, double factor,
              bint real=False, bint whole=False, bint inside=False):
    """The transform of `n` points along a dim, which is counted from the front, times `factor`.

    real: the result is real, and `x` is the first half of a spectrum, with n // 2 + 1 elements.
    whole: for real input the result is the whole spectrum, not its first half. inside: for complex
    numbers, the result is written over `x`.
    """
    cdef Rows r
    cdef Transform which
    cdef FourierPlan plan
    cdef Tensor out
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t count = 1
    cdef int d, dtype = COMPLEX64
    cdef bint complex_in = x.type == COMPLEX64 or x.type == COMPLEX128, halved
    if dim < 0 or dim >= x.ndim_ or n < 1:
        raise ValueError(f"transform: no dim {dim}, or {n} points")
    if not complex_in and (real or inside or x.type != FLOAT32 and x.type != FLOAT64):
        raise TypeError(f"transform: got {x.dtype}")
    if x.steps[dim] == 0 and not inside:     # pairs of neighbours are read as one number
        x = packed(x)
    r.double_ = x.type == FLOAT64 or x.type == COMPLEX128
    r.n_in, r.n_out, r.turned = x.dims[dim], n, False
    if real:
        which, dtype, r.turned = TO_REAL, FLOAT32, forward
    elif complex_in:
        which = FORWARD if forward else BACKWARD
    else:
        which, r.n_out, r.turned = REAL_ODD if n % 2 else REAL_EVEN, n // 2 + 1, not forward
    if r.double_:
        dtype = FLOAT64 if real else COMPLEX128
    r.n_whole = n if whole else r.n_out
    if r.n_in != (n // 2 + 1 if real else n):
        raise ValueError(f"transform: {r.n_in} elements for {n} points")
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
        if d != dim:
            count *= x.dims[d]
    r.loop, r.data = loops[<int>which][r.double_], loop_data[<int>which][r.double_]
    dims[dim] = r.n_whole
    out = x if inside and not real else new_tensor(dtype, x.ndim_, dims)
    r.size_in, r.size_out = ITEMSIZE[x.type], ITEMSIZE[dtype]
    r.source, r.target = x.data_pointer, out.data_pointer
    r.step_in, r.step_out = x.steps[dim] * r.size_in, out.steps[dim] * r.size_out
    halved = (real or not complex_in) and n % 2 == 0
    plan = plan_of(n // 2 if halved else n, r.double_, count < FEW,
                   r.step_in == r.size_in and r.step_out == r.size_out)
    if plan is None:
        plan = chirp_of(n, r.double_)
    r.plan = NULL
    if plan is not None:
        r.plan, r.functions, r.turned = &plan.plan, plan.functions, False
        r.job.plan, r.job.n, r.job.backward, r.job.factor = r.plan, n, not forward, factor
        r.job.kind = HALF_TO_REAL if real else COMPLEX_TO_COMPLEX if complex_in else REAL_TO_HALF
        r.job.source.part = r.job.target.part = 8 if r.double_ else 4
        r.job.source.turned = r.job.target.turned = False
    if r.plan == NULL and r.loop == NULL:
        raise NotImplementedError("transform: NumPy's loops were not found")
    r.factor, r.factor_double = <float>factor, factor
    r.ndim, r.failed = 0, False
    for d in range(x.ndim_):
        if d != dim:
            add_dim(&r, x.dims[d], x.steps[d] * r.size_in, out.steps[d] * r.size_out)
    if count:
        r.count, r.unit = count, rows_together(n, count)
        if count < FEW and n >= PARTED and r.plan != NULL and not r.plan.striped and (
                r.plan.inner == NULL):
            run_parted(&r, out.data_pointer)
        else:
            share(run_units, &r, out.data_pointer, (count + r.unit - 1) // r.unit, 1,
                  count < RELEASE_GIL // n)
        if PyErr_Occurred() != NULL:
            PyErr_Clear()
            r.failed = True
        if r.failed:
            raise MemoryError(f"fft: no memory for transforms of {n} points")
    return out
