"""Other shapes of the same elements, and arrays put together."""

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.array_api.operands import together


def broadcast_arrays(*arrays):
    """The arrays as views of one shape."""
    return tuple(tl.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_shapes(*shapes):
    """The shape to which shapes broadcast. Raises: ValueError."""
    try:
        return tuple(tl.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x, /, shape):
    """A view of `x` with a shape to which it broadcasts."""
    return tl.broadcast_to(x, shape)


def concat(arrays, /, *, axis=0):
    """Arrays one after another along an axis, or their elements where it is None."""
    arrays = together(*arrays)
    if axis is None:
        return tl.cat([x.reshape(-1) for x in arrays])
    return tl.cat(arrays, axis)


def expand_dims(x, /, axis):
    """A view with axes of size 1 at the places `axis` of the result."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    ndim = x.ndim + len(axes)
    places = sorted(place_of("expand_dims", place, ndim) for place in axes)
    if len(set(places)) < len(places):
        raise ValueError(f"expand_dims: axes stand twice in {axis}")
    for place in places:
        x = x.unsqueeze(place)
    return x


def place_of(name, axis, ndim):
    """An axis counted from the front. Raises: IndexError."""
    if not -ndim <= axis < ndim:
        raise IndexError(f"{name}: axis {axis} is out of range for {ndim} axes")
    return axis % ndim


def flip(x, /, *, axis=None):
    """The elements in reverse along axes, by default along all."""
    if axis is None:
        axis = tuple(range(x.ndim))
    return tl.flip(x, (axis,) if isinstance(axis, int) else tuple(axis))


def moveaxis(x, source, destination, /):
    """A view with axes moved to other places."""
    return tl.movedim(x, source, destination)


def permute_dims(x, /, axes):
    """A view with the axes in another order."""
    return tl.permute(x, tuple(axes))


def repeat(x, repeats, /, *, axis=None):
    """Each element, or part along an axis, several times after another."""
    if isinstance(repeats, Tensor):
        repeats = repeats.to(tl.int64)
    elif not isinstance(repeats, int):
        repeats = tl.tensor(repeats, dtype=tl.int64)
    return tl.repeat_interleave(x.reshape(-1) if axis is None else x, repeats,
                                0 if axis is None else axis)


def reshape(x, /, shape, *, copy=None):
    """The elements in another shape: with `copy=False` a view.

    Raises: ValueError where there is no such view.
    """
    if copy is False:
        try:
            return x.view(tuple(shape))
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    found = tl.reshape(x, tuple(shape))
    return found.clone() if copy else found


def roll(x, /, shift, *, axis=None):
    """The elements moved along axes, those beyond the end to the front."""
    return tl.roll(x, shift, axis)


def squeeze(x, /, axis):
    """A view without the given axes, whose sizes must be 1. Raises: ValueError for others."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for place in axes:
        if x.shape[place_of("squeeze", place, x.ndim)] != 1:
            raise ValueError(f"squeeze: axis {place} has size {x.shape[place]}, not 1")
    return tl.squeeze(x, axes)


def stack(arrays, /, *, axis=0):
    """Arrays of one shape along a new axis."""
    return tl.stack(together(*arrays), axis)


def tile(x, repetitions, /):
    """The array side by side with itself, `repetitions` times along each axis."""
    return tl.tile(x, tuple(repetitions))


def unstack(x, /, *, axis=0):
    """The parts along an axis, without it."""
    return tuple(tl.unbind(x, axis))
