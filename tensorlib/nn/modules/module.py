"""`Module`, the base class of layers and models."""

from collections.abc import Callable
from functools import partial
from typing import Any, Self
from weakref import ref

from tensorlib import (
    Tensor,
    bfloat16,
    compile,
    device,
    double,
    dtype,
    empty_like,
    float,
    half,
    no_grad,
)
from tensorlib._core.base.device import require_device
from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.base.importing import deferred
from tensorlib._core.base.settings import ItemSwap
from tensorlib._core.graph import owners
from tensorlib._core.graph.handles import RemovableHandle
from tensorlib.nn.modules.hooks import (
    HookKey,
    Hooked,
    call_eagerly,
    call_with_hooks,
    everywhere,
    name_module,
    registered,
    set_compiled_call,
)
from tensorlib.nn.modules.members import registration_hooks
from tensorlib.nn.modules.registered import Registered
from tensorlib.nn.modules.states import EXTRA, IncompatibleKeys, Stated
from tensorlib.nn.parameter import is_lazy
from tensorlib.ops.publish import is_public_operation

# as code for PyTorch calls them: transformers asks for the latter of each tensor that it loads
_IncompatibleKeys, _EXTRA_STATE_KEY_SUFFIX = IncompatibleKeys, EXTRA


class Module(Hooked, Stated):
    """A model, or a part of one: a function with parameters.

    A subclass calls `super().__init__()`, assigns parameters and other modules to attributes, and
    says in `forward` what it computes. It is called like a function.

    >>> class Line(Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = Parameter(tensorlib.tensor(2.0))
    ...         self.offset = Parameter(tensorlib.tensor(1.0))
    ...     def forward(self, x):
    ...         return self.slope * x + self.offset
    >>> line = Line()
    >>> line(tensorlib.tensor(3.0)).backward()
    >>> [(name, p.grad) for name, p in line.named_parameters()]
    [('slope', tensor(3.)), ('offset', tensor(1.))]
    """

    training: bool
    call_super_init: bool = False       # True where a base after Module takes arguments, too

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, value in list(vars(cls).items()):
            if is_public_operation(value):    # no method: PyTorch's are built-in functions
                setattr(cls, name, staticmethod(value))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise TypeError(f"{type(self).__name__}.__init__: Module.__init__() takes no arguments,"
                            f" got {', '.join([*map(repr, args), *kwargs])}")
        owner = ref(self)
        vars(self).update(
            training=True, _non_persistent_buffers_set=set(), _parameters=Registered.empty(owner),
            _buffers=Registered.empty(owner), _modules=Registered.empty(owner))
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives for these arguments; every subclass defines it."""
        raise NotImplementedError(
            f"Module [{type(self).__name__}] is missing the required \"forward\" function")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._hooks is None:
                return self.forward(*args, **kwargs)
            return call_with_hooks(self, args, kwargs)
        except Exception as error:
            name_module(self, error)
            raise

    _call_impl = __call__                  # as libraries for PyTorch call it

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Makes calls of this module replays of a captured program.

        Options are those of `tensorlib.compile`. While the module itself has hooks, its calls are
        eager; those of its parts are captured. A copy or a pickle of the module is not compiled.

        >>> layer = Linear(2, 1)
        >>> layer.compile()
        >>> layer(tensorlib.ones(3, 2)).shape
        tensorlib.Size([3, 1])
        """
        set_compiled_call(self, compile(partial(call_eagerly, self), *args, **kwargs))

    # ---- all parts at once ---------------------------------------------------------------------

    def apply(self, fn: Callable[["Module"], Any]) -> Self:
        """This module, after `fn(module)` was called for each part, the inner before the outer.

        >>> model = Sequential(Linear(2, 2), ReLU()).apply(lambda part: part.eval())
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """This module in the mode for training, or that for use: dropout and such differ.

        Raises: ValueError for what is not a bool.
        """
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode is True or False, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """This module in the mode for use: the same as `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether the parameters require gradients; returns this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients of the parameters to None, or to zeros."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach()
                parameter.grad.zero_()

    # ---- dtypes and devices --------------------------------------------------------------------

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """This module, with its tensors replaced by what a function makes of them."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                replace_elements(parameter, fn)
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                replace_elements(buffer, fn)
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """This module, its floating parameters and buffers in another dtype: `to(tl.float64)`.

        It takes a dtype, a device or a tensor, as `Tensor.to` does. Complex ones count as floating.
        memory_format: of the parameters and buffers that have 4 or 5 dims.

        Raises: TypeError for a dtype of integers or bools, RuntimeError for a device that is not
        there.
        """
        target, where = target_of(args, kwargs)
        if target is not None and not has_gradients(target):
            raise TypeError("Module.to: only floating-point and complex dtypes are accepted, got "
                            f"{target}")
        order = kwargs.get("memory_format")

        def change(x):
            x = x.to(where, target if has_gradients(x.dtype) else None)
            return x if order is None or x.ndim not in (4, 5) else x.to(memory_format=order)
        return self._apply(change)

    def to_empty(self, *, device: Any = None, recurse: bool = True) -> Self:
        """This module, its parameters and buffers with memory that nothing was written to yet."""
        return self._apply(lambda x: empty_like(x, device=device), recurse=recurse)

    def type(self, dst_type: Any) -> Self:
        """This module, all its parameters and buffers in another dtype."""
        return self._apply(lambda x: x.type(dst_type))

    def float(self) -> Self:
        """This module with its floating parameters and buffers in float32."""
        return floats_to(self, float)

    def double(self) -> Self:
        """This module with its floating parameters and buffers in float64."""
        return floats_to(self, double)

    def half(self) -> Self:
        """This module with its floating parameters and buffers in float16."""
        return floats_to(self, half)

    def bfloat16(self) -> Self:
        """This module with its floating parameters and buffers in bfloat16."""
        return floats_to(self, bfloat16)

    def cpu(self) -> Self:
        """This module, which is in the memory of the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raises RuntimeError, if there is a parameter or buffer to copy: there is no GPU."""
        return self._apply(lambda x: x.cuda(device))

    def xpu(self, device: Any = None) -> Self:
        """Raises RuntimeError, if there is a parameter or buffer to copy: there is no GPU."""
        return self._apply(lambda x: x.xpu(device))

    def share_memory(self) -> Self:
        """This module, its parameters and buffers in memory that forked processes write to as well.

        A process that is started in another way gets values, and shares nothing.
        """
        return self._apply(lambda x: x.detach().share_memory_())

    # ---- as text -------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands in the brackets of a module's text; for subclasses to say."""
        return ""

    _repr_html_ = deferred("tensorlib.graph.html", "module_html")        # for notebooks

    def __repr__(self) -> str:
        extra = self.extra_repr()
        inside = [f"({name}): " + indented(repr(module)) for name, module in self._modules.items()]
        return laid_out(self._get_name(), extra.split("\n") if extra else [], inside)


def replace_elements(parameter, fn):
    """Gives a parameter or buffer, and its gradient, the elements that a function makes of them."""
    with no_grad():
        grad = parameter.grad
        learns, new = parameter.requires_grad, fn(parameter)
        if new is not parameter:
            parameter.grad = None
            parameter.requires_grad_(False)
            parameter.data = new
            parameter.requires_grad_(learns)
            if grad is not None:
                parameter.grad = fn(grad)


def target_of(args, kwargs):
    """The dtype and the device among the arguments of `to`, or None for each.

    Raises: TypeError for what is not an argument, RuntimeError for a device that does not exist.
    """
    unknown = set(kwargs) - {"device", "dtype", "tensor", "non_blocking", "memory_format"}
    if unknown:
        raise TypeError(f"Module.to: unexpected arguments {', '.join(sorted(unknown))}")
    target = where = None
    for value in (*args, kwargs.get("device"), kwargs.get("dtype"), kwargs.get("tensor")):
        if isinstance(value, Tensor):
            target, where = value.dtype, value.device
        elif isinstance(value, dtype):
            target = value
        elif isinstance(value, (str, device)):
            require_device("Module.to", value)
            where = value
        elif not isinstance(value, (bool, type(None))):
            raise TypeError("Module.to: takes a dtype, a device or a tensor, got "
                            f"{type(value).__name__}")
    return target, where


def indented(text):
    """A text of several lines, all but the first one deeper."""
    return text.replace("\n", "\n  ")


def floats_to(module, dtype):
    """The module with what is real and floating in another dtype; complex numbers stay."""
    return module._apply(lambda x: x.to(dtype) if x.is_floating_point() else x)


def laid_out(name, extra, inside):
    """The text of a module: on one line if it has but one line to say."""
    if len(extra) == 1 and not inside:
        return f"{name}({extra[0]})"
    lines = [f"\n  {line}" for line in (*extra, *inside)]
    return f"{name}({''.join(lines)}" + "\n" * bool(lines) + ")"


# ---- hooks for all modules ---------------------------------------------------------------------

def register_for_all(kind: str, hook: Callable[..., Any],
                     key: HookKey | None = None) -> RemovableHandle:
    """The handle of a hook for the calls of all modules, which have to look for hooks now."""
    Module._hooks = everywhere
    return everywhere.add(kind, hook, key)


def swap_for_all(kind: str) -> ItemSwap:
    """The swap that makes a function a hook of all modules."""
    Module._hooks = everywhere
    return ItemSwap(getattr(everywhere, kind), HookKey())


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, args)` before the `forward` of any module; returns its handle."""
    return register_for_all("forward_pre", hook)


def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False,
                                 always_call: bool = False) -> RemovableHandle:
    """Calls `hook(module, args, output)` after the `forward` of any module; returns its handle."""
    return register_for_all("forward", hook, HookKey(with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_output)` when gradients come to any module; returns its handle."""
    return register_for_all("backward_pre", hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` when gradients leave any module."""
    return register_for_all("backward", hook)


register_module_backward_hook = register_module_full_backward_hook


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, parameter)` when a module gets one; it may return another."""
    return registered(registration_hooks["_parameters"], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, buffer)` when a module gets one; it may return another."""
    return registered(registration_hooks["_buffers"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, submodule)` when a module gets one; it may return another."""
    return registered(registration_hooks["_modules"], hook)


# PyTorch's names, by which libraries that register members themselves run those hooks
_global_parameter_registration_hooks = registration_hooks["_parameters"]
_global_buffer_registration_hooks = registration_hooks["_buffers"]
_global_module_registration_hooks = registration_hooks["_modules"]

owners.modules.base, owners.modules.hooks_of_all = Module, everywhere
owners.modules.hooks = partial(swap_for_all, "forward_pre"), partial(swap_for_all, "forward")


def _addindent(s_: str, numSpaces: int) -> str:
    """A text whose lines but the first are indented, for texts of modules of one's own."""
    first, *rest = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + line if line.strip() else "" for line in rest)])
