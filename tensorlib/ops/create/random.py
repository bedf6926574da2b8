"""Random tensors, and the generators they are drawn from."""

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.apply.out_argument import store_out
from tensorlib._core.arrays.as_numbers import differentiating
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.settings import Held
from tensorlib._core.base.shape import broadcast_shapes
from tensorlib._core.create import draws, random_integers, randperm
from tensorlib._core.create.generator import (
    as_examples, default_generator, set_plan, sizes_of_batches)
from tensorlib._core.interpreters.foreign import elements_known, proxied
from tensorlib._core.reduce.search import insertion_places
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.create.creation import as_numpy, sized
from tensorlib.ops.declare import composite, publish
from tensorlib.ops.foreign import within_memory
from tensorlib.ops.samples import calls, given, refusals, refused_calls
from tensorlib.ops.shape.joining import cat
from tensorlib.ops.value_checks import value_check

INT32, INT64, FLOAT64 = (BY_NAME[name] for name in ("int32", "int64", "float64"))
inf = float("inf")


# ---- what the declarations share -----------------------------------------------------------------
# The reference of what is random gives the least and the greatest that each element may be.

def between(low, high):
    """The reference of a function of sizes."""
    return sized(lambda shape, dtype: (np.full(shape, low, dtype), np.full(shape, high, dtype)))


def alike(low, high):
    """The reference of a function of a tensor whose sizes are taken."""
    def filled(x, value):
        full = np.full_like(x, value)
        if full.dtype.kind == "c":           # both parts are drawn
            full.imag = value
        return full
    return lambda x, *args: (filled(x, low), filled(x, high))


SIZES = calls((2, 3), ((2, 3),), ([4],), ((),), (0, 3), ({"size": (2,)},),
              ((5,), {"dtype": FLOAT64}))
BAD_SIZES = refused_calls((RuntimeError, -1), (TypeError, 2.5), (TypeError,),
                          (RuntimeError, 2, {"dtype": INT64}))
SHAPES = given(((2, 3),), ((),), ((0, 3),))


def drawn(function, **declared):
    """Declares a compiled function that draws, whose signature and docstring are its own."""
    return composite(random=True, method=False, **declared)(function)


# ---- drawn from one distribution -----------------------------------------------------------------

drawn(draws.rand, tensors=(), draws=("size",), reference=between(0, 1), samples=SIZES,
      errors=BAD_SIZES)
drawn(draws.randn, tensors=(), draws=("size",), reference=between(-inf, inf), samples=SIZES,
      errors=BAD_SIZES)
drawn(draws.rand_like, tensors=("input",), draws=(), takes="floating", reference=alike(0, 1),
      samples=SHAPES, complex=True)
drawn(draws.randn_like, tensors=("input",), draws=(), takes="floating",
      reference=alike(-inf, inf), samples=SHAPES, complex=True)


def integers(low, high, size=None, dtype=None):
    """The reference of `randint`."""
    if size is None:
        low, high, size = 0, low, high
    dtype = as_numpy(dtype, np.int64)
    return np.full(size, low, dtype), np.full(size, high - 1, dtype)


drawn(random_integers.randint, tensors=(), draws=("low", "high", "size"), reference=integers,
      samples=calls((5, (3,)), (-2, 4, (2, 3)), (3, {"high": 4, "size": ()}), (1, (0,)),
                    (7, (2,), {"dtype": INT32}), (7, (2,), {"dtype": FLOAT64})),
      errors=refused_calls((RuntimeError, 0, (2,)), (RuntimeError, 3, 3, (2,)), (TypeError, 3),
                           (TypeError, 2.5, (2,)), (OverflowError, 2**40, (2,), {"dtype": INT32})))
drawn(random_integers.randint_like, tensors=("input",), draws=("low", "high"),
      takes="integer floating", complex=True,
      reference=lambda x, *bounds: tuple(y.astype(x.dtype) for y in integers(*bounds, x.shape)),
      samples=given(((2, 3), 5), ((4,), 2, 9), ((0, 3), 1)),
      errors=refusals((RuntimeError, (2,), 0), (TypeError, (2,), 2.5)))
drawn(randperm.randperm, tensors=(), draws=("n",),
      reference=lambda n, dtype=None: (np.zeros(n, as_numpy(dtype, np.int64)),
                                       np.full(n, n - 1, as_numpy(dtype, np.int64))),
      samples=calls((5,), (0,), (1,), (4, {"dtype": INT32})),
      errors=refused_calls((RuntimeError, -1), (TypeError, 2.5),
                           (RuntimeError, 300, {"dtype": BY_NAME["uint8"]})))
composite(random=True, tensors=("input",), draws=("p",),
          reference=alike(0, 1), samples=given(((2, 3), 0.5), ((), 1.0), ((0, 2), 0.0)),
          complex=True,
          errors=refusals((RuntimeError, (2,), 1.5), (RuntimeError, (2,), -0.5),
                          (TypeError, (2,), "a")))(draws.bernoulli)

for _function in (draws.uniform_, draws.normal_, random_integers.random_, draws.bernoulli_):
    publish(_function.__name__, _function, _function.__doc__, public=False)


# ---- drawn with tensors of parameters ------------------------------------------------------------

def anything(mean, std, size=None, dtype=None):
    """The reference of `normal`."""
    given = [x for x in (mean, std) if isinstance(x, np.ndarray)]
    shape = np.broadcast_shapes(*(x.shape for x in given)) if given else size
    dtype = given[0].dtype if given else as_numpy(dtype)
    return np.full(shape, -inf, dtype), np.full(shape, inf, dtype)


def dtype_of_normal(*parameters, dtype=None):
    """The dtype of what `normal` gives: that of its first tensor."""
    return next((x.dtype for x in parameters if isinstance(x, Tensor)), BY_NAME["float32"])


def parameters(rng):
    """Means and standard deviations: tensors that broadcast, or one of them or both numbers."""
    for shape, other in (((2, 3), (3,)), ((4, 1), (1, 2)), ((), ()), ((0, 2), (2,))):
        yield (rng.uniform(-2, 2, shape), rng.uniform(0, 2, other)), {}
    yield (0.5, rng.uniform(0, 2, (3,))), {}
    yield (rng.uniform(-2, 2, (3,)), 0.5), {}
    yield (1.0, 2.0, (2, 3)), {}


@composite(random=True, tensors=(), draws=("mean", "std", "size"), method=False,
           takes="floating", reference=anything, samples=parameters, result_dtype=dtype_of_normal,
           errors=refusals((RuntimeError, (3,), np.ones(2)), (RuntimeError, (3,), -1.0),
                           (TypeError, (3,), 1.0, (3,)),
                           (RuntimeError, (3,), np.ones(3, np.int64))), checks_values=True)
def normal(mean=0.0, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None,
           device=None, pin_memory=False, requires_grad=False):
    """Random numbers, normal with this mean and standard deviation.

    `mean` and `std` are tensors that broadcast, or numbers; two numbers take a `size`.
    Shapes: (*), (*) -> (*), with broadcasting.
    Gradient: none. Where a transform differentiates a mean or std, that is refused:
    `mean + std * randn(shape)` has the gradient.
    Raises: RuntimeError for a negative `std` or shapes that do not broadcast, TypeError.
    """
    if differentiating() and any(x.requires_grad for x in (mean, std) if isinstance(x, Tensor)):
        raise RuntimeError("normal: mean or std requires grad, and normal has no gradient; use "
                           "mean + std * randn(shape), or detach() them if none is wanted")
    tensors = [x.detach() for x in (mean, std) if isinstance(x, Tensor)]
    if bool(tensors) == (size is not None):
        raise TypeError("normal: takes a size if mean and std are numbers, and only then")
    if not tensors:
        return draws.normal_numbers(
            mean, std, size, generator=generator, out=out, dtype=dtype, layout=layout,
            device=device, pin_memory=pin_memory, requires_grad=requires_grad)
    if not all(x.is_floating_point() for x in tensors):
        raise UnsupportedDtype("normal: mean and std must have floating dtypes, got "
                               f"{' and '.join(str(x.dtype) for x in tensors)}")
    mean, std = (x.detach() if isinstance(x, Tensor) else x for x in (mean, std))
    if isinstance(std, Tensor):
        deviations_are_not_negative(std)
    elif not std >= 0:
        raise RuntimeError("normal: all elements of std must be 0 or more")
    shape = broadcast_shapes("normal", tensors[0].shape, tensors[-1].shape)
    drawn = draws.randn(shape, generator=generator, dtype=tensors[0].dtype,
                        device=tensors[0].device) * std + mean
    return drawn if out is None else store_out("normal", (), drawn, out)


@value_check
def deviations_are_not_negative(std):
    """Raises RuntimeError for a negative deviation."""
    if not (std >= 0).all():
        raise RuntimeError("normal: all elements of std must be 0 or more")


def chances(*cases):
    """Rows of probabilities, some of them 0, and how many samples to draw."""
    def generate(rng):
        for shape, *attributes in cases:
            weights = np.ones(shape)
            weights[..., 1] = 0
            yield (weights, *attributes), {}
    return generate


def places(x, num_samples, replacement=False):
    """The reference of `multinomial`."""
    shape = (*x.shape[:-1], num_samples)
    return np.zeros(shape, np.int64), np.full(shape, x.shape[-1] - 1)


@composite(random=True, tensors=("input",), takes="floating", reference=places,
           samples=chances(((4,), 2), ((3, 4), 3), ((2, 3), 5, True)),
           errors=refusals((RuntimeError, (2, 2, 2), 1), (RuntimeError, (3,), 4),
                           (RuntimeError, (3,), 0), (RuntimeError, (0,), 1)),
           checks_values=True, whole=True)
def multinomial(input: Tensor, num_samples, replacement=False, *, generator=None, out=None):
    """Indices drawn with the probabilities in `input`, a vector or the rows of a matrix, as int64.

    The probabilities need not sum to 1. Shapes: (N,) -> (num_samples,); (B, N) -> (B, num_samples).
    Raises: RuntimeError for a row that is not a distribution, or for more samples than there are
    indices, unless with `replacement`.
    Source: without replacement, Efraimidis and Spirakis, "Weighted random sampling with a
    reservoir" (2006); with it, inversion: Devroye, Non-Uniform Random Variate Generation (1986).

    >>> tensorlib.multinomial(tensorlib.tensor([0., 1., 0.]), 2, replacement=True)
    tensor([1, 1])
    """
    if not input.is_floating_point() or input.ndim not in (1, 2):
        raise RuntimeError(
            "multinomial: input must be a vector or a matrix of a floating dtype, got "
            f"{input.dtype} of {input.ndim} dims")
    num_samples = integer("multinomial", "num_samples", num_samples)
    chances = of_each_example("multinomial", "probabilities", input)
    rows = chances if chances.ndim == 2 else (
        chances.reshape(chances.shape[:-1].numel(), chances.shape[-1]))
    drawn = within_memory(
        "multinomial", lambda: _places(rows, num_samples, replacement, generator))
    if rows is not chances:
        drawn = drawn.reshape(*chances.shape[:-1], num_samples)
    result = as_examples(drawn)
    return result if out is None else store_out("multinomial", (), result, out)


GROUP = 1 << 16      # weights whose sums are searched while they are in the cache


def _places(chances, num_samples, replacement, generator):
    """A tensor of the indices that `multinomial` draws for each row."""
    rows, n = chances.shape
    if not n:
        raise RuntimeError("multinomial: the probabilities of a row sum to 0")
    if num_samples <= 0 or num_samples > n and not replacement:
        raise RuntimeError(f"multinomial: cannot draw {num_samples} samples of {n} indices "
                           f"{'with' if replacement else 'without'} replacement")
    if not elements_known(chances):
        return chances.new_empty((rows, num_samples), dtype=INT64)
    smallest = 1.0
    if rows:
        largest = chances.amax(1)
        smallest = float(largest.amin())
        if not (chances.amin() >= 0 and float(largest.amax()) < inf):
            raise RuntimeError("multinomial: a probability is negative, infinite or NaN")
        if smallest == 0:
            raise RuntimeError("multinomial: the probabilities of a row sum to 0")
    if replacement or num_samples == 1:
        parts, size = _uniform((rows, num_samples), generator), max(1, GROUP // n)
        if rows <= size:
            return _inverted(chances, parts, smallest)
        return cat([_inverted(chances[at:at + size], parts[at:at + size], smallest)
                    for at in range(0, rows, size)])
    # the first to arrive of n clocks that ring at these rates
    weights = chances.double()
    arrivals = (-_uniform((rows, n), generator)).log1p().neg().div_(weights)
    return arrivals.masked_fill_(weights == 0, inf).topk(num_samples, largest=False).indices


NORMAL = 2.0 ** -1022        # what is smaller has fewer digits


def _inverted(chances, parts, smallest):
    """Where the running sums of each row reach these parts, in [0, 1), of its sum."""
    edges = chances.cumsum(1, dtype=FLOAT64)
    total = edges[:, -1:]
    reached = parts.mul_(total)
    if smallest < NORMAL:                  # then the product may round to the sum, else never
        reached = reached.minimum(total.nextafter(total * 0))
    return insertion_places(edges, reached, True)


def of_each_example(name, what, x):
    """A parameter of a draw, or in a batch whose examples draw apart one for each of them.

    Raises: RuntimeError for one that differs between examples which draw the same.
    """
    sizes, held = sizes_of_batches(name), proxied(x.detach())
    if held.ndim - x.ndim not in (0, len(sizes)):
        raise RuntimeError(f"{name}: vmap: {what} that differ between the examples of a batch take "
                           "randomness='different' in each")
    return held.expand((*sizes, *x.shape)) if sizes else held


def _uniform(shape, generator):
    """Random numbers in [0, 1) of float64."""
    if not sizes_of_batches("multinomial"):
        return draws.rand(shape, generator=generator, dtype=FLOAT64)
    with Held((set_plan,), (None,)):
        return draws.rand(shape, generator=generator, dtype=FLOAT64)


# ---- the generator that is used where none is given ----------------------------------------------

def manual_seed(seed):
    """The default generator, started anew from `seed`.

    Raises: ValueError for what is not an integer, OutOfRangeError.
    """
    try:
        seed = int(seed)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:     # the last of infinity
        raise ValueError(f"manual_seed: {error}") from None
    return default_generator.manual_seed(seed)


def seed():
    """A seed from the operating system, from which the default generator now starts anew."""
    return default_generator.seed()


def initial_seed():
    """The seed from which the default generator started."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Restores a state of the default generator that `get_rng_state` gave.

    Raises: TypeError for what is not a tensor of bytes, RuntimeError for one that is not a state.
    """
    default_generator.set_state(new_state)


for _function in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state):
    publish(_function.__name__, _function, _function.__doc__, method=False)
