"""`state_dict` and `load_state_dict`."""

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from tensorlib import Tensor, no_grad
from tensorlib._core.base.error_names import type_name
from tensorlib._core.graph.handles import RemovableHandle
from tensorlib.nn.modules.hooks import registered
from tensorlib.nn.modules.members import Members
from tensorlib.nn.parameter import Parameter, is_lazy

EXTRA = "_extra_state"
COMPILED = "_orig_mod."              # what PyTorch puts before the names of a compiled module


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found missing in a state, and what it found too much."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
                f"unexpected_keys={self.unexpected_keys})")


class Report(list[str]):
    """Messages of what does not fit, and what is to be done if all fits: nothing half."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Callable[[], None]] = []


class Stated(Members):
    """`state_dict` and `load_state_dict`."""

    _version = 1
    _state_hooks: dict[str, OrderedDict[object, Callable[..., Any]]] | None = None
    _state_dict_hooks = property(lambda self: kept_hooks(self, "save"))
    _state_dict_pre_hooks = property(lambda self: kept_hooks(self, "save_pre"))

    # ---- out -----------------------------------------------------------------------------------

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "",
                   keep_vars: bool = False) -> Any:
        """The parameters and persistent buffers by dotted name, in an `OrderedDict`.

        They are the tensors of the module, outside the graph (with `keep_vars`, as they are): who
        goes on training and wants the old values takes copies.

        >>> list(Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        if args:                       # as these arguments could once be given
            destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args):])
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook in state_hooks(self, "save_pre"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.",
                                  keep_vars=keep_vars)
        for hook in state_hooks(self, "save"):
            result = hook(self, destination, prefix, local)
            if result is not None:
                destination = result
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Puts what this module has itself into a state."""
        for name, tensor in own_state(self):
            as_it_is = keep_vars or is_lazy(tensor)      # which has no elements to show
            destination[prefix + name] = tensor if as_it_is else tensor.detach()
        if type(self).get_extra_state is not Stated.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def get_extra_state(self) -> Any:
        """What else a state holds; a class with `set_extra_state` writes this one, too."""
        raise RuntimeError(f"{type(self).__name__}: a class with set_extra_state needs "
                           "get_extra_state as well")

    def set_extra_state(self, state: Any) -> None:
        """Restores what `get_extra_state` gave."""
        raise RuntimeError(f"{type(self).__name__}: a class with get_extra_state needs "
                           "set_extra_state as well")

    # ---- in ------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True,
                        assign: bool = False) -> IncompatibleKeys:
        """Copies a state into the parameters and buffers; what was missing, and what too much.

        With `assign`, the module takes the tensors themselves, with their dtypes; without it, a
        parameter on the device "meta" stays there, and a warning names it. If anything does not
        fit, the module stays as it was.

        Raises: RuntimeError that lists all missing and unexpected names (unless `strict=False`) and
        all wrong shapes, TypeError for what is not a dict of names.

        >>> layer = Linear(2, 1)
        >>> layer.load_state_dict({"weight": tensorlib.ones(1, 2), "bias": tensorlib.zeros(1)})
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"load_state_dict: expected a dict, got {type(state_dict).__name__}")
        for key in state_dict:
            if not isinstance(key, str):
                raise TypeError("load_state_dict: the names in a state are strings, got "
                                f"{type(key).__name__}")
        metadata = getattr(state_dict, "_metadata", None) or {}
        state: Any = OrderedDict(state_dict)
        found, report = IncompatibleKeys([], []), Report()
        modules = [(f"{name}." if name else "", module)
                   for name, module in self.named_modules(remove_duplicate=False)]
        if any(COMPILED in key for key in state):
            for prefix, module in [("", self), *modules]:
                if hasattr(module, "_orig_mod") and "_orig_mod" not in module._modules:
                    state, metadata = shortened(state, prefix), shortened(metadata, prefix)
        state._metadata = metadata
        for prefix, module in modules:
            local = dict(metadata.get(prefix[:-1], {}))
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(state, prefix, local, True, *found, report)
        hooks = [(module, hook) for module in inner_first(self)
                 for hook in state_hooks(module, "load")]
        if not hooks or report:
            refuse(self, found, report, strict)
        for step in report.steps:
            step()
        for module, hook in hooks:
            call_without_result(hook, module, found)
        refuse(self, found, report, strict)
        return found

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str],
                              error_msgs: list[str]) -> None:
        """Takes from a state what this module has itself, and notes what does not fit."""
        for hook in state_hooks(self, "load_pre"):
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                 error_msgs)
        steps, assign = [], local_metadata.get("assign_to_params_buffers", False)
        known = {prefix + name: tensor for name, tensor in own_state(self)}
        for key, tensor in known.items():
            if key not in state_dict:
                missing_keys.extend([key] * strict)
                continue
            value = state_dict[key]
            text = unfit(key, tensor, value)
            if text:
                error_msgs.append(text)
                continue
            if not assign and tensor.device.type == "meta" != value.device.type and (
                    not is_lazy(tensor)):
                warnings.warn(
                    f"load_state_dict: {key} is on the device 'meta', which keeps no elements: "
                    "those of the state are not copied; assign=True takes its tensor instead",
                    stacklevel=3)
            steps.append(lambda name=key[len(prefix):], tensor=tensor, value=value: put(
                self, name, tensor, value, assign))
        if type(self).set_extra_state is not Stated.set_extra_state:
            known[prefix + EXTRA] = None
            if prefix + EXTRA in state_dict:
                steps.append(lambda: self.set_extra_state(state_dict[prefix + EXTRA]))
            else:
                missing_keys.extend([prefix + EXTRA] * strict)
        if strict:
            unexpected_keys += [
                key for key in state_dict
                if key.startswith(prefix) and key not in known
                and not is_of_child(key[len(prefix):], self._modules)]
        if isinstance(error_msgs, Report):
            error_msgs.steps += steps
        else:
            for step in steps:
                step()

    # ---- hooks ---------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before `state_dict` visits this module."""
        return add_state_hook(self, "save_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` at the end of `state_dict`.

        It may change the state.
        """
        return add_state_hook(self, "save", partial(call_without_result, hook))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected,
        errors)` before this module takes its part of a state, which the hook may change."""
        return add_state_hook(self, "load_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after the loading; it may change the keys."""
        return add_state_hook(self, "load", hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As `register_state_dict_post_hook`, for a hook that may return another state."""
        return add_state_hook(self, "save", hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any],
                                           with_module: bool = False) -> RemovableHandle:
        """As `register_load_state_dict_pre_hook`; `hook` has no `module` unless it asks for it."""
        return add_state_hook(self, "load_pre",
                              hook if with_module else partial(call_without_module, hook))


def inner_first(module):
    """All modules in a module, those inside another before it; the module itself comes last."""
    for child in module._modules.values():
        if child is not None:
            yield from inner_first(child)
    yield module


def own_state(module):
    """Names and tensors of the parameters and persistent buffers that a module has itself."""
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield name, parameter
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            yield name, buffer


def shortened(names, prefix):
    """A dict without PyTorch's mark of a compiled module, which stands after a prefix."""
    mark, out = prefix + COMPILED, OrderedDict()
    for key, value in names.items():
        path = f"{key}."
        out[(prefix + path[len(mark):])[:-1] if path.startswith(mark) else key] = value
    return out


def unfit(key, tensor, value):
    """Why a value of a state can't go into a tensor of the module, or None."""
    if not isinstance(value, Tensor):
        return f"{key} must be a Tensor, got {type_name(value)}"
    if is_lazy(value) and not is_lazy(tensor):
        return f"{key} is uninitialized in the state and initialized in the module"
    if is_lazy(tensor) or value.shape == tensor.shape or (
            tensor.ndim, value.ndim) == (0, 1) and len(value):
        return None
    return (f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {tensor.shape}.")


def put(module, name, tensor, value, assign):
    """Gives a tensor of a module the elements of `value`, or the module `value` itself."""
    if is_lazy(value):
        return
    if is_lazy(tensor):
        tensor.materialize(value.shape)
    elif tensor.ndim == 0 and value.ndim == 1:
        value = value[0]
    if not assign:
        with no_grad():
            tensor.copy_(value)
    elif isinstance(tensor, Parameter):
        setattr(module, name, value.requires_grad_(tensor.requires_grad)
                if isinstance(value, Parameter) else Parameter(value, tensor.requires_grad))
    else:
        setattr(module, name, value)


def refuse(module, found, report, strict):
    """Raises RuntimeError for what does not fit."""
    def names(keys):
        return ", ".join(f'"{key}"' for key in keys)

    texts = list(report)
    if strict and found.unexpected_keys:
        texts.insert(0, f"Unexpected key(s) in state_dict: {names(found.unexpected_keys)}.")
    if strict and found.missing_keys:
        texts.insert(0, f"Missing key(s) in state_dict: {names(found.missing_keys)}.")
    if texts:
        raise RuntimeError(f"Error(s) in loading state_dict for {module.__class__.__name__}:\n\t"
                           + "\n\t".join(texts))


def is_of_child(name, children):
    """Whether a name in a state is that of something in a child."""
    head, dot, _ = name.partition(".")
    return bool(dot) and head in children


def call_without_module(hook, module, *args):
    """Calls a hook that takes all but the module."""
    return hook(*args)


def call_without_result(hook, *args):
    """Calls a hook that changes what it is given. Raises: RuntimeError if it returns anything."""
    if hook(*args) is not None:
        raise RuntimeError("a post-hook of state_dict or load_state_dict changes what it is given "
                           "and returns None")


def state_hooks(module, kind):
    """The hooks of one kind around the state of a module."""
    hooks = module._state_hooks
    return () if hooks is None else list(hooks.get(kind, {}).values())


def kept_hooks(module, kind):
    """The dict of the hooks of one kind, which goes on to be theirs."""
    if module._state_hooks is None:
        vars(module)["_state_hooks"] = {}
    return module._state_hooks.setdefault(kind, OrderedDict())


def add_state_hook(module, kind, hook):
    """The handle of a new hook."""
    return registered(kept_hooks(module, kind), hook)
