"""Fourier transforms of numbers of points that are products of small primes, and of others.

A plan has what depends
on the number of points alone: the factors, and all angles, each rounded once.
"""

from tensorlib._kernels.fourier.fourier_plan cimport LINE, Job, Passes, Place, Plan
from tensorlib._kernels.vecmath.basics cimport floating

from tensorlib._kernels import COMPLEX, rows_for

cdef extern from * nogil:
    """
    #include "fourier/fourier_plan.h"
    #define INTEGER int
    #define LANES (LINE / 8)
    #define REAL float
    #define NAME(x) x##_single
    #include "fourier/fourier.h"
    #include "fourier/fourier_rows.h"
    #undef INTEGER
    #undef REAL
    #undef NAME
    #define INTEGER long long
    #define LANES (LINE / 16)
    #define REAL double
    #define NAME(x) x##_double
    #include "fourier/fourier.h"
    #include "fourier/fourier_rows.h"
    """
    const int* slot_single
    const int* slot_double
    void transform_single(const Job* job, Py_ssize_t count, char* room)
    void transform_double(const Job* job, Py_ssize_t count, char* room)
    void part_single(const Job* job, Place source, Place target, int part, Py_ssize_t begin,
                     Py_ssize_t end, char* shared, char* rooms)
    void part_double(const Job* job, Place source, Place target, int part, Py_ssize_t begin,
                     Py_ssize_t end, char* shared, char* rooms)
    void fill_spectrum_single(const Plan* plan, char* room)
    void fill_spectrum_double(const Plan* plan, char* room)
    Py_ssize_t turns_count_single(const Plan* plan)
    Py_ssize_t turns_count_double(const Plan* plan)
    Py_ssize_t points_size_single(const Plan* plan)
    Py_ssize_t points_size_double(const Plan* plan)
    Py_ssize_t table_size_single(const Plan* plan, int kind)
    Py_ssize_t table_size_double(const Plan* plan, int kind)

cdef extern from "<math.h>" nogil:
    long double acosl(long double x)
    long double cosl(long double x)
    long double rintl(long double x)
    long double sinl(long double x)

cdef enum:
    LOW = 10                 # bits of an angle's number that one table covers
    FINE = 32                # rows of a table, and
    LONG = 1 << 18           # bytes of points from which on turns are products of two


# ---- angles --------------------------------------------------------------------------------------
# Each angle is a product of two, in more digits than are kept.

cdef struct Circle:
    Py_ssize_t n             # angles of a whole turn
    long double* high        # cosines and sines of every 2**LOW-th of them
    long double[2 << LOW] low


cdef void draw(Circle* circle) noexcept nogil:
    """The tables of a circle."""
    cdef Py_ssize_t k
    cdef long double part = 2 * acosl(-1) / circle.n
    for k in range(min(<Py_ssize_t>1 << LOW, circle.n)):
        circle.low[2 * k] = cosl(part * k)
        circle.low[2 * k + 1] = sinl(part * k)
    for k in range(high_count(circle.n)):
        circle.high[2 * k] = cosl(part * (k << LOW))
        circle.high[2 * k + 1] = sinl(part * (k << LOW))


cdef inline Py_ssize_t high_count(Py_ssize_t n) noexcept nogil:
    return (n >> LOW) + 1


cdef inline void look_up(const Circle* circle, Py_ssize_t k, floating* cosine,
                         floating* sine) noexcept nogil:
    """The cosine and the sine of the k-th angle of a circle; k may exceed a full turn."""
    cdef Py_ssize_t place = k % circle.n
    cdef const long double* a = circle.high + 2 * (place >> LOW)
    cdef const long double* b = circle.low + 2 * (place & ((1 << LOW) - 1))
    cosine[0] = <floating>(a[0] * b[0] - a[1] * b[1])
    sine[0] = <floating>(a[0] * b[1] + a[1] * b[0])
    if 4 * place % circle.n == 0:            # a part is 0, which is no rounding error
        cosine[0], sine[0] = <floating>rintl(cosine[0]), <floating>rintl(sine[0])


# ---- plans ---------------------------------------------------------------------------------------

cdef Py_ssize_t count_of_angles(const Passes* passes) noexcept nogil:
    """The numbers that the passes need."""
    cdef Py_ssize_t m = passes.n, count = 0
    cdef int i, r
    for i in range(passes.count):
        r = passes.factors[i]
        m //= r
        count += 2 * m * (r - 1) + (2 * r if r % 2 else 0)
    return count


cdef floating* fill_passes(Passes* passes, const Circle* circle, floating* memory) noexcept nogil:
    """The angles of all passes, and where the next ones begin; see `fourier.h`."""
    cdef Py_ssize_t m = passes.n, unit = circle.n // passes.n, p
    cdef int i, r, k
    cdef floating sine = 0
    passes.angles = memory
    for i in range(passes.count):
        r = passes.factors[i]
        m //= r
        if r % 2:
            for k in range(r):
                look_up(circle, circle.n // r * k, memory, &sine)
                memory[1] = -sine
                memory += 2
        for p in range(m):
            for k in range(1, r):
                look_up(circle, unit * p * k, memory, &sine)
                memory[1] = -sine
                memory += 2
        unit *= r
    return memory


cdef inline Py_ssize_t in_lines(Py_ssize_t nbytes) noexcept nogil:
    return (nbytes + LINE - 1) // LINE * LINE


cdef inline Py_ssize_t turns_count(const Plan* plan, floating kind) noexcept nogil:
    return turns_count_single(plan) if floating is float else turns_count_double(plan)


cdef Py_ssize_t plan_size(Plan* plan, floating kind) noexcept nogil:
    """The bytes that `fill` needs."""
    cdef Py_ssize_t lanes = LINE // 2 // sizeof(floating)
    cdef Py_ssize_t groups = (plan.second.n + lanes - 1) // lanes if plan.second.n > 1 else 0
    plan.fine = FINE if 2 * sizeof(floating) * plan.n > LONG else 0
    return in_lines(2 * high_count(2 * plan.n) * sizeof(long double)) + (
        groups * turns_count(plan, kind) * LINE) + sizeof(floating) * (
        count_of_angles(&plan.first) + count_of_angles(&plan.second)
        + 2 * (plan.n // 2 + 1) + lanes)


cdef void fill(Plan* plan, char* memory, const int* slot, floating kind) noexcept nogil:
    """The angles of a plan, whose factors are there, in memory of `plan_size` bytes in lines."""
    cdef Py_ssize_t lanes = LINE // 2 // sizeof(floating), n = plan.n, group, i, k, column
    cdef int l
    cdef Circle circle
    cdef floating* at
    cdef floating sine = 0
    circle.n, circle.high = 2 * n, <long double*>memory
    draw(&circle)
    memory += in_lines(2 * high_count(2 * n) * sizeof(long double))
    at = <floating*>memory
    plan.turns = at
    for group in range((plan.second.n + lanes - 1) // lanes if plan.second.n > 1 else 0):
        for i in range(turns_count(plan, kind)):
            k = i if plan.fine == 0 or i < plan.fine else (i - plan.fine) * plan.fine
            for l in range(lanes):
                column = l % plan.second.n if plan.striped else group * lanes + l
                look_up(&circle, 2 * (k * column % n), at + slot[l], &sine)
                at[lanes + slot[l]] = -sine
            at += 2 * lanes
    plan.angles = at
    for k in range(n // 2 + 1):
        look_up(&circle, k, at + k, at + n // 2 + 1 + k)
    at += 2 * (n // 2 + 1) + lanes
    at = fill_passes(&plan.first, &circle, at)
    fill_passes(&plan.second, &circle, at)


cdef void fill_chirp(const Plan* plan, char* room, floating kind) noexcept nogil:
    """The chirp of a plan, and its spectrum. The room is for a transform of the inner plan, and has
    the numbers of a circle."""
    cdef Circle circle
    cdef Py_ssize_t k
    cdef floating sine = 0
    cdef floating* at = <floating*>plan.chirp
    circle.n, circle.high = 2 * plan.n, <long double*>room
    draw(&circle)
    for k in range(plan.n):
        look_up(&circle, k * k % circle.n, at + 2 * k, &sine)
        at[2 * k + 1] = -sine
    if floating is float:
        fill_spectrum_single(plan, room)
    else:
        fill_spectrum_double(plan, room)


cdef void fill_chirp_single(const Plan* plan, char* room) noexcept nogil:
    fill_chirp[float](plan, room, 0)


cdef void fill_chirp_double(const Plan* plan, char* room) noexcept nogil:
    fill_chirp[double](plan, room, 0)


cdef Py_ssize_t lanes_single() noexcept nogil:
    return LINE // 2 // sizeof(float)


cdef Py_ssize_t lanes_double() noexcept nogil:
    return LINE // 2 // sizeof(double)


cdef Py_ssize_t plan_size_single(Plan* plan) noexcept nogil:
    return plan_size[float](plan, 0)


cdef Py_ssize_t plan_size_double(Plan* plan) noexcept nogil:
    return plan_size[double](plan, 0)


cdef void fill_single(Plan* plan, char* memory) noexcept nogil:
    fill[float](plan, memory, slot_single, 0)


cdef void fill_double(Plan* plan, char* memory) noexcept nogil:
    fill[double](plan, memory, slot_double, 0)


def table():
    """(name, input dtypes, output dtype, address) of every function"""
    return rows_for(COMPLEX, [
        ("lanes", <size_t>&lanes_single, <size_t>&lanes_double),
        ("plan_size", <size_t>&plan_size_single, <size_t>&plan_size_double),
        ("fill", <size_t>&fill_single, <size_t>&fill_double),
        ("fill_chirp", <size_t>&fill_chirp_single, <size_t>&fill_chirp_double),
        ("points_size", <size_t>&points_size_single, <size_t>&points_size_double),
        ("table_size", <size_t>&table_size_single, <size_t>&table_size_double),
        ("transform", <size_t>&transform_single, <size_t>&transform_double),
        ("part", <size_t>&part_single, <size_t>&part_double),
    ])
