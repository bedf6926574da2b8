"""Elements of any shape and strides gathered into a contiguous run, or scattered back from it."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from tensorlib._core.base.blocks cimport copy_blocks, copy_run
from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.tiles.loops cimport find_gather, find_reverse, find_scatter, reverse_loop
from tensorlib._core.tiles.plan cimport Operand, Plan, place

cdef enum:
    MANY = 16                # places of a dim that are gone through together, at least
    LONG = 24                # elements with gaps beyond which a row pays for a call of its own
    LONG_BYTES = 64          # and what they take
    REVERSED = 16            # bytes of rows that are reversed by one call
    WIDE = 256               # bytes of a row of one element that are worth a call
    AREA = 2048              # elements of the slabs that are


cdef void move_rows(const Plan* plan, const Operand* operand, const Py_ssize_t* index,
                    Py_ssize_t* at, char* pieces, Py_ssize_t count, bint back) noexcept nogil:
    """Gathers `count` elements from `index` on into `pieces`, or scatters them back."""
    cdef int inner = plan.ndim - 1, d
    cdef Py_ssize_t size = ITEMSIZE[operand.dtype], length, slab
    cdef Py_ssize_t row = plan.dims[inner]
    cdef reverse_loop reverse = NULL
    cdef int outer
    if is_even(plan, operand):               # its rows follow each other: they are one
        if back:
            find_scatter(operand.dtype)(
                pieces, place(operand, plan.ndim, index), operand.steps[inner], count)
        else:
            find_gather(operand.dtype)(
                place(operand, plan.ndim, index), operand.steps[inner], pieces, count)
        return
    outer = slab_dim(plan, operand, &slab)
    if operand.steps[inner] == -size and row * size >= REVERSED and inner and not back:
        reverse = find_reverse(operand.dtype)
    for d in range(plan.ndim):
        at[d] = index[d]
    while count:
        if reverse != NULL and at[inner] == 0 and count >= row:
            length = min(plan.dims[inner - 1] - at[inner - 1], count // row)
            reverse(place(operand, plan.ndim, at), operand.steps[inner - 1], pieces, row, length)
            carry(plan, at, inner - 1, length)
            length *= row
        elif outer >= 0 and count >= slab and begins_slab(plan, at, outer):
            length = min(plan.dims[outer] - at[outer], min(count, AREA) // slab)
            move_slabs(plan, operand, at, outer, slab, length, pieces, back)
            carry(plan, at, outer, length)
            length *= slab
        else:
            length = min(count, plan.dims[inner] - at[inner])
            if back:
                find_scatter(operand.dtype)(
                    pieces, place(operand, plan.ndim, at), operand.steps[inner], length)
            else:
                find_gather(operand.dtype)(
                    place(operand, plan.ndim, at), operand.steps[inner], pieces, length)
            carry(plan, at, inner, length)
        pieces += length * size
        count -= length


cdef inline bint is_even(const Plan* plan, const Operand* operand) noexcept nogil:
    """Whether all elements are as far apart, from each row to the next too."""
    cdef int d
    for d in range(plan.ndim - 1):
        if operand.steps[d] != operand.steps[d + 1] * plan.dims[d + 1]:
            return False
    return True


cdef int slab_dim(const Plan* plan, const Operand* operand, Py_ssize_t* slab) noexcept nogil:
    """A dim with many places, as far inside as there is one; `slab` := the elements of each place.
    -1 where rows are long enough without.

    Of short rows, what a row costs beside its elements is most of the time. So slabs are gone
    through together: for each place in a slab, one loop along this dim.
    """
    cdef int d = plan.ndim - 2
    cdef Py_ssize_t along = operand.steps[plan.ndim - 1], size = ITEMSIZE[operand.dtype]
    slab[0] = plan.dims[plan.ndim - 1]
    if along and along != size and (slab[0] > LONG or slab[0] * size > LONG_BYTES):
        return -1
    while d > 0 and plan.dims[d] < MANY and slab[0] * plan.dims[d] * MANY <= AREA:
        slab[0] *= plan.dims[d]
        d -= 1
    return d if slab[0] * MANY <= AREA else -1


cdef inline bint begins_slab(const Plan* plan, const Py_ssize_t* at, int outer) noexcept nogil:
    cdef int d
    for d in range(outer + 1, plan.ndim):
        if at[d]:
            return False
    return True


cdef inline void carry(const Plan* plan, Py_ssize_t* at, int d, Py_ssize_t count) noexcept nogil:
    """Moves on by `count` places of the dim d, at most to the start of the next row of them."""
    at[d] += count
    while d > 0 and at[d] == plan.dims[d]:
        at[d] = 0
        d -= 1
        at[d] += 1


cdef void move_slabs(const Plan* plan, const Operand* operand, const Py_ssize_t* index, int outer,
                     Py_ssize_t slab, Py_ssize_t count, char* pieces, bint back) noexcept nogil:
    """Gathers `count` slabs from `index` on into `pieces`, or scatters them back."""
    cdef Py_ssize_t at[MAX_NDIM]
    cdef Py_ssize_t size = ITEMSIZE[operand.dtype], step = operand.steps[outer]
    cdef Py_ssize_t slab_bytes = slab * size
    cdef char* x = place(operand, plan.ndim, index)
    cdef char* end = pieces + slab_bytes
    cdef int last = plan.ndim - 1, d
    for d in range(outer + 1, plan.ndim):
        if operand.steps[d]:
            break
    else:
        if not back:
            spread(x, step, operand.dtype, pieces, slab, count)
            return
    if operand.steps[last] == size and plan.dims[last] * size >= 16 and last > outer:
        size *= plan.dims[last]              # whole runs are moved
        last -= 1
    for d in range(plan.ndim):
        at[d] = 0
    while pieces < end:
        if back:
            copy_blocks(pieces, slab_bytes, x, step, count, size)
        else:
            copy_blocks(x, step, pieces, slab_bytes, count, size)
        pieces += size
        d = last
        while d > outer:
            at[d] += 1
            x += operand.steps[d]
            if at[d] < plan.dims[d]:
                break
            x -= at[d] * operand.steps[d]
            at[d] = 0
            d -= 1


cdef void repeat_row(const Operand* operand, Py_ssize_t first, Py_ssize_t row, char* pieces,
                     Py_ssize_t count) noexcept nogil:
    """One row over and over, from its element `first` on, by copies that double in length."""
    cdef Py_ssize_t size = ITEMSIZE[operand.dtype], done = min(row - first, count), length
    find_gather(operand.dtype)(
        operand.data + first * operand.steps[1], operand.steps[1], pieces, done)
    if done < count:
        length = min(first, count - done)
        find_gather(operand.dtype)(operand.data, operand.steps[1], pieces + done * size, length)
        done += length
    double_up(pieces, done * size, count * size)     # what is there is a whole number of rows


cdef inline void double_up(char* pieces, Py_ssize_t done, Py_ssize_t nbytes) noexcept nogil:
    """The first `done` bytes over and over, by copies that double in length."""
    cdef Py_ssize_t length
    while done < nbytes:
        length = min(done, nbytes - done)
        copy_run(pieces, pieces + done, length)
        done += length


cdef void write_out(const char* x, Py_ssize_t down, Py_ssize_t along, int dtype, char* pieces,
                    Py_ssize_t row, Py_ssize_t rows) noexcept nogil:
    """Rows of which each is one element (`along` is 0), or that are all one run (`down` is 0)."""
    cdef Py_ssize_t size = ITEMSIZE[dtype]
    if along:
        copy_run(x, pieces, row * size)
        double_up(pieces, row * size, rows * row * size)
    elif down:
        spread(x, down, dtype, pieces, row, rows)
    else:
        copy_run(x, pieces, size)
        double_up(pieces, size, rows * row * size)


cdef void spread(const char* x, Py_ssize_t step, int dtype, char* y, Py_ssize_t row,
                 Py_ssize_t rows) noexcept nogil:
    """y := for each of the elements x, x + step, ... a row of it.

    Short ones by 16 bytes at a time, also past the end of a row, which the next rows then write
    over; not past the end of the last.
    """
    cdef Py_ssize_t size = ITEMSIZE[dtype], nbytes = row * size, r, k
    cdef Py_ssize_t spare = rows * nbytes - (nbytes + 15) // 16 * 16, whole
    cdef uint64_t bits[2]
    if nbytes >= WIDE:
        for r in range(rows):
            find_gather(dtype)(x + r * step, 0, y + r * nbytes, row)
        return
    whole = 0 if spare < 0 else min(spare // nbytes + 1, rows)
    for r in range(whole):
        if size == 4:
            bits[0] = (<const uint32_t*>x)[0] * <uint64_t>0x100000001
        elif size == 8:
            memcpy(bits, x, 8)
        elif size == 2:
            bits[0] = (<const uint16_t*>x)[0] * <uint64_t>0x1000100010001
        elif size == 1:
            bits[0] = (<const uint8_t*>x)[0] * <uint64_t>0x101010101010101
        else:
            memcpy(bits, x, 16)
        if size != 16:
            bits[1] = bits[0]
        for k in range(0, nbytes, 16):
            memcpy(y + k, bits, 16)
        x += step
        y += nbytes
    for r in range(rows - whole):
        copy_blocks(x + r * step, 0, y + r * nbytes, size, row, size)
