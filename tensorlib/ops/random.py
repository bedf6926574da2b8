"""Random tensors, and the generators they are drawn from."""

import numpy as np

from tensorlib._core.apply.out_argument import store_out
from tensorlib._core.arrays.convert import asarray
from tensorlib._core.arrays.operands import behind
from tensorlib._core.create import randperm, draws
from tensorlib._core.create.generator import default_generator, seen_apart, set_plan, sizes_apart
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import publish

for _function in (draws.rand, draws.randn, draws.rand_like, draws.randn_like, draws.randint,
                  draws.randint_like, randperm.randperm):
    publish(_function.__name__, _function, _function.__doc__, method=False)
publish("bernoulli", draws.bernoulli, draws.bernoulli.__doc__)
for _function in (draws.uniform_, draws.normal_, draws.random_, draws.bernoulli_):
    publish(_function.__name__, _function, _function.__doc__, public=False)


# ---- the generator that is used where none is given ----------------------------------------------

def manual_seed(seed):
    """The default generator, started anew from `seed`. Raises: ValueError, OutOfRangeError."""
    try:
        seed = int(seed)
    except (TypeError, ValueError, RuntimeError) as error:
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
    """Sets the state of the default generator. Raises: TypeError, RuntimeError."""
    default_generator.set_state(new_state)


for _function in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state):
    publish(_function.__name__, _function, _function.__doc__, method=False)


# ---- drawn with tensors of parameters ------------------------------------------------------------

def normal(mean=0.0, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None,
           device=None, pin_memory=False, requires_grad=False):
    """Random numbers, normal with this mean and standard deviation.

    `mean` and `std` are tensors that broadcast, or numbers; two numbers take a `size`.
    Raises: RuntimeError for a negative `std`, TypeError.
    """
    tensors = [x.detach() for x in (mean, std) if isinstance(x, Tensor)]
    if bool(tensors) == (size is not None):
        raise TypeError("normal: takes a size if mean and std are numbers, and only then")
    if not tensors:
        return draws.normal_numbers(
            mean, std, size, generator=generator, out=out, dtype=dtype, layout=layout,
            device=device, pin_memory=pin_memory, requires_grad=requires_grad)
    if not all(x.is_floating_point() for x in tensors):
        raise RuntimeError("normal: mean and std must have floating dtypes")
    mean, std = (x.detach() if isinstance(x, Tensor) else x for x in (mean, std))
    if _any(std < 0):
        raise RuntimeError("normal: all elements of std must be 0 or more")
    shape = np.broadcast_shapes(*(x.shape for x in tensors))
    drawn = draws.randn(shape, generator=generator, dtype=tensors[0].dtype) * std + mean
    return drawn if out is None else store_out("normal", (), drawn, out)


def _any(condition):
    """Whether a condition on a number, or on some element of a tensor, holds."""
    return behind(condition).numpy().any() if isinstance(condition, Tensor) else condition


def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    """Indices drawn with the probabilities in `input`, a vector or the rows of a matrix, as int64.

    The probabilities need not sum to 1. Raises: RuntimeError for a row that is no distribution, or
    for more samples than there are indices, unless with `replacement`.
    """
    if not input.is_floating_point() or input.ndim not in (1, 2):
        raise RuntimeError(
            "multinomial: input must be a vector or a matrix of a floating dtype, got "
            f"{input.dtype} of {input.ndim} dims")
    chances = _of_each_example(input)
    rows, n = chances.shape[:-1].numel(), chances.shape[-1]
    weights = chances.double().numpy().reshape(rows, n)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise RuntimeError("multinomial: a probability is negative, infinite or NaN")
    if not (weights.sum(1) > 0).all():
        raise RuntimeError("multinomial: the probabilities of a row sum to 0")
    if num_samples <= 0 or num_samples > n and not replacement:
        raise RuntimeError(f"multinomial: cannot draw {num_samples} samples of {n} indices "
                           f"{'with' if replacement else 'without'} replacement")
    if replacement:
        uniform = _uniform((rows, num_samples), generator)
        edges = np.cumsum(weights, 1)
        drawn = np.stack([np.searchsorted(edge, edge[-1] * row, side="right")
                          for edge, row in zip(edges, uniform)])
    else:
        # the first to arrive of n clocks that ring at these rates
        with np.errstate(divide="ignore"):
            arrivals = -np.log1p(-_uniform((rows, n), generator)) / weights
        arrivals[weights == 0] = np.inf
        drawn = np.argsort(arrivals, axis=1, kind="stable")[:, :num_samples]
    shape = (*chances.shape[:-1], num_samples)
    result = seen_apart(asarray(np.ascontiguousarray(drawn.reshape(shape), np.int64)))
    return result if out is None else store_out("multinomial", (), result, out)


def _of_each_example(input):
    """`input`, or in a batch whose examples draw apart one for each of them."""
    sizes, chances = sizes_apart("multinomial"), behind(input.detach())
    if chances.ndim - input.ndim not in (0, len(sizes)):
        raise RuntimeError("multinomial: vmap: probabilities that differ between the examples of a "
                           "batch take randomness='different' in each")
    return chances.expand((*sizes, *input.shape)) if sizes else chances


def _uniform(shape, generator):
    """An array of random numbers in [0, 1)."""
    before = set_plan(None)
    try:
        return draws.rand(shape, generator=generator, dtype=float).numpy()
    finally:
        set_plan(before)


publish("normal", normal, normal.__doc__, method=False)
publish("multinomial", multinomial, multinomial.__doc__)
