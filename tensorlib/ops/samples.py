"""Sample inputs of operations, for the tests that are generated from a declaration.

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
    """Flat indices of elements of b that are closer than `apart` to one of a paired with them."""
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


# ---- calls written out, in which some arguments are drawn ----------------------------------------

class RandomArgument:
    """An argument that is drawn for each sample: an array of a shape, of ones in error samples."""

    def __init__(self, draw, shape):
        self.draw, self.shape = draw, shape


def real(*shape, low=-2.0, high=2.0):
    """A real tensor of a shape, uniform in [low, high)."""
    return RandomArgument(lambda rng: rng.uniform(low, high, shape), shape)


def reals_of(shapes, low=-2.0, high=2.0):
    """A tuple of real tensors of these shapes."""
    return tuple(real(*shape, low=low, high=high) for shape in shapes)


def drawn(value, rng):
    """An argument, or a tuple of them, drawn; `rng` is None for error samples."""
    if isinstance(value, RandomArgument):
        return np.ones(value.shape) if rng is None else value.draw(rng)
    return tuple(drawn(x, rng) for x in value) if type(value) is tuple else value


def calls(*cases, arguments=lambda *case: case):
    """The arguments of calls, the last of them a dict of keywords where it is one.

    arguments: makes them of a case.
    """
    def generate(rng):
        for case in cases:
            yield of_call(arguments(*case), rng)
    return generate


def refused_calls(*cases, arguments=lambda *case: case):
    """Error samples: the error, then the arguments as in `calls`."""
    def generate():
        for error, *case in cases:
            yield *of_call(arguments(*case), None), error
    return generate


def of_call(case, rng):
    """The arguments by position, and those by keyword, with what is to be drawn."""
    *args, last = case or ({},)
    args, keywords = (args, last) if isinstance(last, dict) else ((*args, last), {})
    return drawn(tuple(args), rng), keywords


def given(*cases):
    """One real tensor of the shape that each case begins with, then the case's attributes."""
    return calls(*cases, arguments=lambda shape, *attributes: (real(*shape), *attributes))


def given_pairs(*cases):
    """Two real tensors of the shapes that each case begins with, then the case's attributes."""
    return calls(*cases, arguments=lambda *case: (*reals_of(case[:2]), *case[2:]))


def given_tensors(*cases):
    """Real tensors of the shapes in each case, and its keywords if it ends with a dict."""
    return calls(*cases, arguments=lambda *case: tuple(
        x if isinstance(x, dict) else real(*x) for x in case))


def given_sequences(*cases, low=-2.0, high=2.0):
    """A sequence of real tensors of the shapes in each case."""
    return calls(*cases, arguments=lambda *shapes: (reals_of(shapes, low, high),))


def refusals(*cases):
    """Error samples: the error, the shape of a real tensor (of ones), then the attributes."""
    return refused_calls(
        *cases, arguments=lambda shape, *attributes: (real(*shape), *attributes))


def refused_sequences(*cases):
    """Error samples: the error, then the shapes of a sequence of tensors."""
    return refused_calls(*cases, arguments=lambda *shapes: (reals_of(shapes),))


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


def three_reals(low=-3.0, **keywords):
    """Samples of three real tensors that broadcast, without and with keywords."""
    shapes = (((3, 4), (3, 4), (3, 4)), ((3, 4), (4,), ()), ((2, 3), (2, 1), (3,)),
              ((2,), (), (2,)))
    return calls(*((each, words) for each in shapes for words in ({}, keywords)),
                 arguments=lambda each, words: (*reals_of(each, low, 3.0), words))
