"""The arguments that a transform differentiates, and its directions."""

import functools

from tensorlib._core.base.call_wrappers import one_frame
from tensorlib.autograd.tree import as_leaf, flatten_as, flatten_tensors


def entry(function):
    """A function that users call, whose errors show one frame of the library above theirs."""
    return functools.wraps(function)(one_frame(function))


def places_of(name, argnums, count):
    """The positions that `argnums` names among `count` positional arguments, and if it is one.

    Raises: RuntimeError where it names none, one twice or one that does not exist.
    """
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,), True
    single = isinstance(argnums, int) and not isinstance(argnums, bool)
    if not single and not isinstance(argnums, (tuple, list)):
        raise RuntimeError(f"{name}: argnums must be int or a tuple of int, got "
                           f"{type(argnums).__name__}")
    given = (argnums,) if single else tuple(argnums)
    if not given:
        raise RuntimeError(f"{name}: argnums must be non-empty")
    for place in given:
        if not isinstance(place, int) or isinstance(place, bool):
            raise RuntimeError(f"{name}: argnums must be int or a tuple of int, got {argnums!r}")
        if not -count <= place < count:
            raise RuntimeError(f"{name}: got argnum={place}, but only {count} positional inputs")
    places = [place % count for place in given]
    if len(set(places)) != len(places):
        raise RuntimeError(f"{name}: argnums elements must be unique, got {argnums!r}")
    return places, single


def directions_of(name, what, container, structure, like, tensors):
    """The tensors of a container that is to go through a derivative.

    It has the `structure` of what it belongs to, which `like` names, and the shapes of its
    `tensors`. Raises: RuntimeError for another structure or shape, and for what is not a Tensor.
    """
    given = flatten_as(name, f"{what}s", container, structure, like)
    given = [as_leaf(x, own.dtype) for x, own in zip(given, tensors)]
    flatten_tensors(name, f"{what}s", given)
    for i, (x, own) in enumerate(zip(given, tensors)):
        if x.shape != own.shape:
            raise RuntimeError(f"{name}: {what} {i} has shape {tuple(x.shape)}, but what it "
                               f"belongs to has shape {tuple(own.shape)}")
    return given
