"""Dynamic axes: which sizes of the inputs stay open, from the arguments of `export`."""

from collections.abc import Mapping, Sequence
from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tree import flatten

Open = dict[int, str]                        # the open dims of an input, with their names


def from_axes(axes: Any, names: Sequence[str], tensors: Sequence[Tensor],
              outputs: Sequence[str] | None) -> list[Open]:
    """Of `dynamic_axes`: {input: {dim: name}} or {input: [dim, ...]}.

    The dynamic axes of outputs are ignored: their sizes follow from those of the inputs.
    Raises: ValueError for a name that is none, TypeError for what is not a dict.
    """
    if not isinstance(axes, Mapping):
        raise TypeError(f"onnx.export: dynamic_axes must be a dict, got {type(axes).__name__}")
    for name in axes:
        if name not in names and name not in (outputs or (name,)):
            raise ValueError(f"onnx.export: dynamic_axes names {name!r}, but the inputs are "
                             f"{', '.join(names)}")
    found = []
    for name, x in zip(names, tensors):
        given = axes.get(name, {})
        pairs = given.items() if isinstance(given, Mapping) else (
            (dim, f"{name}_dim_{dim}") for dim in given)
        found.append({place_of(dim, x, name): str(symbol) for dim, symbol in pairs})
    return found


def from_shapes(shapes: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                parameters: Sequence[str], names: Sequence[str]) -> list[Open]:
    """Of `dynamic_shapes`: for each argument, in order or by name, {dim: name} or a sequence with a
    name or None for each dim; nested as the argument is.

    Raises: ValueError for an argument that does not exist, or another nesting.
    """
    given: list[Any] = [*args, *kwargs.values()]
    if isinstance(shapes, Mapping):
        called = [*parameters[:len(args)], *kwargs]
        for name in shapes:
            if name not in called:
                raise ValueError(f"onnx.export: dynamic_shapes names {name!r}, but the arguments "
                                 f"are {', '.join(called)}")
        specs = [shapes.get(name) for name in called]
    elif isinstance(shapes, (tuple, list)) and len(shapes) == len(given):
        specs = list(shapes)
    else:
        raise ValueError("onnx.export: dynamic_shapes must be a dict by the names of arguments, or "
                         f"a tuple for the {len(given)} arguments")
    found: list[Open] = []
    names_left = iter(names)
    for spec, argument in zip(specs, given):
        collect(spec, argument, names_left, found)
    return found


def collect(spec: Any, argument: Any, names: Any, found: list[Open]) -> None:
    """Adds the open dims of the tensors in an argument."""
    if isinstance(argument, Tensor):
        name = next(names)
        pairs = spec.items() if isinstance(spec, Mapping) else enumerate(spec or ())
        if not isinstance(spec, Mapping) and spec is not None and len(spec) != argument.ndim:
            raise ValueError(f"onnx.export: dynamic_shapes has {len(spec)} dims for {name}, which "
                             f"has {argument.ndim}")
        found.append({place_of(dim, argument, name): symbol_of(symbol, name, dim)
                      for dim, symbol in pairs if not (symbol is None or type(symbol) is int)})
    elif isinstance(argument, (tuple, list, Mapping)):
        parts = list(argument.values()) if isinstance(argument, Mapping) else list(argument)
        inner = [None] * len(parts) if spec is None else [
            spec.get(key) for key in argument] if isinstance(argument, Mapping) else list(spec)
        if len(inner) != len(parts):
            raise ValueError("onnx.export: dynamic_shapes is not nested as the arguments are")
        for part_spec, part in zip(inner, parts):
            collect(part_spec, part, names, found)


def symbol_of(symbol: Any, name: str, dim: int) -> str:
    """The name of an open size: a string, or what has a name; else one of its own."""
    if isinstance(symbol, str):
        return symbol
    return getattr(symbol, "__name__", None) or f"{name}_dim_{dim}"


def place_of(dim: Any, x: Tensor, name: str) -> int:
    """A dim, counted from the first. Raises: ValueError for one that the input does not have."""
    if type(dim) is not int or not -x.ndim <= dim < x.ndim:
        raise ValueError(f"onnx.export: {name} of shape {tuple(x.shape)} has no dim {dim!r}")
    return dim % x.ndim


def sizes_of(dims: list[Open], tensors: Sequence[Tensor]) -> dict[str, int]:
    """The size that each open one has in the examples. Raises: ValueError for two sizes of a name.
    """
    sizes: dict[str, int] = {}
    for open_dims, x in zip(dims, tensors):
        for dim, symbol in open_dims.items():
            if sizes.setdefault(symbol, x.shape[dim]) != x.shape[dim]:
                raise ValueError(f"onnx.export: the dynamic size {symbol!r} is {sizes[symbol]} in "
                                 f"one example and {x.shape[dim]} in another")
    return sizes


def tensors_in(container: Any) -> list[Tensor]:
    """The tensors in nested containers, in order."""
    return [x for x in flatten(container)[0] if isinstance(x, Tensor)]
