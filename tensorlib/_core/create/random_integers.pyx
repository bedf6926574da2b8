"""Random integers: drawn as in draws.pyx, from bits of the same generators."""

from cpython.number cimport PyIndex_Check, PyNumber_Index
from libc.stdint cimport int64_t, uint64_t

from tensorlib._core.apply.inplace cimport check_writable
from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT_KIND, INT64, KIND, UINT64, dtype_object,
    is_unsigned,
)
from tensorlib._core.base.kernels cimport find_function
from tensorlib._core.base.watch cimport watched
from tensorlib._core.create.creation cimport (
    Bits, alike, check_options, chosen_dtype, finish, number_bits, offered_new, run_over, sized,
)
from tensorlib._core.create.draws cimport DRAW_GRAIN, with_room
from tensorlib._core.create.generator cimport (
    Generator, as_examples, chosen, next_draw, refuse_shared_draw,
)
from tensorlib._core.create.overwrite cimport histories_of, overwritten
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.interpreters.foreign cimport may_override, overridden_like
from tensorlib._core.interpreters.stack cimport offered
from tensorlib._core.tensor.tensor cimport Tensor, new_like
from tensorlib._core.tiles.copies cimport copy_into

from tensorlib._core.tensor.numbers import OutOfRangeError

ctypedef void (*integer_loop)(uint64_t seed, uint64_t offset, int64_t low, uint64_t span,
                              int64_t* y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil

cdef integer_loop integers = <integer_loop>find_function("philox", "integers", "int64")


# ---- integers ------------------------------------------------------------------------------------

cdef struct IntegerDraw:
    uint64_t seed, offset
    int64_t low
    uint64_t span                # 0 stands for 2**64
    int64_t* y


cdef void draw_integers(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef IntegerDraw* draw = <IntegerDraw*>context
    integers(draw.seed, draw.offset, draw.low, draw.span, draw.y, begin, end)


cdef int draw_between(str name, Tensor x, object low, object high, object generator) except -1:
    """x := integers in [low, high)."""
    cdef IntegerDraw draw
    cdef Generator source = chosen(name, generator)
    cdef Tensor y = x if x.type == INT64 and x.packed else new_like(x, INT64)
    if low >= high:
        raise RuntimeError(f"{name}: expects low < high, got low={low} and high={high}")
    for bound in (low, high - 1):
        check_bound(name, bound, x.type)
    next_draw(source, x, &draw.seed, &draw.offset)
    draw.low, draw.span = <int64_t><uint64_t>(low % 2**64), (high - low) % 2**64
    draw.y = <int64_t*>y.data_pointer
    run_over(draw_integers, &draw, y, DRAW_GRAIN)
    return 0 if y is x else copy_into(x, y)


cdef int check_bound(str name, object bound, int dtype) except -1:
    cdef Bits bits
    if dtype != UINT64:
        number_bits(name, bound, INT64, &bits)
    if dtype == BOOL and not 0 <= bound <= 1:
        raise OutOfRangeError(f"{name}: {bound} does not fit in tensorlib.bool")
    return number_bits(name, bound, dtype, &bits)


cdef object whole(str name, str argument, object value):
    if not PyIndex_Check(value):
        raise TypeError(f"{name}: {argument} must be an int, not {type(value).__name__}")
    return PyNumber_Index(value)


def randint(low=None, high=None, size=None, *, generator=None, out=None, dtype=None, layout=None,
            device=None, pin_memory=False, requires_grad=False):
    """Random integers in [low, high), as int64.

    `randint(high, size)` begins at 0. Shapes: the sizes given.
    Raises: RuntimeError unless low < high, TypeError for bounds that are not ints, OutOfRangeError
    for those that the dtype can't hold.
    Source: Lemire, "Fast Random Integer Generation in an Interval", ACM Transactions on Modeling
    and Computer Simulation 29(1), 2019: the product of 64 random bits, without the rejection.
    """
    if size is None:
        low, high, size = 0, low, high
    if watched:
        done = offered_new("randint", (low, high, size), {
            "generator": generator, "dtype": dtype, "out": out}, layout, device,
            pin_memory, requires_grad)
        if done is not NotImplemented:
            return done
    check_options("randint", layout, device, pin_memory)
    if high is None:                                # of high and size alone
        low, high = 0, low
    if high is None or size is None:
        raise TypeError("randint: takes (high, size) or (low, high, size)")
    low = whole("randint", "low", 0 if low is None else low)
    high = whole("randint", "high", high)
    x = sized("randint", (), size, chosen_dtype("randint", dtype, out, INT64), device)
    x = with_room("randint", x)
    draw_between("randint", x, low, high, generator)
    return as_examples(finish("randint", x, out, requires_grad))


def randint_like(input, low=None, high=None, *, generator=None, dtype=None, layout=None,
                 device=None, pin_memory=False, requires_grad=False, memory_format=None):
    """Random integers in [low, high), of the sizes and the dtype of `input`.

    `randint_like(input, high)` begins at 0. Shapes: (*) -> (*).
    Raises: RuntimeError unless low < high, TypeError, OutOfRangeError.
    """
    if may_override(input):
        done = overridden_like(randint_like, (input, low) if high is None else (input, low, high),
                               dtype, layout, device, pin_memory, requires_grad, memory_format,
                               generator)
        if done is not NotImplemented:
            return done
    if watched:
        done = offered_new("randint_like", (input, low, high), {
            "generator": generator, "dtype": dtype}, layout, device, pin_memory, requires_grad,
            input, memory_format)
        if done is not NotImplemented:
            return done
    if high is None:
        low, high = 0, low
    low = whole("randint_like", "low", 0 if low is None else low)
    high = whole("randint_like", "high", high)
    x = alike("randint_like", input, dtype, layout, device, pin_memory, memory_format)
    x = with_room("randint_like", x)
    draw_between("randint_like", x, low, high, generator)
    return as_examples(finish("randint_like", x, None, requires_grad))


def random_(Tensor self, from_=None, to=..., *, generator=None):
    """This tensor, filled with integers in [from, to).

    `random_(to)` begins at 0; without `to`, and in `random_(from, None)`, they reach the largest
    integer that the dtype holds exactly.
    Gradient: the old elements get zero. Raises: RuntimeError unless from < to, OutOfRangeError.
    """
    if watched:
        given = (self, from_) if to is Ellipsis else (self, from_, to)
        done = offered(None, "random_", given, {"generator": generator})
        if done is not NotImplemented:
            return done
    if to is Ellipsis:
        from_, to = None, from_
    from_ = 0 if from_ is None else whole("random_", "from", from_)
    to = largest(self.type) + 1 if to is None else whole("random_", "to", to)
    check_writable("random_", self, mode().grad)
    refuse_shared_draw("random_")
    histories = histories_of(self, None)
    draw_between("random_", self, from_, to, generator)
    overwritten(self, histories)
    return self


cdef object largest(int dtype):
    """The largest integer up to which a dtype holds all of them."""
    if dtype == BOOL:
        return 1
    if KIND[dtype] == FLOAT_KIND:
        return {FLOAT16: 2**11, BFLOAT16: 2**8, FLOAT32: 2**24}.get(dtype, 2**53)
    return 2**(8 * dtype_object(dtype).itemsize - (not is_unsigned(dtype))) - 1
