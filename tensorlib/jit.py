"""What scripts ask of PyTorch's compiler: there is none, and functions run as they are.

`script`, `trace` and their like give back what they get. So a program that decorates its functions
for PyTorch's compiler runs, with the same results. `tensorlib.compile` captures a function as a
program, and `tensorlib.save` keeps the values of a module.

>>> @tensorlib.jit.script
... def double(x):
...     return x + x
>>> double(tensorlib.ones(2)), tensorlib.jit.is_scripting()
(tensor([2., 2.]), False)
"""

from collections.abc import Callable
from typing import Any, TypeVar
from typing import Final as Final  # of annotations for the compiler

__all__ = ["Attribute", "annotate", "export", "freeze", "ignore", "is_scripting", "is_tracing",
           "load", "optimize_for_inference", "save", "script", "script_if_tracing", "trace",
           "trace_module", "unused"]

Same = TypeVar("Same")


def script(obj: Same, optimize: Any = None, example_inputs: Any = None) -> Same:
    """`obj`, a function, class or module, as it is."""
    return obj


def script_if_tracing(fn: Same) -> Same:
    """`fn` as it is: nothing is traced."""
    return fn


def trace(func: Same, example_inputs: Any = None, **options: Any) -> Same:
    """`func` as it is, with its conditions and loops; it is not run. The options change nothing."""
    return func


def trace_module(mod: Same, inputs: dict[str, Any], **options: Any) -> Same:
    """`mod` as it is; no method is run. The options change nothing."""
    return mod


def freeze(mod: Same, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> (
        Same):
    """`mod` as it is."""
    return mod


def optimize_for_inference(mod: Same, other_methods: list[str] | None = None) -> Same:
    """`mod` as it is."""
    return mod


def export(fn: Same) -> Same:
    """`fn` as it is: methods need no mark."""
    return fn


def unused(fn: Same) -> Same:
    """`fn` as it is: it is never replaced by an error."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator that gives back its function; as `@ignore` and as `@ignore(drop=True)`."""
    return drop if callable(drop) else unused


def is_scripting() -> bool:
    """False: functions are never translated."""
    return False


def is_tracing() -> bool:
    """False: functions are never traced."""
    return False


def annotate(the_type: Any, the_value: Same) -> Same:
    """`the_value`; its type is for readers."""
    return the_value


def Attribute(value: Same, type: Any) -> Same:
    """`value`; its type is for readers."""
    return value


isinstance: Callable[[Any, Any], bool] = isinstance


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Raises RuntimeError: there is no program of PyTorch's compiler to save."""
    raise RuntimeError("jit.save: there are no compiled programs; "
                       "tensorlib.save(m.state_dict(), f) keeps the values of a module")


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> Any:
    """Raises RuntimeError: programs of PyTorch's compiler do not run here."""
    raise RuntimeError("jit.load: programs of PyTorch's compiler do not run here; tensorlib.load "
                       "reads the values that torch.save(m.state_dict(), f) wrote")
