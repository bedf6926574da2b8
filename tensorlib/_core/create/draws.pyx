"""Random tensors: numbers drawn from a generator by the kernels.

Element i of a draw is a function of (seed, offset, i) alone, counted in row-major order: the same
for any layout and any number of threads. Each draw takes the generator's offset and adds one to it.
"""

from libc.math cimport isfinite, sqrt
from libc.stdint cimport uint64_t

from tensorlib._core.apply.inplace cimport check_writable
from tensorlib._core.base.dtypes cimport (
    BFLOAT16, COMPLEX_KIND, FLOAT16, FLOAT32, FLOAT64, FLOAT_KIND, KIND, default_float,
    dtype_object, real_of,
)
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.shape cimport MAX_NDIM, broadcast
from tensorlib._core.base.watch cimport watched
from tensorlib._core.create.creation cimport (
    Bits, alike, check_options, chosen_dtype, finish, number_bits, offered_new, plain_number,
    run_over, sized,
)
from tensorlib._core.create.generator cimport (
    Generator, as_examples, chosen, next_draw, refuse_shared_draw, sizes_of_batches,
)
from tensorlib._core.create.overwrite cimport histories_of, overwritten
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.interpreters.foreign cimport (
    may_override, overridden, overridden_like, representative,
)
from tensorlib._core.interpreters.stack cimport offered
from tensorlib._core.tensor.tensor cimport Tensor, new_like
from tensorlib._core.tiles.copies cimport cast, copy_into
from tensorlib._core.tiles.loops cimport find_cast

from tensorlib._core.interpreters.recording import UnsupportedDtype
from tensorlib._core.layout.reinterpret import as_real


# ---- drawing real numbers ------------------------------------------------------------------------

ctypedef void (*float_loop)(uint64_t seed, uint64_t offset, float* y, Py_ssize_t begin,
                            Py_ssize_t end) noexcept nogil
ctypedef void (*double_loop)(uint64_t seed, uint64_t offset, double* y, Py_ssize_t begin,
                             Py_ssize_t end) noexcept nogil

cdef enum Law:
    UNIFORM                      # min(scale * u + shift, top), u in [0, 1)
    NORMAL                       # scale * z + shift
    BELOW                        # u < scale, as 0 or 1

cdef struct Draw:
    Law law
    uint64_t seed, offset
    void* y
    double scale, shift, top
    double levels                # how many values u takes, for half types; 0: no limit
    float_loop floats
    double_loop doubles

cdef void* loops[2][2]               # uniform and normal; float32 and float64
find_pairs("philox", ("uniform", "normal"), loops[0])


cdef inline void transform(const Draw* draw, floating* y, Py_ssize_t begin,
                           Py_ssize_t end) noexcept nogil:
    """How a distribution is computed from the numbers of the kernel."""
    cdef floating scale = <floating>draw.scale, shift = <floating>draw.shift
    cdef floating top = <floating>draw.top, levels = <floating>draw.levels, value
    cdef Py_ssize_t i
    if draw.levels:
        for i in range(begin, end):
            y[i] = <floating>(<int>(y[i] * levels)) / levels
    if draw.law == BELOW:
        for i in range(begin, end):
            y[i] = y[i] < scale
    elif draw.law == NORMAL and (scale != 1 or shift != 0):
        for i in range(begin, end):
            y[i] = y[i] * scale + shift
    elif draw.law == UNIFORM and (scale != 1 or shift != 0):
        for i in range(begin, end):
            value = y[i] * scale + shift
            y[i] = top if value > top else value


cdef void draw_floats(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Draw* draw = <Draw*>context
    draw.floats(draw.seed, draw.offset, <float*>draw.y, begin, end)
    transform(draw, <float*>draw.y, begin, end)


cdef void draw_doubles(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Draw* draw = <Draw*>context
    draw.doubles(draw.seed, draw.offset, <double*>draw.y, begin, end)
    transform(draw, <double*>draw.y, begin, end)


cdef int draw_reals(Tensor x, Generator generator, Draw* draw) except -1:
    """x := numbers of the distribution; dtypes without a kernel are cast from float32."""
    cdef Tensor y = x
    if not x.packed or (x.type != FLOAT32 and x.type != FLOAT64):
        y = new_like(x, FLOAT64 if x.type == FLOAT64 else FLOAT32)
    next_draw(generator, x, &draw.seed, &draw.offset)
    draw.y = y.data_pointer
    draw.levels = 0
    if draw.law != NORMAL and x.type == FLOAT16:     # so that no value rounds up to 1
        draw.levels = 2048
    elif draw.law != NORMAL and x.type == BFLOAT16:
        draw.levels = 256
    draw.floats = <float_loop>loops[draw.law == NORMAL][0]
    draw.doubles = <double_loop>loops[draw.law == NORMAL][1]
    if y.type == FLOAT32:
        run_over(draw_floats, draw, y, DRAW_GRAIN)
    else:
        run_over(draw_doubles, draw, y, DRAW_GRAIN)
    if y is not x:
        copy_into(x, y)
    return 0


cdef int check_real(str name, Tensor x) except -1:
    if KIND[x.type] != FLOAT_KIND:
        raise UnsupportedDtype(f"{name}: not implemented for {dtype_object(x.type)}; the dtype "
                               "must be a floating one")
    return 0


cdef int check_inexact(str name, Tensor x) except -1:
    if KIND[x.type] < FLOAT_KIND:
        raise UnsupportedDtype(f"{name}: not implemented for {dtype_object(x.type)}; the dtype "
                               "must be a floating or a complex one")
    return 0


cdef int draw_uniform(str name, Tensor x, double low, double high, object generator) except -1:
    cdef Draw draw
    cdef Generator chosen_one = chosen(name, generator)
    check_inexact(name, x)
    if KIND[x.type] == COMPLEX_KIND:         # both parts, each by itself
        return draw_uniform(name, as_real(x), low, high, generator)
    draw.law = UNIFORM
    draw.scale, draw.shift, draw.top = high - low, low, below(high, x.type)
    if low == high:
        draw.top = high
    draw_reals(x, chosen_one, &draw)
    return 0


cdef double below(double value, int dtype) except? -1:
    """The largest number of a floating dtype below `value`."""
    cdef Bits bits
    cdef uint64_t sign = <uint64_t>1 << (15 if dtype == FLOAT16 or dtype == BFLOAT16
                                         else 31 if dtype == FLOAT32 else 63)
    cdef double found
    number_bits("uniform_", value, dtype, &bits)
    find_cast(dtype, FLOAT64)(&bits, &found, 1)
    if found < value:
        return found
    if found == 0:
        bits.low = sign | 1
    elif bits.low & sign:
        bits.low += 1
    else:
        bits.low -= 1
    find_cast(dtype, FLOAT64)(&bits, &found, 1)
    return found


cdef int draw_normal(str name, Tensor x, double mean, double std, object generator) except -1:
    cdef Draw draw
    cdef Generator chosen_one = chosen(name, generator)
    check_inexact(name, x)
    if not std >= 0:
        raise RuntimeError(f"{name}: std must be 0 or more, got {std}")
    if KIND[x.type] == COMPLEX_KIND:         # each part has half of the variance
        return draw_normal(name, as_real(x), mean, std * sqrt(0.5), generator)
    draw.law = NORMAL
    draw.scale, draw.shift, draw.top = std, mean, 0
    draw_reals(x, chosen_one, &draw)
    return 0


cdef Tensor with_room(str name, Tensor x):
    """`x`, or a tensor with one for each example, where examples draw numbers of their own."""
    cdef tuple sizes = sizes_of_batches(name)
    if not sizes:
        return x
    return sized(name, (), sizes + tuple(x.shape), x.type, None, x)


cdef object draw_new(str name, Law law, tuple parameters, tuple sizes, object size,
                     object generator, object out, object dtype, object layout, object device,
                     object pin_memory, object requires_grad):
    """A new tensor of numbers of a law: `parameters` are its mean and std, or None for 0 and 1."""
    cdef double first = 0, second = 1
    if watched:
        given = ((*parameters, size) if parameters is not None
                 else sizes if size is None else (size,))
        done = offered_new(name, given, {"generator": generator, "dtype": dtype, "out": out},
                           layout, device, pin_memory, requires_grad)
        if done is not NotImplemented:
            return done
    check_options(name, layout, device, pin_memory)
    x = sized(name, sizes, size, chosen_dtype(name, dtype, out, default_float()), device)
    if parameters is not None:
        first = plain_number(name, "mean", parameters[0])
        second = plain_number(name, "std", parameters[1])
    return drawn(name, law, x, first, second, generator, out, requires_grad)


cdef object draw_like(str name, Law law, object input, object generator, object dtype,
                      object layout, object device, object pin_memory, object requires_grad,
                      object memory_format):
    """A new tensor like `input` of numbers of a law with the parameters 0 and 1."""
    if may_override(input):
        done = overridden_like(rand_like if law == UNIFORM else randn_like, (input,), dtype, layout,
                               device, pin_memory, requires_grad, memory_format, generator)
        if done is not NotImplemented:
            return done
    if watched:
        done = offered_new(name, (input,), {"generator": generator, "dtype": dtype}, layout, device,
                           pin_memory, requires_grad, input, memory_format)
        if done is not NotImplemented:
            return done
    x = alike(name, input, dtype, layout, device, pin_memory, memory_format)
    return drawn(name, law, x, 0, 1, generator, None, requires_grad)


cdef object drawn(str name, Law law, Tensor x, double first, double second, object generator,
                  object out, object requires_grad):
    """`x`, or `out`, after it got numbers of the law."""
    x = with_room(name, x)
    if law == UNIFORM:
        draw_uniform(name, x, first, second, generator)
    else:
        draw_normal(name, x, first, second, generator)
    return as_examples(finish(name, x, out, requires_grad))


def rand(*sizes, size=None, generator=None, out=None, dtype=None, layout=None, device=None,
         pin_memory=False, requires_grad=False):
    """Random numbers, uniform in [0, 1).

    Shapes: the sizes given, one by one or as a sequence.
    Raises: RuntimeError for integer dtypes and for sizes that are negative or too large, TypeError.
    Source: Salmon, Moraes, Dror & Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011).
    """
    return draw_new("rand", UNIFORM, None, sizes, size, generator, out, dtype, layout, device,
                    pin_memory, requires_grad)


def randn(*sizes, size=None, generator=None, out=None, dtype=None, layout=None, device=None,
          pin_memory=False, requires_grad=False):
    """Random numbers, normal of mean 0 and variance 1.

    Shapes: the sizes given, one by one or as a sequence.
    Raises: RuntimeError for integer dtypes and for sizes that are negative or too large, TypeError.
    Source: Box & Muller, A Note on the Generation of Random Normal Deviates (1958), on the numbers
    of `rand`.
    """
    return draw_new("randn", NORMAL, None, sizes, size, generator, out, dtype, layout, device,
                    pin_memory, requires_grad)


def normal_numbers(mean, std, size, *, generator=None, out=None, dtype=None, layout=None,
                   device=None, pin_memory=False, requires_grad=False):
    """As `randn`, with this mean and standard deviation: what `normal` does for numbers."""
    return draw_new("normal", NORMAL, (mean, std), (), size, generator, out, dtype, layout, device,
                    pin_memory, requires_grad)


def rand_like(input, *, generator=None, dtype=None, layout=None, device=None, pin_memory=False,
              requires_grad=False, memory_format=None):
    """Random numbers, uniform in [0, 1), of the sizes and the dtype of `input`.

    Shapes: (*) -> (*). Raises: RuntimeError for integer dtypes, TypeError for what is not a tensor.
    """
    return draw_like("rand_like", UNIFORM, input, generator, dtype, layout, device, pin_memory,
                     requires_grad, memory_format)


def randn_like(input, *, generator=None, dtype=None, layout=None, device=None, pin_memory=False,
               requires_grad=False, memory_format=None):
    """Random numbers, normal of mean 0 and variance 1, of the sizes and the dtype of `input`.

    Shapes: (*) -> (*). Raises: RuntimeError for integer dtypes, TypeError for what is not a tensor.
    """
    return draw_like("randn_like", NORMAL, input, generator, dtype, layout, device, pin_memory,
                     requires_grad, memory_format)


def uniform_(Tensor self, from_=0.0, to=1.0, *, generator=None):
    """This tensor, filled with uniform numbers in [from, to).

    Gradient: the old elements get zero. Raises: RuntimeError for bounds out of order or not finite.
    """
    cdef double low = plain_number("uniform_", "from", from_)
    cdef double high = plain_number("uniform_", "to", to)
    cdef Bits bits
    if watched:
        done = offered(None, "uniform_", (self, from_, to), {"generator": generator})
        if done is not NotImplemented:
            return done
    check_writable("uniform_", self, mode().grad)
    refuse_shared_draw("uniform_")
    check_inexact("uniform_", self)
    if not low <= high or not isfinite(high - low):
        raise RuntimeError(
            f"uniform_: expects from <= to and a finite to - from, got from={low} and to={high}")
    for bound in (low, high, high - low):
        number_bits("uniform_", bound, real_of(self.type), &bits)     # raises for overflow
    histories = histories_of(self, None)
    draw_uniform("uniform_", self, low, high, generator)
    overwritten(self, histories)
    return self


def normal_(Tensor self, mean=0.0, std=1.0, *, generator=None):
    """This tensor, filled with normal numbers of this mean and standard deviation.

    Gradient: the old elements get zero. Raises: RuntimeError for a negative `std`.
    """
    if watched:
        done = offered(None, "normal_", (self, mean, std), {"generator": generator})
        if done is not NotImplemented:
            return done
    mean, std = plain_number("normal_", "mean", mean), plain_number("normal_", "std", std)
    check_writable("normal_", self, mode().grad)
    refuse_shared_draw("normal_")
    histories = histories_of(self, None)
    draw_normal("normal_", self, mean, std, generator)
    overwritten(self, histories)
    return self


# ---- yes or no -----------------------------------------------------------------------------------

def bernoulli_(Tensor self, p=0.5, *, generator=None):
    """This tensor, filled with 1 with probability `p`, and with 0 otherwise.

    `p` is a number or a tensor that broadcasts. Gradient: the old elements get zero.
    Raises: RuntimeError unless p is in [0, 1].
    """
    if watched:
        done = offered(None, "bernoulli_", (self, p), {"generator": generator})
        if done is not NotImplemented:
            return done
    if not isinstance(p, Tensor):
        p = plain_number("bernoulli_", "p", p)
    check_writable("bernoulli_", self, mode().grad)
    refuse_shared_draw("bernoulli_")
    histories = histories_of(self, None)
    draw_truths("bernoulli_", self, p, chosen("bernoulli_", generator))
    overwritten(self, histories)
    return self


cdef int draw_truths(str name, Tensor x, object p, Generator generator) except -1:
    """x := 1 with probability `p`, a number or a tensor that broadcasts, else 0."""
    if isinstance(p, Tensor):                # its gradient would be zero: see `bernoulli`
        if (<Tensor>p).ndim_:
            return draw_each(name, x, <Tensor>p, generator)
        p = (<Tensor>p).detach()
    return draw_below(x, plain_number(name, "p", p), generator)


cdef int draw_below(Tensor x, double p, Generator generator) except -1:
    cdef Draw draw
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_: p must be in [0, 1], got {p}")
    draw.law = BELOW
    draw.scale, draw.shift, draw.top = p, 0, 1
    return draw_reals(x, generator, &draw)


def bernoulli(input, p=None, *, generator=None, out=None):
    """1 with the probability that each element of `input` gives, else 0; or with probability `p`.

    out: of any dtype. Shapes: (*) -> (*).
    Raises: RuntimeError unless the probabilities are in [0, 1] and of a floating dtype, TypeError.

    >>> tensorlib.bernoulli(tensorlib.tensor([0., 1.]))
    tensor([0., 1.])
    """
    cdef Tensor x
    if may_override(input):
        done = overridden(bernoulli, (input,) if p is None else (input, p), {
            name: value for name, value in (("generator", generator), ("out", out))
            if value is not None})
        if done is not NotImplemented:
            return done
    if watched:
        done = offered(None, "bernoulli", (input, p), {"generator": generator, "out": out})
        if done is not NotImplemented:
            return done
    x = alike("bernoulli", input, None, None, None, False, None)
    if p is None and not isinstance(input, Tensor):       # probabilities of each example
        return drawn_below(x, input, generator)
    if p is None:
        check_real("bernoulli", x)
    x = with_room("bernoulli", x)
    draw_truths("bernoulli", x, input if p is None else p, chosen("bernoulli", generator))
    if isinstance(out, Tensor):
        x = cast(x, (<Tensor>out).type)
    return as_examples(finish("bernoulli", x, out, False))


cdef object drawn_below(Tensor like, object p, object generator):
    """1 where a uniform number is below the element of `p`, a tensor or a proxy, else 0."""
    check_real("bernoulli", like)
    for bound in (p < 0, p > 1):
        if bool(representative("bernoulli", bound, True).any()):
            raise RuntimeError("bernoulli: probabilities must be in [0, 1]")
    numbers = rand(like.shape, generator=generator, dtype=float)
    return (numbers < p).to(dtype_object(like.type))


cdef int draw_each(str name, Tensor x, Tensor p, Generator generator) except -1:
    """x := 1 where a uniform number is below the element of `p`, else 0."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Tensor chances = new_like(x, FLOAT64), numbers = new_like(x, FLOAT64)
    cdef double* chance = <double*>chances.data_pointer
    cdef double* number = <double*>numbers.data_pointer
    cdef Py_ssize_t i
    cdef Draw draw
    cdef int ndim = broadcast(name, x.ndim_, x.dims, p.ndim_, p.dims, dims)
    for i in range(ndim):
        if ndim != x.ndim_ or dims[i] != x.dims[i]:
            raise RuntimeError(f"{name}: p of shape {tuple(p.shape)} does not broadcast to "
                               f"{tuple(x.shape)}")
    copy_into(chances, p)
    for i in range(x.numel_):
        if not 0 <= chance[i] <= 1:
            raise RuntimeError(f"{name}: probabilities must be in [0, 1], got {chance[i]}")
    draw.law = UNIFORM
    draw.scale, draw.shift, draw.top = 1, 0, 1
    draw_reals(numbers, generator, &draw)
    for i in range(x.numel_):
        number[i] = number[i] < chance[i]
    return copy_into(x, numbers)
