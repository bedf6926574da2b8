"""`compile` of a module of `nn`: the result acts as a module, and can be a part of others."""

from collections.abc import Iterator
from copy import copy
from functools import WRAPPER_ASSIGNMENTS, partial
from types import MethodType
from typing import Any

from tensorlib._core.graph import owners
from tensorlib.program.compiled.compiling import Compiled

# The attributes of the wrapper itself. All others are those of the module.
OWN = {"_f", "_fullgraph", "_options", "_entries", "_eager", "_changes", "_check", "_replays",
       "_told", "_parts", "_quiet", "_apart", "_refused", "_definition",
       "_said", "_slots",
       "__wrapped__",
       *WRAPPER_ASSIGNMENTS}
# Methods that return the module that they are called on.
RETURNING = {"apply", "bfloat16", "cpu", "cuda", "double", "eval", "float", "half",
             "requires_grad_", "share_memory", "to", "to_empty", "train", "type"}


class CompiledModule(Compiled):
    """A module whose calls are replayed. All other attributes, also `__class__`, are those of the
    module, so that assigning it registers it as a submodule with its parameters."""

    @property                    # isinstance(x, Module) holds, and of the module's own class
    def __class__(self) -> Any:
        return self._f.__class__                 # the same for a module that is compiled already

    @__class__.setter
    def __class__(self, kind: type) -> None:
        self._f.__class__ = kind

    @property
    def __dict__(self) -> dict[str, Any]:       # type: ignore[override]
        return vars(self._f)

    @property
    def _orig_mod(self) -> Any:
        """The module, as PyTorch calls it."""
        return self._f

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own; names may begin with `_orig_mod.`, as in PyTorch."""
        return self._f.__class__.load_state_dict(self, *args, **kwargs)

    def __copy__(self) -> Compiled:
        return type(self)(copy(self._f), self._fullgraph, self._options, self._check)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._f, name)
        if name in RETURNING and type(found) in (MethodType, partial):
            return partial(self._chained, found)
        return found

    def _chained(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        """The result of a method of the module; if that is the module, the wrapper instead."""
        result = method(*args, **kwargs)
        return self if result is self._f else result

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self._f, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._f, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self                              # as a class attribute it is no method

    def __dir__(self) -> list[str]:
        return dir(self._f)

    # ---- methods of containers, which Python looks up in the class only

    def __bool__(self) -> bool:
        return bool(self._f)

    def __len__(self) -> int:
        return len(self._f)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._f)

    def __contains__(self, x: Any) -> bool:
        return x in self._f

    def __getitem__(self, key: Any) -> Any:
        return self._f[key]

    def __setitem__(self, key: Any, module: Any) -> None:
        self._f[key] = module

    def __delitem__(self, key: Any) -> None:
        del self._f[key]


def compiled(model: Any, fullgraph: bool, options: dict[str, Any] | None, disable: bool,
             check: bool | int) -> Any:
    """The result of `tensorlib.compile`."""
    if not isinstance(check, int) or check < 0:
        raise TypeError(f"compile: check is a bool or a number of calls, got {check!r}")
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"compile: options are a dict, got {type(options).__name__}")
    if model is None:
        return lambda f: compiled(f, fullgraph, options, disable, check)
    if not callable(model):
        raise TypeError(f"compile: takes a function or a module, got {type(model).__name__}")
    kind = CompiledModule if isinstance(model, owners.modules.base) else Compiled
    return model if disable else kind(model, bool(fullgraph), options, int(check))
