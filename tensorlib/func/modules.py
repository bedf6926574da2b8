"""Modules as functions of their parameters, and several modules as one with a batch of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tensorlib._core.base.error_names import type_name
from tensorlib._core.interpreters.foreign import is_tensor
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.shape.joining import stack

T = TypeVar("T")
M = TypeVar("M", bound=Any)
KINDS = ("_parameters", "_buffers")
ABSENT = object()            # the value of a name that a module does not have


def functional_call(
    module: Callable[..., T],
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> T:
    """What a module gives with these tensors in the place of its parameters and buffers.

    They are given by dotted name, in one dict or several, and the module is afterwards as it was.
    Where the module sets such an attribute anew, one dict has the new tensor afterwards.
    What the module has under two names is replaced in both places, unless `tie_weights` is False.
    If not `strict`, names that are not given stay as they are, and those of other tensors of the
    module, or of nothing yet, are replaced as well.

    Raises: RuntimeError for missing and unexpected names (strict), ValueError where one name, or
    two names of one tensor, are given different tensors, TypeError for what is not a tensor,
    AttributeError for a name in a module that is not there.

    >>> model = tensorlib.nn.Linear(2, 1)
    >>> state = {"weight": tensorlib.tensor([[1., 2.]]), "bias": tensorlib.tensor([3.])}
    >>> functional_call(model, state, tensorlib.ones(2))
    tensor([6.])
    """
    tensors = joined(parameter_and_buffer_dicts)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced(module, tensors, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def joined(dicts: Any) -> dict[str, Tensor]:
    """The tensors of one dict, which is given back, or of several."""
    if isinstance(dicts, dict):
        return dicts
    if isinstance(dicts, Mapping):
        dicts = [dicts]
    if not isinstance(dicts, Sequence) or not all(isinstance(each, Mapping) for each in dicts):
        raise ValueError("functional_call: expected a dict or a sequence of dicts of tensors, got "
                         f"{type(dicts).__name__}")
    tensors: dict[str, Tensor] = {}
    for each in dicts:
        for name, value in each.items():
            if name in tensors:
                raise ValueError(f"functional_call: {name!r} appears in several dicts")
            tensors[name] = value
    return tensors


@contextmanager
def replaced(module: Any, tensors: dict[str, Tensor], tie_weights: bool,
             strict: bool) -> Iterator[None]:
    """Within it a module has these tensors."""
    require_module("functional_call", module)
    places = members(module) if tie_weights or strict else {}
    new = {name: value for name, value in tensors.items() if name in places}
    if tie_weights:
        new = tied(places, new)
    if strict:
        missing, unexpected = sorted(set(places) - set(new)), sorted(set(tensors) - set(places))
        if missing or unexpected:
            raise RuntimeError(f"functional_call: missing key(s): {missing}, unexpected key(s): "
                               f"{unexpected}")
    for name in [name for name in tensors if name not in places]:
        places[name], new[name] = place_of(module, name), tensors[name]
    old = {name: places[name][0].get(places[name][1], ABSENT) for name in new}
    try:
        for name, value in new.items():
            table, own = places[name]
            table[own] = value
        yield
    finally:
        for name, value in old.items():
            table, own = places[name]
            if name in tensors and table.get(own, tensors[name]) is not tensors[name]:
                tensors[name] = table[own]
            if value is ABSENT:
                del table[own]
            else:
                table[own] = value


def place_of(module: Any, name: str) -> tuple[dict[str, Any], str]:
    """Where another attribute of a module is, or would be: in which dict, under which name.

    Raises: AttributeError for a path that leads to no module, TypeError for what is no tensor.
    """
    path, _, own = name.rpartition(".")
    owner = module.get_submodule(path)
    for kind in KINDS:
        if own in getattr(owner, kind):          # as None
            return getattr(owner, kind), own
    value = getattr(owner, own, None)
    if value is not None and not is_tensor(value):
        raise TypeError(f"functional_call: {name!r} is no tensor of the module, but "
                        f"{type_name(value)}")
    return vars(owner), own


def require_module(name: str, module: Any) -> None:
    """Raises: TypeError for what is not a Module (which lies above these functions)."""
    if not callable(getattr(module, "named_modules", None)):
        raise TypeError(f"{name}: module must be a Module, got {type(module).__name__}")


def members(module: Any) -> dict[str, tuple[dict[str, Any], str]]:
    """Where each parameter and buffer of a module is: in which dict, under which name."""
    return {
        f"{start}.{own}" if start else own: (getattr(each, kind), own)
        for start, each in module.named_modules(remove_duplicate=False)
        for kind in KINDS for own, value in getattr(each, kind).items() if value is not None}


def tied(places: dict[str, Any], new: dict[str, Tensor]) -> dict[str, Tensor]:
    """New tensors by name, for all the names that the tensors in those places have."""
    given: dict[int, tuple[str, Tensor]] = {}
    for name, value in new.items():
        table, own = places[name]
        first, other = given.setdefault(id(table[own]), (name, value))
        if other is not value:
            raise ValueError(f"functional_call: {first!r} and {name!r} are one tensor of the "
                             "module, and were given different ones")
    return {name: given[id(table[own])][1] for name, (table, own) in places.items()
            if id(table[own]) in given}


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of several modules of one kind, each stacked along a new dim 0.

    With `vmap` and `functional_call`, all the modules are computed at once.

    >>> models = [tensorlib.nn.Linear(2, 1) for _ in range(3)]
    >>> params, buffers = stack_module_state(models)
    >>> def call(params, x):
    ...     return functional_call(models[0], params, x)
    >>> tensorlib.vmap(call, (0, None))(params, tensorlib.ones(5, 2)).shape
    tensorlib.Size([3, 5, 1])

    Raises: RuntimeError for no modules, modules of several classes, or in different modes,
    TypeError for what are not modules.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: expected at least one model, got 0")
    if not hasattr(models[0], "named_parameters"):
        raise TypeError("stack_module_state: expected modules, got a sequence of "
                        f"{type(models[0]).__name__}")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: expected all models to be of the same class")
    if len({bool(model.training) for model in models}) > 1:
        raise RuntimeError("stack_module_state: expected all models to have the same "
                           "training/eval mode")
    return (stacked([dict(model.named_parameters()) for model in models]),
            stacked([dict(model.named_buffers()) for model in models]))


def stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Leaves that hold the tensors of each name. Raises: RuntimeError for other names or modes."""
    if any(list(state) != list(states[0]) for state in states):
        raise RuntimeError("stack_module_state: the models have parameters of different names")
    found = {}
    for name in states[0]:
        parts = [state[name] for state in states]
        learn = {part.requires_grad for part in parts}
        if len(learn) > 1:
            raise RuntimeError(f"stack_module_state: {name!r} requires gradients in some models "
                               "and not in others")
        found[name] = stack([part.detach() for part in parts]).requires_grad_(learn.pop())
    return found


def replace_all_batch_norm_modules_(root: M) -> M:
    """The module itself, after all parts that track statistics of batches have left off.

    In training these write into their buffers, which derivatives and batches of functions refuse:
    a function that is transformed writes into nothing from outside. Afterwards each batch is
    normalised by its own mean and deviation, in use as well.

    >>> model = replace_all_batch_norm_modules_(tensorlib.nn.BatchNorm1d(2))
    >>> params, x = dict(model.named_parameters()), tensorlib.ones(4, 2)
    >>> found = tensorlib.func.grad(lambda p: functional_call(model, p, x).sum())(params)
    >>> found["bias"]
    tensor([4., 4.])
    """
    require_module("replace_all_batch_norm_modules_", root)
    for module in root.modules():
        if getattr(module, "track_running_stats", False):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
