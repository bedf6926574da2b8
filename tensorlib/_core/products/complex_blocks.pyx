"""Blocks of complex matrices: triangular systems, factors of Cholesky and Gauss, reflections.

They have the signatures of the kernels for real numbers (`_kernels/products/triangles.h`), of whose
rows and columns a number takes two, so that blocks are half as large. Systems and factors of
Cholesky go to these kernels, as a matrix of 2 x 2 blocks (x, -y; y, x) for each number x + iy: that
is triangular, too, where the numbers on its diagonal are real. In elimination and reflections rows
y are kept beside iy, so that what is subtracted is a real product.
"""

from libc.math cimport fabs, fabsf, isfinite, sqrt
from libc.string cimport memset

from tensorlib._core.base.dtypes cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, N_DTYPES
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.kernels cimport find_by_dtype

cdef enum:
    SIDE = 64                # rows of a block of the kernels, of which a complex row takes two
    SIDE_ROW = SIDE + 2 * 16 # elements: kernels access two vectors past a row
    COLUMNS = 64             # of a right-hand side that are solved at once
    REFLECTIONS = 32         # elements from one row of T to the next; as in the kernels
    LANES = 16               # sums that are added at once
    FEW_COLUMNS = 8          # of Cholesky factors up to which loops are faster than a kernel

ctypedef void (*substitute_fn)(const char* l, Py_ssize_t l_row, Py_ssize_t l_col, char* t,
                               Py_ssize_t t_row, Py_ssize_t n, Py_ssize_t m,
                               int unit) noexcept nogil
ctypedef Py_ssize_t (*factor_fn)(char* u, Py_ssize_t u_row, Py_ssize_t n,
                                 double* d) noexcept nogil

ctypedef void (*panel_fn)(const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* p,
                          Py_ssize_t p_row, Py_ssize_t panel, char* y, Py_ssize_t y_row,
                          Py_ssize_t m, Py_ssize_t k, Py_ssize_t depth, Py_ssize_t n,
                          const char* base, Py_ssize_t base_row) noexcept nogil

cdef substitute_fn substitutes[N_DTYPES]
cdef factor_fn factors[N_DTYPES]
cdef panel_fn panels[N_DTYPES]
cdef Py_ssize_t lanes[N_DTYPES]          # elements in a vector
find_by_dtype("panels", "product", <void**>panels)
find_by_dtype("panels", "lanes", <void**>lanes)
find_by_dtype("triangles", "substitute", <void**>substitutes)
find_by_dtype("triangles", "factor", <void**>factors)


cdef void conjugate(int dtype, char* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    if dtype == COMPLEX64:
        for i in range(n):
            (<float*>x)[2 * i + 1] = -(<float*>x)[2 * i + 1]
    elif dtype == COMPLEX128:
        for i in range(n):
            (<double*>x)[2 * i + 1] = -(<double*>x)[2 * i + 1]


cdef inline int dtype_of(const floating* x) noexcept nogil:
    return FLOAT32 if floating is float else FLOAT64


cdef inline void rotate(const floating* x, floating* y, Py_ssize_t n, floating minus,
                        floating one) noexcept nogil:
    """y (n) := ix; `minus` and `one` are -1 and 1, by which both parts are one multiplication"""
    cdef Py_ssize_t i
    for i in range(n):
        y[2 * i], y[2 * i + 1] = minus * x[2 * i + 1], one * x[2 * i]


cdef void pack(const floating* b, Py_ssize_t b_row, Py_ssize_t b_col, floating re, floating im,
               floating* p, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """p := rows (x, y) and (-y, x) for the numbers x + iy of b, multiplied by `re` and `im`"""
    cdef Py_ssize_t first = 0, l, j, count, width = 2 * lanes[dtype_of(p)]
    cdef const floating* at
    cdef floating* to
    while first < n:
        count = min(width // 2, n - first)
        for l in range(k):
            at, to = b + 2 * (l * b_row + first * b_col), p + 2 * l * width
            if b_col == 1:
                for j in range(count):
                    to[2 * j], to[2 * j + 1] = re * at[2 * j], im * at[2 * j + 1]
            else:
                for j in range(count):
                    to[2 * j], to[2 * j + 1] = re * at[2 * j * b_col], im * at[2 * j * b_col + 1]
            for j in range(2 * count, width):
                to[j] = 0
            rotate(to, to + width, width // 2, -1, 1)
        p += 2 * k * width
        first += width // 2


cdef void pack_complex(int dtype, const char* b, Py_ssize_t b_row, Py_ssize_t b_col,
                       bint conjugated, bint negated, char* p, Py_ssize_t k,
                       Py_ssize_t n) noexcept nogil:
    cdef int re = -1 if negated else 1, im = -re if conjugated else re
    if dtype == COMPLEX64:
        pack(<const float*>b, b_row, b_col, <float>re, <float>im, <float*>p, k, n)
    else:
        pack(<const double*>b, b_row, b_col, <double>re, <double>im, <double*>p, k, n)


# ---- triangular systems and Cholesky factors -----------------------------------------------------

cdef bint embed(const floating* l, Py_ssize_t l_row, Py_ssize_t l_col, floating* real,
                floating* factors_, Py_ssize_t n, int unit) noexcept nogil:
    """real (2 n, 2 n) := a lower triangle, multiplied by factors that make its diagonal one, unless
    that is real or `unit`. Returns whether there are such factors."""
    cdef Py_ssize_t i, j
    cdef const floating* at
    cdef floating* above
    cdef floating[2] z
    cdef bint scaled = False
    for i in range(n if not unit else 0):
        at = l + 2 * i * (l_row + l_col)
        scaled = scaled or at[1] != 0
    for i in range(n):
        at, above = l + 2 * i * l_row, real + 2 * i * SIDE
        if scaled:
            invert(at + 2 * i * l_col, factors_ + 2 * i)
        for j in range(i):
            z[0], z[1] = at[2 * j * l_col], at[2 * j * l_col + 1]
            if scaled:
                scale(z, factors_ + 2 * i, z)
            above[2 * j], above[2 * j + 1] = z[0], -z[1]
            above[SIDE + 2 * j], above[SIDE + 2 * j + 1] = z[1], z[0]
        above[2 * i] = above[SIDE + 2 * i + 1] = 1 if scaled or unit else at[2 * i * l_col]
        above[SIDE + 2 * i] = 0
    return scaled


cdef void substitute(const floating* l, Py_ssize_t l_row, Py_ssize_t l_col, floating* t,
                     Py_ssize_t t_row, Py_ssize_t n, Py_ssize_t m, int unit) noexcept nogil:
    """t (n, m) := inverse(l) @ t, of which real and imaginary parts become rows"""
    cdef floating[SIDE * SIDE] real
    cdef floating[SIDE * COLUMNS] x
    cdef floating[SIDE] weights
    cdef int dtype = FLOAT32 if floating is float else FLOAT64
    cdef bint scaled = embed(l, l_row, l_col, real, weights, n, unit)
    cdef Py_ssize_t first = 0, cols, i, j
    cdef floating* at
    cdef floating* to
    cdef floating f, g
    while first < m:
        cols = min(<Py_ssize_t>COLUMNS, m - first)
        for i in range(n):
            at, to = t + 2 * (i * t_row + first), x + 2 * i * COLUMNS
            if scaled:
                f, g = weights[2 * i], weights[2 * i + 1]
                for j in range(cols):
                    to[j] = f * at[2 * j] - g * at[2 * j + 1]
                    to[COLUMNS + j] = f * at[2 * j + 1] + g * at[2 * j]
            else:
                for j in range(cols):
                    to[j], to[COLUMNS + j] = at[2 * j], at[2 * j + 1]
        substitutes[dtype](<char*>real, SIDE, 1, <char*>x, COLUMNS, 2 * n, cols, scaled or unit)
        for i in range(n):
            at, to = t + 2 * (i * t_row + first), x + 2 * i * COLUMNS
            for j in range(cols):
                at[2 * j], at[2 * j + 1] = to[j], to[COLUMNS + j]
        first += COLUMNS


cdef Py_ssize_t factor_few(floating* u, Py_ssize_t u_row, Py_ssize_t n) noexcept nogil:
    """The same as `factor`, row by row"""
    cdef Py_ssize_t i, j, k
    cdef floating re, im, root = 0
    cdef const floating* f
    cdef const floating* g
    for i in range(n):
        for j in range(i, n):
            re, im = u[2 * (i * u_row + j)], u[2 * (i * u_row + j) + 1]
            for k in range(i):
                f, g = u + 2 * (k * u_row + i), u + 2 * (k * u_row + j)
                re -= f[0] * g[0] + f[1] * g[1]
                im -= f[0] * g[1] - f[1] * g[0]
            if i == j:
                if not re > 0:
                    return i + 1
                root = <floating>sqrt(re)
            u[2 * (i * u_row + j)] = root if i == j else re / root
            u[2 * (i * u_row + j) + 1] = 0 if i == j else im / root
    return 0


cdef Py_ssize_t factor(floating* u, Py_ssize_t u_row, Py_ssize_t n, double* d) noexcept nogil:
    """The upper triangle of u (n, n) := that U with U.mH @ U = u: its real form is the only factor
    of the real form of u"""
    cdef floating[SIDE * SIDE_ROW] real
    cdef Py_ssize_t i, j, info
    if n <= FEW_COLUMNS:
        return factor_few(u, u_row, n)
    cdef floating* at
    cdef floating* to
    for i in range(n):
        at, to = u + 2 * i * u_row, real + 2 * i * SIDE_ROW
        for j in range(i, n):
            to[2 * j] = to[SIDE_ROW + 2 * j + 1] = at[2 * j]
            to[2 * j + 1], to[SIDE_ROW + 2 * j] = -at[2 * j + 1], at[2 * j + 1]
        to[2 * i + 1] = 0
    info = factors[FLOAT32 if floating is float else FLOAT64](<char*>real, SIDE_ROW, 2 * n, NULL)
    if info:
        return (info + 1) // 2
    for i in range(n):
        at, to = u + 2 * i * u_row, real + 2 * i * SIDE_ROW
        for j in range(i, n):
            at[2 * j], at[2 * j + 1] = to[2 * j], to[SIDE_ROW + 2 * j] if j > i else 0
    return 0


# ---- elimination and reflections -----------------------------------------------------------------

cdef void add(const floating* f, floating* x, Py_ssize_t x_row, Py_ssize_t m, const floating* y,
              Py_ssize_t y_row, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """x (m, n) += f (m, k) @ y, real matrices with contiguous rows; those of f are 2 apart"""
    cdef int dtype = dtype_of(x)
    cdef Py_ssize_t width = 2 * lanes[dtype], i, l, c
    cdef Py_ssize_t whole = n // width * width
    if whole:
        panels[dtype](<const char*>f, 2, 1, <const char*>y, y_row, width, <char*>x, x_row, m, k, k,
                      whole, <const char*>x, x_row)
    for i in range(m if whole < n else 0):
        for l in range(k):
            for c in range(whole, n):
                x[i * x_row + c] += f[2 * i + l] * y[l * y_row + c]


cdef inline void divide(floating* x, const floating* by, Py_ssize_t n) noexcept nogil:
    """x (n) := x / by"""
    cdef floating[2] inverse
    cdef floating ratio, divisor, first
    cdef Py_ssize_t i
    invert(by, inverse)
    if isfinite(inverse[0]) and isfinite(inverse[1]):
        for i in range(n):
            scale(x + 2 * i, inverse, x + 2 * i)
        return
    for i in range(n):               # its inverse may be too large where the quotients are not
        if fabs(by[0]) >= fabs(by[1]):
            ratio = by[1] / by[0]
            divisor = by[0] + by[1] * ratio
            first = (x[2 * i] + x[2 * i + 1] * ratio) / divisor
            x[2 * i + 1] = (x[2 * i + 1] - x[2 * i] * ratio) / divisor
        else:
            ratio = by[0] / by[1]
            divisor = by[0] * ratio + by[1]
            first = (x[2 * i] * ratio + x[2 * i + 1]) / divisor
            x[2 * i + 1] = (x[2 * i + 1] * ratio - x[2 * i]) / divisor
        x[2 * i] = first


cdef inline floating size_of(const floating* z) noexcept nogil:
    """|x| + |y|, by which LAPACK, too, finds the largest number of a column"""
    return fabsf(z[0]) + fabsf(z[1]) if floating is float else <floating>(fabs(z[0]) + fabs(z[1]))


cdef inline Py_ssize_t largest(const floating* x, Py_ssize_t n) noexcept nogil:
    """Where of x (n) the first of the largest numbers is, or NaN among zeros"""
    cdef floating[4] most = [0, 0, 0, 0]
    cdef floating size
    cdef Py_ssize_t i, l
    for i in range(n // 4):
        for l in range(4):
            size = size_of(x + 8 * i + 2 * l)
            most[l] = size if size > most[l] else most[l]
    for i in range(n - n % 4, n):
        size = size_of(x + 2 * i)
        most[0] = size if size > most[0] else most[0]
    for l in range(1, 4):
        most[0] = most[l] if most[l] > most[0] else most[0]
    for i in range(n):
        size = size_of(x + 2 * i)
        if size == most[0] if most[0] > 0 else size != size:
            return i
    return 0


cdef inline void exchange(floating* x, Py_ssize_t c, Py_ssize_t other) noexcept nogil:
    """Exchanges two numbers of x"""
    cdef Py_ssize_t k
    for k in range(2):
        x[2 * c + k], x[2 * other + k] = x[2 * other + k], x[2 * c + k]


cdef Py_ssize_t eliminate(floating* p, Py_ssize_t p_row, Py_ssize_t n, Py_ssize_t m,
                          Py_ssize_t* places) noexcept nogil:
    """p (n, m) := L and U of its transpose; the second half of each row of p has room for iy"""
    cdef Py_ssize_t c, k, i, info = 0
    cdef floating[SIDE] f
    cdef floating[2] z
    cdef floating* x
    for c in range(n):
        x = p + 2 * c * p_row
        for k in range(c):
            f[2 * k], f[2 * k + 1] = -x[2 * k], -x[2 * k + 1]
            for i in range(k + 1, c):
                scale(p + 2 * (k * p_row + i), f + 2 * k, z)
                x[2 * i] += z[0]
                x[2 * i + 1] += z[1]
        if c:
            add(f, x + 2 * c, 0, 1, p + 2 * c, p_row, 2 * c, 2 * (m - c))
        places[c] = c + largest(x + 2 * c, m - c)
        for i in range(n if places[c] != c else 0):
            exchange(p + 2 * i * p_row, c, places[c])
            if i < c:
                exchange(p + (2 * i + 1) * p_row, c, places[c])
        if x[2 * c] == 0 and x[2 * c + 1] == 0:
            info = info if info else c + 1
        else:
            divide(x + 2 * (c + 1), x + 2 * c, m - c - 1)
        rotate(x + 2 * (c + 1), x + p_row + 2 * (c + 1), m - c - 1, -1, 1)
    return info


cdef inline double length(const floating* x, Py_ssize_t n) noexcept nogil:
    """The length of x (n), as real numbers"""
    cdef double[LANES] sums
    cdef double total = 0, most = 0
    cdef Py_ssize_t i, l
    for l in range(LANES):
        sums[l] = 0
    for i in range(n // LANES):
        for l in range(LANES):
            sums[l] += <double>x[LANES * i + l] * x[LANES * i + l]
    for i in range(n - n % LANES, n):
        total += <double>x[i] * x[i]
    for l in range(LANES):
        total += sums[l]
    if 1e-280 <= total <= 1e300:
        return sqrt(total)
    for i in range(n):
        most = max(most, fabs(x[i]))
    if most == 0 or not isfinite(most):
        return sqrt(total)
    total = 0
    for i in range(n):
        total += x[i] / most * (x[i] / most)
    return most * sqrt(total)


cdef void reflection(floating* x, floating* y, Py_ssize_t c, Py_ssize_t m,
                     floating* tau) noexcept nogil:
    """y (m) := the vector of the reflection that makes zeros of x (m) below c, and x[c] := what is
    there then, a real number; tau := its factor"""
    cdef double there = length(x + 2 * c, 2 * (m - c))
    cdef floating[2] divisor
    cdef Py_ssize_t i
    cdef bint found = x[2 * c + 1] != 0
    for i in range(2 * (c + 1), 2 * m):
        found = found or x[i] != 0
        y[i] = x[i]
    memset(y, 0, 2 * c * sizeof(floating))
    y[2 * c], y[2 * c + 1] = 1, 0
    tau[0] = tau[1] = 0
    if not found or there == 0:
        return
    there = -there if x[2 * c] >= 0 else there
    divisor[0], divisor[1] = <floating>(x[2 * c] - there), x[2 * c + 1]
    tau[0], tau[1] = <floating>(-divisor[0] / there), <floating>(-divisor[1] / there)
    divide(y + 2 * (c + 1), divisor, m - c - 1)
    x[2 * c], x[2 * c + 1] = <floating>there, 0


cdef inline void multiply(const floating* x, const floating* y, const floating* z, Py_ssize_t n,
                          floating* f) noexcept nogil:
    """f := x @ y and x @ z, for real vectors"""
    cdef floating[LANES] first
    cdef floating[LANES] second
    cdef Py_ssize_t i, l
    for l in range(LANES):
        first[l] = second[l] = 0
    for i in range(n // LANES):
        for l in range(LANES):
            first[l] += x[LANES * i + l] * y[LANES * i + l]
            second[l] += x[LANES * i + l] * z[LANES * i + l]
    for i in range(n - n % LANES, n):
        first[0] += x[i] * y[i]
        second[0] += x[i] * z[i]
    for l in range(1, LANES):
        first[0] += first[l]
        second[0] += second[l]
    f[0], f[1] = first[0], second[0]


cdef void reflect(floating* p, floating* v, Py_ssize_t row, floating* taus, Py_ssize_t n,
                  Py_ssize_t m) noexcept nogil:
    """p (n, m), n columns of m rows: on the diagonal and above it := R, of the QR decomposition. p
    has REFLECTIONS rows, of which the last has room for iy."""
    cdef Py_ssize_t c, k
    cdef floating* y
    cdef floating* turned = p + 2 * (REFLECTIONS - 1) * row
    cdef floating[SIDE] f
    cdef floating[2] tau
    for c in range(n):
        y = v + 2 * c * row
        reflection(p + 2 * c * row, y, c, m, taus + 2 * c)
        memset(y + 2 * m, 0, 2 * (row - m) * sizeof(floating))
        rotate(y + 2 * c, turned + 2 * c, m - c, -1, 1)
        tau[0], tau[1] = -taus[2 * c], taus[2 * c + 1]
        for k in range(c + 1, n):
            multiply(p + 2 * (k * row + c), y + 2 * c, turned + 2 * c, 2 * (m - c), f + 2 * k)
            scale(f + 2 * k, tau, f + 2 * k)
        if c + 1 < n:
            add(f + 2 * (c + 1), p + 2 * ((c + 1) * row + c), 2 * row, n - c - 1, y + 2 * c,
                turned - y, 2, 2 * (m - c))


cdef void build(floating* x, const floating* taus, Py_ssize_t m, Py_ssize_t n,
                Py_ssize_t k) noexcept nogil:
    """The same as `multiply_reflections`"""
    cdef floating[2 * FEW_ROWS] turned
    cdef floating[2] f
    cdef floating[2] tau
    cdef Py_ssize_t c, i, j
    cdef floating* y
    cdef floating* at
    for c in range(k - 1, -1, -1):
        y = x + 2 * c * m
        y[2 * c], y[2 * c + 1] = 1, 0
        rotate(y + 2 * c, turned + 2 * c, m - c, -1, 1)
        tau[0], tau[1] = -taus[2 * c], -taus[2 * c + 1]
        for j in range(c + 1, n):
            at = x + 2 * j * m
            multiply(at + 2 * c, y + 2 * c, turned + 2 * c, 2 * (m - c), f)
            scale(f, tau, f)
            for i in range(2 * c, 2 * m):
                at[i] += f[0] * y[i] + f[1] * turned[i]
        for i in range(c, m):
            scale(y + 2 * i, tau, y + 2 * i)
        y[2 * c] += 1
        memset(y, 0, 2 * c * sizeof(floating))


cdef void multiply_reflections(int dtype, char* x, const char* taus, Py_ssize_t m, Py_ssize_t n,
                               Py_ssize_t k) noexcept nogil:
    if dtype == COMPLEX64:
        build(<float*>x, <const float*>taus, m, n, k)
    else:
        build(<double*>x, <const double*>taus, m, n, k)


cdef void weigh(const floating* s, const floating* taus, floating* t, Py_ssize_t n) noexcept nogil:
    """t (n, n) := minus the conjugate of the triangle T of 1 - V @ T @ V.mH, for s = V.T @ conj(V)
    """
    cdef Py_ssize_t i, j, l
    cdef floating[2] z
    cdef floating[2] total
    cdef floating* at
    for i in range(n):
        memset(t + 2 * i * REFLECTIONS, 0, 2 * n * sizeof(floating))
    for j in range(n):
        for i in range(j):
            total[0] = total[1] = 0
            at = t + 2 * i * REFLECTIONS
            for l in range(i, j):        # conj(s[j, l]) times what is minus the conjugate of T
                z[0], z[1] = s[2 * (j * REFLECTIONS + l)], -s[2 * (j * REFLECTIONS + l) + 1]
                scale(at + 2 * l, z, z)
                total[0] += z[0]
                total[1] += z[1]
            z[0], z[1] = -taus[2 * j], taus[2 * j + 1]
            scale(total, z, at + 2 * j)
        at = t + 2 * j * (REFLECTIONS + 1)
        at[0], at[1] = -taus[2 * j], taus[2 * j + 1]


cdef int find_blocks(str name, void** found) except -1:
    cdef int single = COMPLEX64, double_ = COMPLEX128
    if name == "substitute":
        found[single], found[double_] = <void*>substitute[float], <void*>substitute[double]
    elif name == "factor":
        found[single], found[double_] = <void*>factor[float], <void*>factor[double]
    elif name == "eliminate":
        found[single], found[double_] = <void*>eliminate[float], <void*>eliminate[double]
    elif name == "reflect":
        found[single], found[double_] = <void*>reflect[float], <void*>reflect[double]
    elif name == "weigh":
        found[single], found[double_] = <void*>weigh[float], <void*>weigh[double]
    else:
        raise KeyError(name)
    return 0
