"""Sample inputs for the tests of functions of networks."""

import numpy as np

from tensorlib.ops.samples import PAIRS, SHAPES


def away(rng, low, high, shape, clear=None, room=0.1):
    """Numbers of both signs whose magnitude is in [low, high), further than `room` from `clear`."""
    size = rng.uniform(low, high, shape)
    if clear is not None:
        size = np.where(np.abs(size - clear) < room, clear + 3 * room, size)
    return size * rng.choice((-1.0, 1.0), shape)


def signed(low, high, shapes=SHAPES):
    """One real argument of both signs, away from 0."""
    def generate(rng):
        for shape in shapes:
            yield (away(rng, low, high, shape),), {}
    return generate


def with_numbers(low, high, *numbers, clear=None):
    """One real argument of both signs, and after it such numbers, as tensors that broadcast."""
    def generate(rng):
        for shape, other in PAIRS:
            yield (away(rng, low, high, shape, clear), *(np.full(other, x) for x in numbers)), {}
    return generate
