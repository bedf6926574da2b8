"""Names of `torch.fx` that libraries import; its graphs of Python calls are not supported.

A library that marks its functions for a tracer, or asks whether a module was made of a graph, runs
as it is. What would make a graph raises NotImplementedError: `tensorlib.compile` and
`tensorlib.program` capture functions here.
"""

from collections.abc import Callable
from typing import Any, Never, TypeVar

from tensorlib import nn
from tensorlib._core.base.explained import explain
from tensorlib._core.base.importing import parts_of

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
           "symbolic_trace", "wrap"]

parts_of(__name__, "experimental", "proxy_tensor", "node")

F = TypeVar("F", bound=Callable[..., Any] | str)


def _absent(name: str) -> Never:
    raise NotImplementedError(
        f"fx.{name}: there are no graphs of torch.fx here; tensorlib.compile captures a function, "
        "and tensorlib.program.trace gives its operations")


def get_proxy_mode() -> None:
    """None: nothing is traced."""


class _Absent:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _absent(type(self).__name__)


class Graph(_Absent):
    """The type of graphs, of which there are none. Raises: NotImplementedError when called."""


class Node(_Absent):
    """The type of their nodes. Raises: NotImplementedError when called."""


class Proxy(_Absent):
    """The type of values that are traced. Raises: NotImplementedError when called."""


class Tracer(_Absent):
    """The base of tracers. Raises: NotImplementedError when called."""


class Interpreter(_Absent):
    """The base of what runs a graph. Raises: NotImplementedError when called."""


class Transformer(_Absent):
    """The base of what changes a graph. Raises: NotImplementedError when called."""


class GraphModule(_Absent, nn.Module):
    """The type of modules made of a graph. Raises: NotImplementedError when called."""


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """Raises NotImplementedError: there is no such tracer."""
    _absent("symbolic_trace")


def wrap(fn_or_name: F) -> F:
    """The function, or the name, as it is: no tracer would look into it.

    Raises: RuntimeError for what is neither.
    """
    if not (callable(fn_or_name) or isinstance(fn_or_name, str)):
        raise RuntimeError("wrap: takes a function or the name of one, got "
                           f"{type(fn_or_name).__name__}")
    return fn_or_name

explain(vars(), __all__)
