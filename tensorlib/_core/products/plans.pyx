"""A cache of plans for Fourier transforms, by the number of points.

There are plans for numbers of points with no other prime factors than 2, 3, 5, 7, 11 and 13. All
passes of a short row stay in the caches. Where the points of a row lie side by side in memory,
the lanes of a vector share them, as columns of a table that one to four rows fill. Of other rows
there is one in each lane. A long row, or one of a few that cannot be shared so, is a table, whose
columns, and then rows, are in the lanes.

For other numbers of points there are plans of convolutions (`fourier_chirp.h`).
"""

from libc.stdlib cimport free

from tensorlib._core.base.kernels cimport find_function
from tensorlib._core.base.locks cimport Lock, drop, hold
from tensorlib._kernels.fourier.fourier_plan cimport COMPLEX_TO_COMPLEX, Passes

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void** memory, size_t alignment, size_t nbytes)

cdef enum:
    LEAST_TABLE = 64                 # points of a row that may be a table
    LONG = 1500                      # points from which on it always is one; measured on AMD EPYC
    LONG_ASIDE = 4096                # the same for rows that are aside, with wide vectors
    MOST_STRIPED = 1 << 17           # bytes of a row whose points the lanes share
    WIDE = 64                        # bytes of a vector with which there are passes of factor 16
    LEAST_CHIRP = 64                 # points of a transform by a convolution
    MOST = 1 << 24                   # points of the largest plan
    MOST_KEPT = 1 << 24              # bytes of all plans in the cache

# The time per point that a pass of each factor takes, relative to one of factor 4.
cdef dict PASSES = {16: 2.0, 13: 4.5, 11: 3.5, 7: 2.0, 5: 1.3, 3: 0.8, 8: 1.3, 4: 1.0, 2: 0.7}
MOVES = 2.0                          # the same for copying a point in and out

cdef Functions[2] functions
cdef dict kept = {}                  # the cached plans, the latest last
cdef Py_ssize_t kept_bytes = 0
cdef Lock keeping                    # protects both


cdef int find_functions(Functions* found, str dtype) except -1:
    found.lanes = <Py_ssize_t (*)() noexcept nogil>find_function("fourier", "lanes", dtype)
    found.plan_size = <Py_ssize_t (*)(Plan*) noexcept nogil>find_function(
        "fourier", "plan_size", dtype)
    found.fill = <void (*)(Plan*, char*) noexcept nogil>find_function("fourier", "fill", dtype)
    found.fill_chirp = <void (*)(const Plan*, char*) noexcept nogil>find_function(
        "fourier", "fill_chirp", dtype)
    found.points_size = <Py_ssize_t (*)(const Plan*) noexcept nogil>find_function(
        "fourier", "points_size", dtype)
    found.table_size = <Py_ssize_t (*)(const Plan*, int) noexcept nogil>find_function(
        "fourier", "table_size", dtype)
    found.transform = <void (*)(const Job*, Py_ssize_t, char*) noexcept nogil>find_function(
        "fourier", "transform", dtype)
    found.part = <void (*)(const Job*, Place, Place, int, Py_ssize_t, Py_ssize_t, char*,
                           char*) noexcept nogil>find_function("fourier", "part", dtype)
    return 0


find_functions(&functions[0], "complex64")
find_functions(&functions[1], "complex128")


cdef list factors_of(Py_ssize_t n, bint wide):
    """The factors of the passes for n points, or None; as few as possible, of these the smallest,
    and the smaller ones first."""
    cdef list found = []
    cdef int twos = 0, count, large
    for r in (13, 11, 7, 5, 3):
        while n % r == 0:
            found.append(r)
            n //= r
    while n % 2 == 0:
        twos += 1
        n //= 2
    if n != 1:
        return None
    if not wide:
        if twos == 4:
            return [*found, 4, 4]
        return [*found, *[8] * (twos // 3), *[[], [2], [4]][twos % 3]]
    count = (twos + 3) // 4
    large = max(0, twos - 3 * count)
    if 3 * count > twos + large:
        return [*found, *[8] * (count - 1), 1 << (twos - 3 * count + 3)]
    return [*found, *[8] * (count - large), *[16] * large]


cdef double cost(Py_ssize_t n, Py_ssize_t groups, bint wide):
    """The estimated time of transforms of n points in `groups` groups of lanes."""
    return groups * n * (MOVES + sum([<double>PASSES[r] for r in factors_of(n, wide)]))


cdef Py_ssize_t columns_of_stripes(Py_ssize_t n, Py_ssize_t lanes):
    """How many columns of a row the lanes share, so that there are rows for all lanes; or 0."""
    cdef Py_ssize_t columns = lanes
    while columns >= max(2, lanes // 4):
        if n % columns == 0 and n // columns >= lanes:
            return columns
        columns //= 2
    return 0


cdef Py_ssize_t rows_of_table(Py_ssize_t n, Py_ssize_t lanes, bint wide, bint few, bint along):
    """The first size of the fastest table, or n if none is faster than a row."""
    cdef Py_ssize_t best = n, rows = 4, long_ = LONG_ASIDE if wide and not along else LONG
    cdef double least = cost(n, 1, wide) if n < long_ else float("inf"), taken
    if n < LEAST_TABLE or n < long_ and not few:
        return n
    while rows * 4 <= n and rows * rows <= 16 * n:
        if n % rows == 0:
            taken = cost(rows, (n // rows + lanes - 1) // lanes, wide) + cost(
                n // rows, (rows + lanes - 1) // lanes, wide)
            if taken < least:
                best, least = rows, taken
        rows += 1
    return best


cdef int set_passes(Passes* passes, Py_ssize_t n, bint wide) except -1:
    cdef list factors = factors_of(n, wide)
    cdef int i
    passes.n, passes.count = n, len(factors)
    for i in range(passes.count):
        passes.factors[i] = factors[i]
    return 0


cdef class FourierPlan:
    """The factors and the angles of a transform."""

    def __cinit__(self, Py_ssize_t n, bint double_, bint few, bint along):
        cdef Py_ssize_t item = 8 if double_ else 4, columns = 0, rows
        cdef bint wide
        cdef void* memory = NULL
        self.functions = &functions[double_]
        self.lanes = self.functions.lanes()
        wide = self.lanes * item >= WIDE
        if not has_plan(n):
            self.fill_chirp(n, double_)
            return
        if along and 2 * item * n <= MOST_STRIPED:
            columns = columns_of_stripes(n, self.lanes)
            if few and columns < self.lanes and n >= LEAST_TABLE:     # some lanes would be idle
                columns = 0
        rows = n // columns if columns else rows_of_table(n, self.lanes, wide, few, along)
        self.plan.n, self.plan.striped = n, columns > 0
        set_passes(&self.plan.first, rows, wide)
        set_passes(&self.plan.second, n // rows, wide)
        self.nbytes = self.functions.plan_size(&self.plan)
        if posix_memalign(&memory, 64, self.nbytes):
            raise MemoryError(f"fft: no memory for a plan of {n} points")
        self.memory = <char*>memory
        with nogil:
            self.functions.fill(&self.plan, self.memory)

    cdef int fill_chirp(self, Py_ssize_t n, bint double_) except -1:
        """A plan for n points of large prime factors, by a convolution of twice as many."""
        cdef Py_ssize_t item = 16 if double_ else 8, room
        cdef void* memory = NULL
        self.inner = plan_of(points_of_convolution(n), double_, False, True)
        self.plan.n, self.plan.inner = n, &self.inner.plan
        self.nbytes = (n + self.inner.plan.n) * item
        room = self.functions.points_size(&self.plan) + self.functions.table_size(
            &self.plan, COMPLEX_TO_COMPLEX)
        if posix_memalign(&memory, 64, self.nbytes):
            raise MemoryError(f"fft: no memory for a plan of {n} points")
        self.memory, self.plan.chirp = <char*>memory, memory
        if posix_memalign(&memory, 64, room):
            raise MemoryError(f"fft: no memory for a plan of {n} points")
        with nogil:
            self.functions.fill_chirp(&self.plan, <char*>memory)
        free(memory)
        return 0

    def __dealloc__(self):
        free(self.memory)


cdef Py_ssize_t points_of_convolution(Py_ssize_t n):
    """A power of 2 times a small odd number, and at least 2 n - 1."""
    cdef Py_ssize_t best = 0, odd, points
    for odd in (1, 3, 5, 7, 9, 11, 13, 15, 25):
        points = odd
        while points < 2 * n - 1:
            points *= 2
        if not best or points < best:
            best = points
    return best


cdef bint has_plan(Py_ssize_t n):
    """Whether there is a plan of n points."""
    return n <= MOST and factors_of(n, False) is not None


cdef FourierPlan chirp_of(Py_ssize_t n, bint double_):
    """The plan of n points by a convolution, for any number that has no other; None for those that
    are too large, or so small that NumPy's loops are as fast."""
    return plan_for(n, double_, False, False) if LEAST_CHIRP <= n <= MOST // 4 else None


cdef FourierPlan plan_of(Py_ssize_t n, bint double_, bint few, bint along):
    """The plan of n points for few rows or many, with points side by side (`along`) or not; None
    where there is none."""
    return plan_for(n, double_, few, along) if has_plan(n) else None


cdef FourierPlan plan_for(Py_ssize_t n, bint double_, bint few, bint along):
    """A plan, from the cache or new."""
    global kept_bytes
    cdef tuple key = (n, double_, few, along)
    cdef FourierPlan plan
    cdef object other
    hold(&keeping)
    try:
        plan = kept.pop(key, None)
        if plan is not None:
            kept[key] = plan
            return plan
    finally:
        drop(&keeping)
    plan = FourierPlan(n, double_, few, along)
    hold(&keeping)
    try:
        other = kept.pop(key, None)                          # another thread may have made one
        kept_bytes += plan.nbytes - (0 if other is None else (<FourierPlan>other).nbytes)
        while kept and kept_bytes > MOST_KEPT:
            kept_bytes -= (<FourierPlan>kept.pop(next(iter(kept)))).nbytes
        kept[key] = plan
    finally:
        drop(&keeping)
    return plan
