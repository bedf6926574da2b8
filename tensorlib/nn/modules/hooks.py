"""Module hooks: before and after the call of a module, and on its gradients."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tensorlib._core.base.warned import warn_of
from tensorlib._core.base.error_names import shown
from tensorlib._core.base.importing import deferred
from tensorlib._core.graph.handles import RemovableHandle, numbers

# few models have hooks on gradients
Passage = deferred("tensorlib.nn.modules.backward_hooks", "Passage")


class HookKey(int):
    """The key of a hook, a number of its own that says how the hook wants to be called. The value
    is the user's function: libraries look for theirs among the hooks of a module."""

    with_kwargs: bool
    always_call: bool

    def __new__(cls, with_kwargs: bool = False, always_call: bool = False) -> "HookKey":
        made = super().__new__(cls, next(numbers))
        made.with_kwargs, made.always_call = with_kwargs, always_call
        return made

    def __reduce__(self) -> Any:
        return HookKey, (self.with_kwargs, self.always_call)      # of a number that is free there


USUAL = HookKey()                     # for hooks that a program added to the dict itself


def registered(hooks: Any, function: Any, key: object = None) -> RemovableHandle:
    """The handle of a function that was put last among hooks. Raises: TypeError for no function."""
    if not callable(function):
        raise TypeError(f"a hook must be callable, got {type(function).__name__}")
    if key is None:
        key = next(number for number in numbers if number not in hooks)
    hooks[key] = function
    return RemovableHandle(hooks, key)


HookDict = OrderedDict[object, Callable[..., Any]]


class Hooks:
    """The hooks of one module, or of all, by kind and in the order in which they run."""

    def __init__(self) -> None:
        self.forward_pre: HookDict = OrderedDict()
        self.forward: HookDict = OrderedDict()
        self.backward_pre: HookDict = OrderedDict()
        self.backward: HookDict = OrderedDict()

    def add(self, kind: str, function: Callable[..., Any], key: HookKey | None = None,
            prepend: bool = False) -> RemovableHandle:
        """The handle of a hook that was put last, or first."""
        hooks: HookDict = getattr(self, kind)
        handle = registered(hooks, function, HookKey() if key is None else key)
        if prepend:
            hooks.move_to_end(handle.key, last=False)
        return handle

    def __bool__(self) -> bool:
        return bool(self.forward or self.forward_pre or self.backward or self.backward_pre)


everywhere = Hooks()


def kept(kind: str) -> Any:
    """The attribute of a module that is its hooks of one kind; it takes those of another dict."""
    def get(module: Any) -> HookDict:
        hooks: HookDict = getattr(module._own_hooks(), kind)
        return hooks

    def take(module: Any, others: HookDict) -> None:
        given, hooks = dict(others), get(module)
        hooks.clear()
        hooks.update(given)

    return property(get, take)


class Hooked:
    """How hooks are put on a module. Each method returns a handle, whose `remove()` ends it."""

    # None until this module, or all modules, have hooks: the one thing that a call tests
    _hooks: Hooks | None = None

    def _own_hooks(self) -> Hooks:
        if "_hooks" not in vars(self):
            vars(self)["_hooks"] = Hooks()
        hooks: Hooks = vars(self)["_hooks"]
        return hooks

    _forward_hooks, _forward_pre_hooks = kept("forward"), kept("forward_pre")
    _backward_hooks, _backward_pre_hooks = kept("backward"), kept("backward_pre")

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:
        """Calls `hook(module, args)` before `forward`, whose arguments are what it returns.

        With `with_kwargs` it is `hook(module, args, kwargs)`, and returns both. None changes
        nothing.
        """
        return self._own_hooks().add("forward_pre", hook, HookKey(with_kwargs), prepend)

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False,
                              with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Calls `hook(module, args, output)` after `forward`; what it returns is the new output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`. With `always_call` it is
        called after an error, too, with None for an output that is not there yet. None changes
        nothing.

        >>> layer = Linear(2, 1)
        >>> handle = layer.register_forward_hook(lambda module, args, output: output * 0)
        >>> layer(tensorlib.ones(2)).detach()
        tensor([0.])
        """
        return self._own_hooks().add("forward", hook, HookKey(with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any],
                                        prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_output)` when the gradients of the outputs are there.

        What it returns takes their place; None changes nothing.
        """
        return self._own_hooks().add("backward_pre", hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any],
                                    prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the gradients of the inputs are there.

        Both are tuples, with None for what is not a tensor or has no gradient, but zeros for inputs
        that require none beside others. What it returns takes the place of `grad_input`; None
        changes nothing. Inputs are those passed by position.
        """
        return self._own_hooks().add("backward", hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The same as `register_full_backward_hook`, under its old name."""
        return self.register_full_backward_hook(hook)


# ---- calls with hooks ----------------------------------------------------------------------------

class CompiledCall:
    """The call of a compiled module; a copy or a pickle of it is None."""

    def __init__(self, function):
        self.function = function

    def __reduce__(self):
        return type(None), ()


def set_compiled_call(module, function):
    """Lets the calls of a module, which looks for hooks from now on, go to a function."""
    module._own_hooks()
    vars(module)["_compiled_call"] = CompiledCall(function)


def call_with_hooks(module, args, kwargs):
    """The result of a module that may have hooks, or may be compiled."""
    compiled = vars(module).get("_compiled_call")
    if compiled is None or everywhere or module._own_hooks():
        return call_eagerly(module, *args, **kwargs)
    return compiled.function(*args, **kwargs)


def name_module(module, error):
    """Lets an error say in which part of the outermost module it was raised, by a note.

    Its traceback shows one frame of the library where several lie one above the other. The note
    is that of the innermost module, and each one outside of it puts the part's name before it.
    """
    if not isinstance(error, MemoryError):
        shown(error, module.forward)
    notes = getattr(error, "__notes__", None)
    part = notes[-1] if notes else None
    if type(part) is PartNote:
        name = next((name for name, child in module.named_children() if child is part.module), None)
        if name is not None:
            notes[-1] = PartNote(module, f"{name}.{part.path}" if part.path else name, part.text)
    else:
        text = repr(module)
        error.add_note(PartNote(module, "", text if "\n" not in text else type(module).__name__))


class PartNote(str):
    """A note that names the module in which an error was raised, by its path from another."""

    def __new__(cls, module, path, text):
        note = super().__new__(cls, f"in {path}: {text}" if path else f"in {text}")
        note.module, note.path, note.text = module, path, text
        return note

    def __reduce__(self):
        return str, (str(self),)


def call_eagerly(module, /, *args, **kwargs):
    """The result of a module, with the hooks of all modules and its own."""
    sets = [hooks for hooks in (everywhere, vars(module).get("_hooks")) if hooks]
    if not sets:                     # all hooks have been removed
        return module.forward(*args, **kwargs)
    called, output = set(), None
    try:
        args, kwargs = before_forward(sets, module, args, kwargs)
        before, after = ([function for _, function in hooks_of(sets, kind)]
                         for kind in ("backward_pre", "backward"))
        passage = Passage(module, before, after) if before or after else None
        if passage:
            args = passage.into(args)
        output = module.forward(*args, **kwargs)
        for key, function in hooks_of(sets, "forward"):
            called.add(key)
            output = after_forward(key, function, module, args, kwargs, output)
        return passage.out_of(output) if passage else output
    except Exception:
        for key, function in hooks_of(sets, "forward"):
            if key.always_call and key not in called:
                call_after_error(key, function, module, args, kwargs, output)
        raise


def hooks_of(sets, kind):
    """The keys and functions of the hooks of one kind, those of all modules first."""
    # Copied at once: another thread may register one.
    return [(key if type(key) is HookKey else USUAL, function)
            for each in sets for key, function in tuple(getattr(each, kind).items())]


def before_forward(sets, module, args, kwargs):
    """The arguments of `forward`, after the hooks before it."""
    for key, function in hooks_of(sets, "forward_pre"):
        if key.with_kwargs:
            result = function(module, args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2
                    and isinstance(result[1], dict)):
                raise RuntimeError("a forward pre-hook with kwargs must return None or a tuple of "
                                   f"the new arguments and keywords, got {result!r}")
            args, kwargs = result
        else:
            result = function(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
    return args, kwargs


def after_forward(key, function, module, args, kwargs, output):
    """The output of `forward`, after one hook."""
    given = (args, kwargs, output) if key.with_kwargs else (args, output)
    result = function(module, *given)
    return output if result is None else result


def call_after_error(key, function, module, args, kwargs, output):
    """Calls a hook after an error, which a second one must not hide."""
    try:
        after_forward(key, function, module, args, kwargs, output)
    except Exception as error:
        warn_of(f"a forward hook with always_call=True raised an exception after one in "
                f"{type(module).__name__}: {error}", level=3)
