"""Random permutations."""

from libc.stdint cimport int64_t, uint64_t

from tensorlib._core.base.dtypes cimport BOOL, INT64, dtype_object
from tensorlib._core.base.kernels cimport find_function
from tensorlib._core.base.watch cimport watched
from tensorlib._core.base.work cimport run_once
from tensorlib._core.create.creation cimport (
    check_options, chosen_dtype, finish, offered_new, run_over, sized,
)
from tensorlib._core.create.draws cimport DRAW_GRAIN
from tensorlib._core.create.generator cimport (
    Generator, as_examples, chosen, next_draw, sizes_of_batches,
)
from tensorlib._core.create.random_integers cimport largest
from tensorlib._core.create.ranges cimport plain_size
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.copies cimport cast

ctypedef void (*bits_loop)(uint64_t seed, uint64_t offset, uint64_t* y, Py_ssize_t begin,
                           Py_ssize_t end) noexcept nogil

cdef struct BitsDraw:
    uint64_t seed, offset
    uint64_t* y


cdef void draw_bits(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef BitsDraw* draw = <BitsDraw*>context
    raw_bits(draw.seed, draw.offset, draw.y, begin, end)


cdef extern from *:
    """
    #define high_product(a, b) ((uint64_t)(((unsigned __int128)(a) * (b)) >> 64))
    """
    uint64_t high_product(uint64_t a, uint64_t b) noexcept nogil


cdef void shuffle(int64_t* y, const uint64_t* bits, Py_ssize_t n) noexcept nogil:
    """y := the numbers below n in an order that `bits` choose (Fisher and Yates, inside out)."""
    cdef Py_ssize_t i, j
    for i in range(n):
        j = <Py_ssize_t>high_product(bits[i], <uint64_t>i + 1)
        y[i] = y[j]
        y[j] = i


cdef struct Shuffles:
    int64_t* y
    const uint64_t* bits
    Py_ssize_t rows, length


cdef void shuffle_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Shuffles* of = <Shuffles*>context
    cdef Py_ssize_t row
    for row in range(of.rows):
        shuffle(of.y + row * of.length, of.bits + row * of.length, of.length)


cdef bits_loop raw_bits = <bits_loop>find_function("philox", "bits", "uint64")


def randperm(n, *, generator=None, out=None, dtype=None, layout=None, device=None,
             pin_memory=False, requires_grad=False):
    """The integers from 0 to n - 1 in a random order, as int64.

    Shapes: (n,).
    Raises: RuntimeError for a negative n or one beyond the integers that the dtype holds,
    TypeError.
    Source: Durstenfeld, Algorithm 235: Random Permutation (1964), from the inside out.
    """
    cdef Py_ssize_t length
    cdef int id
    cdef Generator source
    cdef tuple sizes
    cdef Tensor x, bits
    cdef BitsDraw draw
    cdef Shuffles shuffles
    if watched:
        done = offered_new("randperm", (n,), {"generator": generator, "dtype": dtype, "out": out},
                           layout, device, pin_memory, requires_grad)
        if done is not NotImplemented:
            return done
    length = plain_size("randperm", "n", n)
    id = chosen_dtype("randperm", dtype, out, INT64)
    source = chosen("randperm", generator)
    sizes = sizes_of_batches("randperm")
    check_options("randperm", layout, device, pin_memory)
    if id == BOOL:
        raise RuntimeError("randperm: not implemented for tensorlib.bool")
    if length - 1 > largest(id):
        raise RuntimeError(f"randperm: n = {length} is too large for {dtype_object(id)}")
    x = sized("randperm", (), (*sizes, length), INT64, device)
    bits = sized("randperm", (), (*sizes, length), INT64, device)
    next_draw(source, x, &draw.seed, &draw.offset)
    draw.y = <uint64_t*>bits.data_pointer
    run_over(draw_bits, &draw, bits, DRAW_GRAIN)
    shuffles.y, shuffles.bits, shuffles.length = <int64_t*>x.data_pointer, draw.y, length
    shuffles.rows = bits.numel_ // length if length else 0
    run_once(shuffle_rows, &shuffles, x.data_pointer, False)
    return as_examples(finish("randperm", cast(x, id), out, requires_grad))
