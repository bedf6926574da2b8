"""What all optimisers share: groups of parameters, their states, and hooks."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import wraps
from itertools import chain, islice
from numbers import Real
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from tensorlib._core.base.warned import warn_of
from tensorlib import Tensor, enable_grad, float32, float64, get_default_dtype, tensor
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.settings import ItemSwap
from tensorlib._core.graph import owners
from tensorlib._core.graph.handles import RemovableHandle, numbers
from tensorlib._core.interpreters import profile as observing
from tensorlib.ops.foreign import within_memory


class _Required:
    """Stands for an option that has no default, so each group must give it."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()
# tensors, (name, tensor) pairs, or groups: lists of dicts have no type that checkers agree on
ParamsT = _params_t = Iterable[Any]          # the second is an older name

# All optimisers, by their id: a capture looks after their options. Unlike a WeakSet, this gives
# all that are there at one moment, whatever other threads make meanwhile.
_alive: WeakValueDictionary[int, Any] = WeakValueDictionary()
_every_pre_hook = OrderedDict()
_every_post_hook = OrderedDict()
_every_inner_hook = OrderedDict()


def alive() -> list[Any]:
    """The optimisers that are there, but for those that another thread is making."""
    found = [ref() for ref in _alive.valuerefs()]
    return [x for x in found if x is not None and vars(x).get("param_groups")]


def _added(hooks, hook, first=False):
    key = next(number for number in numbers if number not in hooks)
    hooks[key] = hook
    if first:
        hooks.move_to_end(key, last=False)
    return RemovableHandle(hooks, key)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` before each step of every optimiser; a handle.

    args: the optimiser, and what `step` was given. What the hook returns, if not None, are the new
    args and kwargs.
    """
    return _added(_every_pre_hook, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` after each step of every optimiser; a handle."""
    return _added(_every_post_hook, hook)


def _changed_arguments(optimizer, args, kwargs):
    """The arguments of a step after the hooks that run before it."""
    for hook in (*_every_pre_hook.values(), *optimizer._pre_hooks.values()):
        changed = hook(optimizer, args, kwargs)
        if changed is None:
            continue
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise RuntimeError(f"{hook} must return None or a tuple of (new_args, new_kwargs), "
                               f"but got {changed}.")
        args, kwargs = changed
    return args, kwargs


def _with_hooks(step):
    """`step`, with the hooks run before and after it; once, where one step calls another."""
    @wraps(step)
    def hooked(self, *args, **kwargs):
        self._opt_called = True              # schedules look whether they come after
        if type(self).step is not hooked:
            for hook in _every_inner_hook.values():
                hook(self)
            return step(self, *args, **kwargs)
        if observing.is_observed():
            return _observed(self, "step", run, self, args, kwargs)
        if _every_pre_hook or _every_post_hook or self._pre_hooks or self._post_hooks:
            return run(self, args, kwargs)
        return step(self, *args, **kwargs)

    def run(self, args, kwargs):
        args = (self, *args)                 # hooks get, and give back, the optimiser too
        if _every_pre_hook or self._pre_hooks:
            args, kwargs = _changed_arguments(self, args, kwargs)
        result = step(*args, **kwargs)
        if _every_post_hook or self._post_hooks:
            for hook in (*self._post_hooks.values(), *_every_post_hook.values()):
                hook(self, args, kwargs)
        return result

    return hooked


def _observed(optimizer, method, call, *args):
    """What `call` gives, as an event of the profile that is taken, under PyTorch's name."""
    event = observing.begin(f"Optimizer.{method}#{type(optimizer).__name__}.{method}")
    try:
        return call(*args)
    finally:
        observing.end(event)


class Optimizer:
    """The base of all optimisers: it holds groups of parameters and a state for each parameter.

    params: an iterable of tensors, of (name, tensor) pairs, or of dicts, each a group with its
    own options. defaults: the options of groups that do not give them. A subclass has a method
    `step` that changes the parameters by their `.grad`, and keeps what it needs between steps in
    `self.state[p]`, a dict.
    Raises: TypeError, ValueError for what can't be optimised.
    Source: the interface is that of PyTorch's class of this name.

    >>> class Descent(tensorlib.optim.Optimizer):
    ...     @tensorlib.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.sub_(p.grad * group["lr"])
    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = Descent([x], {"lr": 0.5})
    >>> (x * x / 2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    _opt_called = False
    # Of an optimiser around another, whose own __init__ may not call that of this class.
    _pre_hooks: Mapping[int, Callable[..., Any]] = MappingProxyType({})
    _post_hooks: Mapping[int, Callable[..., Any]] = MappingProxyType({})

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = _with_hooks(cls.step)

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        if not isinstance(defaults, dict):
            raise TypeError(f"optimizer: defaults must be a dict, got {type(defaults).__name__}")
        self.defaults = defaults
        self._set_hooks()
        if defaults.get("fused"):
            if defaults.get("differentiable"):
                raise RuntimeError("`fused` does not support `differentiable`")
            if defaults.get("foreach"):
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        if isinstance(params, Tensor) or not isinstance(params, Iterable):
            raise TypeError("params argument given to the optimizer should be an iterable of "
                            f"Tensors or dicts, but got {type_name(params)}")
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = within_memory("optimizer", lambda: list(params))
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _set_hooks(self):
        _alive[id(self)] = self
        self._pre_hooks, self._post_hooks = OrderedDict(), OrderedDict()
        self._state_dict_pre_hooks, self._state_dict_post_hooks = OrderedDict(), OrderedDict()
        self._load_pre_hooks, self._load_post_hooks = OrderedDict(), OrderedDict()

    # ---- groups ---------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, a dict with `params` and the options that differ.

        Raises: TypeError, ValueError for what is not a parameter, or is in another group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = param_group
        params = group["params"]
        if isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but "
                            "the ordering of tensors in sets will change between runs. Please use "
                            "a list instead.")
        params = [params] if isinstance(params, Tensor) else list(params)
        params, names = self._without_names(params)
        for p in params:
            self._check(p)
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError("parameter group didn't specify a value of required optimization "
                                 f"parameter {name}")
        own = set(params)
        if len(own) != len(params):
            warn_of("optimizer contains a parameter group with duplicate parameters; each of them "
                    "is updated as often as it is there", level=3)
        if any(not own.isdisjoint(other["params"]) for other in self.param_groups):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in self.param_groups[0]) != (names is not None):
            raise ValueError("all optimizer param groups should be with/without names. cannot add "
                             f"param group {'with' if names else 'without'} names to the optimizer")
        group["params"] = params
        if names is not None:
            group["param_names"] = names
        for name, default in self.defaults.items():
            group.setdefault(name, default)
        self.param_groups.append(group)

    @staticmethod
    def _without_names(params):
        """The tensors, and their names if they came as pairs with names, else None."""
        named = [isinstance(p, tuple) for p in params]
        if not any(named):
            return params, None
        if not all(named):
            raise ValueError("all optimizer params should be with/without names. Some param names "
                             "are missing")
        return [p for _, p in params], [name for name, _ in params]

    def _check(self, p):
        if not isinstance(p, Tensor):
            raise TypeError("optimizer can only optimize Tensors, but one of the params is "
                            f"{type_name(p)}")
        if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients of all parameters to None, or to zero."""
        if observing.is_observed():
            _observed(self, "zero_grad", self._zero_grad, set_to_none)
        else:
            self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none):
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.requires_grad:
                        p.grad = p.grad.detach()
                    p.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters by their gradients; the loss that `closure()` gave.

        closure: computes the loss anew, with its gradients, and returns it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def _patch_step_function(self):
        """Does nothing, where PyTorch puts hooks around `step`: the class has done it."""

    @staticmethod
    def _loss_of(closure):
        if closure is None:
            return None
        with enable_grad():
            return closure()

    # ---- states as dicts ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters and the options of all groups, without the parameters.

        In both, a parameter is its number, counted through all groups. The tensors are those of the
        optimiser, not copies.
        """
        for hook in self._state_dict_pre_hooks.values():
            hook(self)
        numbers = {}
        for p in chain.from_iterable(group["params"] for group in self.param_groups):
            numbers.setdefault(p, len(numbers))
        packed = {
            "state": {numbers.get(p, p): state for p, state in self.state.items()},
            "param_groups": [
                {**{name: value for name, value in group.items() if name != "params"},
                 "params": [numbers[p] for p in group["params"]]}
                for group in self.param_groups],
        }
        for hook in self._state_dict_post_hooks.values():
            packed = _changed(hook(self, packed), packed)
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict()` of an optimiser of the same groups gave.

        States become copies, in the dtype of their parameter. Raises: ValueError where groups or
        their sizes differ, KeyError, TypeError for no dict; then the optimiser is as it was.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError("load_state_dict: expected a dict, as state_dict() gives it, got "
                            f"{type(state_dict).__name__}")
        state_dict = dict(state_dict)
        for hook in self._load_pre_hooks.values():
            state_dict = _changed(hook(self, state_dict), state_dict)
        saved, states = state_dict["param_groups"], state_dict["state"]
        if not isinstance(states, Mapping):
            raise TypeError("load_state_dict: expected a dict by the numbers of parameters as "
                            f"'state', got {type(states).__name__}")
        _check_sizes(saved, self.param_groups)
        numbers = chain.from_iterable(group["params"] for group in saved)
        params = dict(zip(numbers, chain.from_iterable(
            group["params"] for group in self.param_groups)))
        state = defaultdict(dict)
        for number, value in states.items():
            p = params.get(number)
            if p is not None and not isinstance(value, Mapping):
                raise TypeError(f"load_state_dict: the state of parameter {number} must be a dict, "
                                f"got {type(value).__name__}")
            state[number if p is None else p] = _own_copy(p, value)
        groups = []
        for old, group in zip(saved, self.param_groups):
            taken = {name: deepcopy(value) for name, value in old.items() if name != "params"}
            if "param_names" in group:
                taken.setdefault("param_names", group["param_names"])
            groups.append({**taken, "params": group["params"]})
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._load_post_hooks.values():
            hook(self)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        vars(self).update(state)
        if "_pre_hooks" not in vars(self):
            self._set_hooks()
        for group in self.param_groups:          # saved before an option was there
            for name, default in self.defaults.items():
                group.setdefault(name, default)
        for kept in self.state.values():         # as versions of PyTorch before 1.12 had it
            if isinstance(kept, dict) and isinstance(kept.get("step"), (int, float)):
                kept["step"] = self._count(kept["step"])

    @staticmethod
    def _count(number):
        """A state of one number, such as a count of steps."""
        dtype = float64 if get_default_dtype() is float64 else float32
        return tensor(as_number(number), dtype=dtype)

    # ---- hooks ----------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step; a handle that removes it.

        args: the optimiser, and what `step` was given. What the hook returns, if not None, are the
        new args and kwargs.
        """
        return _added(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step; a handle that removes it."""
        return _added(self._post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any],
                                     prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` before `state_dict` collects; a handle that removes it."""
        return _added(self._state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any],
                                      prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` on what was collected; a handle that removes it.

        What it returns, if not None, takes the place of the dict.
        """
        return _added(self._state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any],
                                          prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before a dict is loaded; a handle that removes it.

        What it returns, if not None, is loaded instead.
        """
        return _added(self._load_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any],
                                           prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` after a dict was loaded; a handle that removes it."""
        return _added(self._load_post_hooks, hook, prepend)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _changed(result, before):
    return before if result is None else result


def _check_sizes(saved, groups):
    """Raises ValueError unless there are as many groups, each of as many parameters, as saved."""
    if len(saved) != len(groups):
        raise ValueError("loaded state dict has a different number of parameter groups: "
                         f"{len(saved)}, where the optimizer has {len(groups)}")
    for i, (old, group) in enumerate(zip(saved, groups)):
        if len(old["params"]) != len(group["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                f"optimizer's group: group {i} has {len(old['params'])} parameters, the "
                f"optimizer's {len(group['params'])}")


def _own_copy(p, value, name=None):
    """A copy of a part of a state, its tensors in the dtype of their parameter; not of counts."""
    if isinstance(value, Tensor):
        if name != "step" and p is not None and p.is_floating_point():
            return value.detach().to(p.dtype, copy=True)
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _own_copy(p, each, key) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_own_copy(p, each) for each in value)
    return deepcopy(value)


def as_number(value):
    """The number that a loss is, also where it is a tensor that requires a gradient."""
    return value.item() if isinstance(value, Tensor) else float(value)


# ---- what options may be -------------------------------------------------------------------------

NOT_NEGATIVE = ("eps", "weight_decay", "momentum", "momentum_decay", "lr_decay",
                "initial_accumulator_value")


def check_options(options):
    """Raises ValueError or TypeError for options out of range, among those that many have."""
    check_rate(options["lr"])
    check_not_negative(**{"epsilon" if name == "eps" else name: options[name]
                          for name in NOT_NEGATIVE if name in options})
    if "betas" in options:
        check_betas(options["betas"])


def check_rate(lr):
    """Raises ValueError unless `lr` is a rate: a number of 0 or more, or a tensor of one."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not isinstance(lr, (Real, Tensor)):
        raise TypeError(f"lr must be a number or a tensor of one, not {type(lr).__name__}")
    if not lr >= 0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_not_negative(**options):
    """Raises ValueError for an option that is not a number of 0 or more."""
    for name, value in options.items():
        if not value >= 0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas):
    """Raises ValueError unless there are two decay rates in [0, 1), TypeError for one number."""
    if not isinstance(betas, Iterable):
        raise TypeError(f"betas must be two numbers, not {type(betas).__name__}")
    betas = tuple(islice(betas, 3))              # whose length may lie
    if len(betas) != 2:
        raise ValueError("betas must be two numbers, got " + ("0", "1", "", "more")[len(betas)])
    for i, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


owners.optimizers.base, owners.optimizers.alive = Optimizer, alive
owners.optimizers.hooks = tuple(
    lambda hooks=hooks: ItemSwap(hooks, object())
    for hooks in (_every_pre_hook, _every_post_hook, _every_inner_hook))
