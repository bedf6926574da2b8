"""NumPy arrays in other layouts with the same values."""

import numpy as np

GAP = 99            # lies between the elements of a strided layout


def strided(array):
    """A copy with gaps between its elements."""
    spread = np.full((*array.shape, 2), GAP).astype(array.dtype)
    spread[..., 0] = array
    return spread[..., 0]


def reversed_dims(array):
    """A copy with negative strides."""
    flip = (slice(None, None, -1),) * array.ndim
    return array[flip].copy()[flip]


def transposed(array):
    """A copy whose dims lie in reverse order in memory."""
    return array.T.copy().T


def shifted(array):
    """Not aligned to a vector register."""
    room = np.full(array.size + 1, GAP).astype(array.dtype)
    room[1:] = array.ravel()
    return room[1:].reshape(array.shape)


def read_only(array):
    """The array, made read-only."""
    array = np.asarray(array)
    array.flags.writeable = False
    return array
