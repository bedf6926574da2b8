# The fold: one algorithm for sums, products and extremes of contiguous memory, for the operations
# `Op` and the dtypes `element` of the file that includes this one. Each pair is
# compiled wherever that file is cimported, so files name only those that they need.
#
# The order of additions is a tree that follows from n and inner alone. Memory is read as rows of
# `LANE_BYTES`; each lane adds up to LEAF rows one after the other, then pairs of leaves are added,
# pairs of pairs, and so on; at the end the lanes of one column are halved until one is left. The
# error thus grows with log n. A narrow slice (inner below the number of lanes) is read as
# (n // k, k * inner), so that rows (inner = 1) and columns are one algorithm. They have functions
# of their own, since most kernels need one of these alone, or have a faster loop for long rows.

cdef enum:
    LANE_BYTES = 256   # four of the widest registers: enough additions in flight to hide latency
    MAX_LANES = 256
    LEAF = 32          # rows added one after the other
    ENDS = 16          # lanes left of each long row before its last additions
    TILE = 512         # columns that go through the tree together: long runs for the prefetcher


cdef inline element lift(Op* op, element x, element c) noexcept nogil:
    """What one element contributes."""
    if Op is Squares:
        return (x - c) * (x - c)
    elif Op is NanSum:
        return x if x == x else 0
    else:
        return x


cdef inline element join(Op* op, element a, element b) noexcept nogil:
    cdef element extreme
    if Op is Product:
        return a * b
    elif Op is Max or Op is Min:
        # In two steps: the first is the processor's own max or min, the second a blend.
        if Op is Max:
            extreme = b if b > a else a
        else:
            extreme = b if b < a else a
        return b if b != b else extreme
    else:
        return a + b


cdef inline void fold_lanes(Op* op, const element* x, const element* c, element* y, Py_ssize_t n,
                            Py_ssize_t stride) noexcept nogil:
    """y[l] := x[0, l] + x[1, l] + ... for n rows of one lane block"""
    cdef Py_ssize_t lanes = LANE_BYTES // sizeof(element)
    cdef element sums[MAX_LANES]
    cdef element shift[MAX_LANES]
    cdef Py_ssize_t i, l
    for l in range(lanes):
        shift[l] = c[l] if Op is Squares else 0
        sums[l] = lift(op, x[l], shift[l])
    for i in range(1, n):
        for l in range(lanes):
            sums[l] = join(op, sums[l], lift(op, x[i * stride + l], shift[l]))
    for l in range(lanes):
        y[l] = sums[l]


cdef inline void fold_tree(Op* op, const element* x, const element* c, element* y, Py_ssize_t width,
                    Py_ssize_t n, Py_ssize_t stride) noexcept nogil:
    """y[j] := x[0, j] + x[1, j] + ..., j < width; width is from one lane block to TILE"""
    cdef Py_ssize_t lanes = LANE_BYTES // sizeof(element)
    cdef Py_ssize_t j = 0
    cdef Py_ssize_t half
    cdef element right[TILE]
    if n <= LEAF:
        while j < width:
            j = min(j, width - lanes)  # the last block overlaps the one before it
            fold_lanes(op, x + j, c + j if Op is Squares else NULL, y + j, n, stride)
            j += lanes
        return
    half = (n // 2 + LEAF - 1) // LEAF * LEAF
    fold_tree(op, x, c, y, width, half, stride)
    fold_tree(op, x + half * stride, c, right, width, n - half, stride)
    if width == lanes:
        for j in range(lanes):
            y[j] = join(op, y[j], right[j])
    else:
        for j in range(width):
            y[j] = join(op, y[j], right[j])


cdef inline void fold_wide(Op* op, const element* x, const element* c, element* y, Py_ssize_t n,
                    Py_ssize_t step, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Columns [begin, end), at least one lane block of them, of rows that are `step` apart."""
    cdef Py_ssize_t lanes = LANE_BYTES // sizeof(element)
    cdef Py_ssize_t j = begin
    cdef Py_ssize_t width
    while j < end:
        width = end - j
        if width > TILE:
            width = TILE if width >= TILE + lanes else width // 2
        fold_tree(op, x + j, c + j if Op is Squares else NULL, y + j, width, n, step)
        j += width


cdef inline void fold_short_rows(Op* op, const element* x, const element* c, element* y,
                                 Py_ssize_t outer, Py_ssize_t n,
                                 Py_ssize_t slice_step) noexcept nogil:
    """Rows of at most one lane block: one lane for each row."""
    cdef Py_ssize_t lanes = LANE_BYTES // sizeof(element)
    cdef element sums[MAX_LANES]
    cdef element shift[MAX_LANES]
    cdef Py_ssize_t i, l, rows
    while outer > 0:
        rows = min(outer, lanes)
        for l in range(rows):
            shift[l] = c[l] if Op is Squares else 0
            sums[l] = lift(op, x[l * slice_step], shift[l])
        for i in range(1, n):
            for l in range(rows):
                sums[l] = join(op, sums[l], lift(op, x[l * slice_step + i], shift[l]))
        for l in range(rows):
            y[l] = sums[l]
        x += rows * slice_step
        y += rows
        if Op is Squares:
            c += rows
        outer -= rows


cdef inline void fold_short(Op* op, const element* x, const element* c, element* y, Py_ssize_t n,
                            Py_ssize_t inner) noexcept nogil:
    """A slice of less than one lane block."""
    cdef Py_ssize_t i, j
    cdef element total, shift
    for j in range(inner):
        shift = c[j] if Op is Squares else 0
        total = lift(op, x[j], shift)
        for i in range(1, n):
            total = join(op, total, lift(op, x[i * inner + j], shift))
        y[j] = total


cdef inline void fold_block_rows(Op* op, const element* x, element* sums, const element* shift,
                                 Py_ssize_t n, Py_ssize_t stride) noexcept nogil:
    """sums := memory of n elements, folded to one lane block in rows of `stride`"""
    cdef Py_ssize_t lanes = LANE_BYTES // sizeof(element)
    # Lanes beyond the stride read what comes next in memory, and are not used.
    cdef Py_ssize_t rows = (n - lanes) // stride + 1
    cdef Py_ssize_t rest = rows * stride
    cdef Py_ssize_t l
    fold_tree(op, x, shift, sums, lanes, rows, stride)
    while rest < n:
        for l in range(min(stride, n - rest)):
            sums[l] = join(op, sums[l], lift(op, x[rest + l], shift[l] if Op is Squares else 0))
        rest += stride


cdef inline void fold_rows(Op* op, const element* x, const element* c, element* y,
                           Py_ssize_t outer, Py_ssize_t n, Py_ssize_t slice_step) noexcept nogil:
    """Rows of one lane block and more: ENDS lanes are left of each, and are folded together."""
    cdef Py_ssize_t lanes = LANE_BYTES // sizeof(element)
    cdef element sums[MAX_LANES]
    cdef element shift[MAX_LANES]
    cdef element ends[ENDS * MAX_LANES]
    cdef Py_ssize_t rows = 0
    cdef Py_ssize_t o, l, half
    for o in range(outer):
        if Op is Squares:
            for l in range(lanes):
                shift[l] = c[o]
        fold_block_rows(op, x + o * slice_step, sums, shift, n, lanes)
        half = lanes
        while half > ENDS:
            half //= 2
            for l in range(half):
                sums[l] = join(op, sums[l], sums[half + l])
        for l in range(ENDS):
            ends[rows * ENDS + l] = sums[l]
        rows += 1
        if rows == MAX_LANES or o == outer - 1:
            if Op is Squares or Op is NanSum:     # the elements are taken as what they give
                fold_short_rows(<Sum*>NULL, ends, <const element*>NULL, y, rows, ENDS, ENDS)
            else:
                fold_short_rows(op, ends, <const element*>NULL, y, rows, ENDS, ENDS)
            y += rows
            rows = 0


cdef inline void fold_narrow(Op* op, const element* x, const element* c, element* y,
                             Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    """A slice whose inner is less than one lane block: k of its rows make one row of lanes."""
    cdef Py_ssize_t lanes = LANE_BYTES // sizeof(element)
    cdef Py_ssize_t k = lanes // inner
    cdef Py_ssize_t l, half
    cdef element sums[MAX_LANES]
    cdef element shift[MAX_LANES]
    if Op is Squares:
        for l in range(lanes):
            shift[l] = c[l % inner]
    fold_block_rows(op, x, sums, shift, n * inner, k * inner)
    while k > 1:
        half = (k + 1) // 2
        for l in range((k - half) * inner):
            sums[l] = join(op, sums[l], sums[half * inner + l])
        k = half
    for l in range(inner):
        y[l] = sums[l]


cdef inline void fold_columns(Op* op, const element* x, const element* c, element* y,
                              Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin,
                              Py_ssize_t end, Py_ssize_t slice_step,
                              Py_ssize_t step) noexcept nogil:
    """y[o, j] := x[o, 0, j] + x[o, 1, j] + ..., begin <= j < end

    x[o, i, j] is at o * slice_step + i * step + j. There are no gaps between the rows of a slice,
    step = inner, unless these are at least one lane block.
    """
    cdef Py_ssize_t lanes = LANE_BYTES // sizeof(element)
    cdef Py_ssize_t o
    for o in range(outer):
        if inner >= lanes:
            fold_wide(op, x, c, y, n, step, begin, end)
        elif n * inner >= lanes:
            fold_narrow(op, x, c, y, n, inner)
        else:
            fold_short(op, x, c, y, n, inner)
        x += slice_step
        y += inner
        if Op is Squares:
            c += inner


cdef inline void fold_lines(Op* op, const element* x, const element* c, element* y,
                            Py_ssize_t outer, Py_ssize_t n, Py_ssize_t slice_step) noexcept nogil:
    """The fold where inner is 1, for rows of any length"""
    if n <= <Py_ssize_t>(LANE_BYTES // sizeof(element)):
        fold_short_rows(op, x, c, y, outer, n, slice_step)
    else:
        fold_rows(op, x, c, y, outer, n, slice_step)
