"""Sample inputs of operations: what the tests that follow from a declaration try it with.

A generator takes a NumPy random generator and yields samples `(arguments, keywords)`; arguments
are float64 arrays (or integers and attributes) that the tests lay out and cast as they need.
"""

import numpy as np

SHAPES = ((), (1,), (5,), (3, 4), (0, 3), (2, 1, 3))
PAIRS = (((), ()), ((4,), (4,)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3), ()), ((0, 2), (2,)))


def reals(low, high, shapes=SHAPES):
    """One real argument, uniform in [low, high)."""
    def generate(rng):
        for shape in shapes:
            yield (rng.uniform(low, high, shape),), {}
    return generate


def pairs(low=-3.0, high=3.0, other_low=None, other_high=None, apart=0.0):
    """Two real arguments that broadcast; `apart` is how far from each other their values stay."""
    b_low, b_high = (low if other_low is None else other_low,
                     high if other_high is None else other_high)

    def generate(rng):
        for shape, other_shape in PAIRS:
            a = rng.uniform(low, high, shape)
            b = np.asarray(rng.uniform(b_low, b_high, other_shape))
            while (close := near(a, b, apart)).size:
                b.flat[close] = rng.uniform(b_low, b_high, close.size)
            yield (a, b), {}
    return generate


def in_complex(generate):
    """The samples of a generator of one real argument, with imaginary parts."""
    def with_parts(rng):
        for (x, *rest), keywords in generate(rng):
            yield (x + 1j * rng.uniform(-2, 2, x.shape), *rest), keywords
    return with_parts


def near(a, b, apart):
    """Which elements of b, counted flat, are closer than `apart` to one of a that they meet."""
    close = np.abs(a - b) < apart
    return np.unique(np.broadcast_to(np.arange(b.size).reshape(b.shape), close.shape)[close])


def triples(boolean=False):
    """Three arguments that broadcast: a condition (or a real) and two reals."""
    def generate(rng):
        for shape, other_shape in PAIRS:
            first = rng.uniform(-3, 3, shape)
            low = rng.uniform(-2.0, -0.5, other_shape)
            yield (first > 0 if boolean else first, low, rng.uniform(0.5, 2.0, shape)), {}
    return generate


def booleans(n):
    """n bool arguments that broadcast."""
    def generate(rng):
        for shapes in PAIRS:
            yield tuple(rng.random(shapes[i]) < 0.5 for i in range(n)), {}
    return generate


def integers(n, low=-8, high=8):
    """n integer arguments that broadcast, in [low, high)."""
    def generate(rng):
        for shapes in PAIRS:
            yield tuple(rng.integers(low, high, shapes[i]) for i in range(n)), {}
    return generate


def given(*cases):
    """One real tensor of the shape that each case begins with, then the case's attributes."""
    def generate(rng):
        for shape, *attributes in cases:
            yield (rng.uniform(-2, 2, shape), *attributes), {}
    return generate


def given_pairs(*cases):
    """Two real tensors of the shapes that each case begins with, then the case's attributes."""
    def generate(rng):
        for shape, other_shape, *attributes in cases:
            yield (rng.uniform(-2, 2, shape), rng.uniform(-2, 2, other_shape), *attributes), {}
    return generate


def given_sequences(*cases):
    """Pairs of (shapes of a sequence of tensors, dim)."""
    def generate(rng):
        for shapes, dim in zip(cases[::2], cases[1::2]):
            yield (tuple(rng.uniform(-2, 2, shape) for shape in shapes),), {"dim": dim}
    return generate


def products(*cases):
    """Pairs of real tensors of the two shapes in each case."""
    def generate(rng):
        for a, b in cases:
            yield (rng.uniform(-2, 2, a), rng.uniform(-2, 2, b)), {}
    return generate


def with_gradients(samples, reference, results_after=None):
    """The samples of a backward operation: a gradient of the first result, then the arguments.

    results_after: after how many arguments the results stand, where it takes them, too.
    """
    def generate(rng):
        for args, keywords in samples(rng):
            results = reference(*args)
            results = results if isinstance(results, tuple) else (np.asarray(results),)
            g = rng.uniform(-1, 1, results[0].shape)
            if results_after is not None:
                args = (*args[:results_after], *results, *args[results_after:])
            yield (g, *args), keywords
    return generate


def refusals(*cases):
    """Error samples: the error, the shape of a real tensor (of ones), then the attributes."""
    def generate():
        for error, shape, *attributes in cases:
            yield (np.ones(shape), *attributes), {}, error
    return generate


def calls(*cases):
    """The arguments of calls as they stand, the last of them a dict of keywords where it is one."""
    def generate(rng):
        for case in cases:
            yield split_keywords(case)
    return generate


def refused_calls(*cases):
    """Error samples: the error, then the arguments as in `calls`."""
    def generate():
        for error, *case in cases:
            yield *split_keywords(case), error
    return generate


def split_keywords(case):
    """The arguments by position, and those by keyword."""
    *args, last = case or ({},)
    return (tuple(args), last) if isinstance(last, dict) else ((*args, last), {})


def three_reals(low=-3.0, **keywords):
    """Samples of three real tensors that broadcast, without and with keywords."""
    def generate(rng):
        for shapes in (((3, 4), (3, 4), (3, 4)), ((3, 4), (4,), ()), ((2, 3), (2, 1), (3,)),
                       ((2,), (), (2,))):
            yield tuple(rng.uniform(low, 3, shape) for shape in shapes), {}
            yield tuple(rng.uniform(low, 3, shape) for shape in shapes), keywords
    return generate
