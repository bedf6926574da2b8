"""Random tensors of further distributions, with parameters for each element; and in place."""

import math

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.shape import broadcast_shapes
from tensorlib._core.create.generator import as_examples, sizes_of_batches
from tensorlib._core.create.overwrite import write_result
from tensorlib._core.create.variates import drawn as drawn_numbers
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.create.random import of_each_example
from tensorlib.ops.declare import composite, publish
from tensorlib.ops.lazy import declared
from tensorlib.ops.samples import refused_calls
from tensorlib.ops.value_checks import value_check

FLOAT32, FLOAT64 = BY_NAME["float32"], BY_NAME["float64"]
inf = math.inf


# ---- with parameters for each element ------------------------------------------------------------

def numbers(name, kind, *parameters, generator=None):
    """Numbers of a kind for parameters of one shape, in float64."""
    found = [of_each_example(name, "parameters", x).to(FLOAT64).contiguous() for x in parameters]
    return as_examples(drawn_numbers(kind, *found, generator=generator))


def floating(name, x):
    """Raises RuntimeError for a tensor that is not floating."""
    if not x.is_floating_point():
        raise UnsupportedDtype(f"{name}: takes floating dtypes, got {x.dtype}")


def shaped(*cases):
    """Samples: positive tensors of these shapes."""
    def generate(rng):
        for shape in cases:
            yield (rng.uniform(0.1, 30, shape),), {}
    return generate


@composite(random=True, takes="floating", samples=shaped((2, 3), (), (0, 2)),
           reference=lambda x: (np.zeros_like(x), np.full_like(x, 1000)),
           errors=refused_calls((RuntimeError, np.array([1.0, -1.0])),
                                (RuntimeError, np.array([1, 2]))), checks_values=True, whole=True)
def poisson(input, generator=None):
    """Random numbers of the Poisson distribution with the rate of each element.

    Raises: RuntimeError for rates below 0 or NaN, and for integers.
    Source: Hoermann, "The Transformed Rejection Method for Generating Poisson Random Variables",
    Insurance: Mathematics and Economics 12, 1993; for rates below 12, inversion.

    >>> tensorlib.poisson(tensorlib.zeros(3))
    tensor([0., 0., 0.])
    """
    floating("poisson", input)
    rates_are_not_negative(input)
    return numbers("poisson", "poisson", input, generator=generator).to(input.dtype)


@value_check
def rates_are_not_negative(rates):
    """Raises RuntimeError for a rate below 0, or NaN."""
    if not (rates >= 0).all():
        raise RuntimeError("poisson: all rates must be 0 or more")


@value_check
def counts_are_not_negative(count):
    """Raises RuntimeError for a count below 0."""
    if not (count >= 0).all():
        raise RuntimeError(OUTSIDE)


@value_check
def are_chances(prob):
    """Raises RuntimeError for what is not a probability."""
    if not (prob >= 0).logical_and(prob <= 1).all():
        raise RuntimeError(OUTSIDE)


OUTSIDE = "binomial: counts must be 0 or more, probabilities in [0, 1]"


def trials(rng):
    """Samples of `binomial`."""
    for shape, other in (((2, 3), (3,)), ((), ()), ((0, 2), (2,))):
        yield (np.asarray(rng.integers(0, 50, shape) * 1.0), rng.uniform(0, 1, other)), {}


@composite(random=True, takes="floating", method=False, samples=trials,
           reference=lambda n, p: (np.zeros_like(n * p), n + 0 * p),
           errors=refused_calls((RuntimeError, np.array([-1.0]), np.array([0.5])),
                                (RuntimeError, np.array([1.0]), np.array([1.5]))),
           checks_values=True, whole=True)
def binomial(count: Tensor, prob: Tensor, generator=None):
    """How many of `count` trials succeed, each with probability `prob`, with broadcasting.

    Raises: RuntimeError for counts below 0, probabilities outside [0, 1], integers and two dtypes.
    Source: Hoermann, "The Generation of Binomial Random Variates", Journal of Statistical
    Computation and Simulation 46, 1993; for few successes, inversion.

    >>> tensorlib.binomial(tensorlib.tensor([5., 7.]), tensorlib.tensor([1., 0.]))
    tensor([5., 0.])
    """
    floating("binomial", count)
    floating("binomial", prob)
    if count.dtype != prob.dtype:
        raise RuntimeError(f"binomial: count is {count.dtype} and prob {prob.dtype}")
    count, prob = count.detach(), prob.detach()
    if count.shape != prob.shape:
        shape = broadcast_shapes("binomial", count.shape, prob.shape)
        count, prob = count.expand(shape), prob.expand(shape)
    counts_are_not_negative(count)
    are_chances(prob)
    return numbers("binomial", "binomial", count.floor(), prob, generator=generator).to(count.dtype)


# ---- in place ------------------------------------------------------------------------------------

def unwritten(name, self, integers=False):
    """Room for the numbers that are to overwrite a tensor, in the dtype that they are drawn in."""
    if not integers:
        floating(name, self)
    if sizes_of_batches(name):
        raise RuntimeError(f"{name}: vmap: in place on a tensor that all examples of a batch "
                           "share, with randomness='different', would draw the same for all")
    dtype = FLOAT32 if self.dtype.name in ("float16", "bfloat16", "float32") else FLOAT64
    return self.new_empty(self.shape, dtype=dtype)


def chances(name, self, generator, integers=False):
    """Uniform numbers in [0, 1) of the sizes of a tensor that is to be overwritten."""
    return unwritten(name, self, integers).uniform_(generator=generator)


def number(name, argument, value):
    """An argument as a float. Raises: TypeError."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}: {argument} must be a number, got {value!r}") from None


def exponential_(self, lambd=1.0, *, generator=None):
    """This tensor, filled with exponential numbers of rate `lambd`; none of them is 0.

    Gradient: the old elements get zero. Raises: RuntimeError for a rate that is not positive, and
    for integers.
    """
    lambd = number("exponential_", "lambd", lambd)
    if not lambd > 0:
        raise RuntimeError(f"exponential_: lambd must be positive, got {lambd}")
    u = chances("exponential_", self, generator).neg_().log1p_().neg_()
    least = 2.0**-25 if u.dtype == FLOAT32 else 2.0**-54
    return write_result("exponential_", self, u.clamp_min_(least).div_(lambd).to(self.dtype))


def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    """This tensor, filled with Cauchy numbers of this median and scale.

    Gradient: the old elements get zero. Raises: RuntimeError for a `sigma` that is not positive,
    and for integers.
    """
    median, sigma = number("cauchy_", "median", median), number("cauchy_", "sigma", sigma)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_: sigma must be positive, got {sigma}")
    u = chances("cauchy_", self, generator).sub_(0.5).mul_(math.pi).tan_()
    return write_result("cauchy_", self, u.mul_(sigma).add_(median).to(self.dtype))


def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    """This tensor, filled with exponentials of normal numbers.

    Gradient: the old elements get zero. Raises: RuntimeError for an `std` that is not positive,
    and for integers.
    """
    mean, std = number("log_normal_", "mean", mean), number("log_normal_", "std", std)
    if not std > 0:
        raise RuntimeError(f"log_normal_: std must be positive, got {std}")
    z = unwritten("log_normal_", self)
    z = z.normal_(mean, std, generator=generator).exp_()
    return write_result("log_normal_", self, z.to(self.dtype))


def geometric_(self, p, *, generator=None):
    """This tensor, filled with numbers of trials up to the first success.

    `p` is the probability of each trial. Gradient: the old elements get zero.
    Raises: RuntimeError unless p is in (0, 1).
    """
    p = number("geometric_", "p", p)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_: p must be in (0, 1), got {p}")
    u = chances("geometric_", self, generator, integers=True).neg_().log1p_()
    trials = u.div_(math.log1p(-p)).ceil_().clamp_min_(1)
    return write_result("geometric_", self, trials.to(self.dtype))


for _function in (exponential_, cauchy_, log_normal_, geometric_):
    publish(_function.__name__, _function, _function.__doc__, public=False)

declared(__name__)
