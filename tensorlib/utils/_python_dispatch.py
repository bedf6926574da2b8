"""Modes that are given the operations of a thread, as `torch.utils._python_dispatch` has them.

>>> from tensorlib.utils._python_dispatch import TorchDispatchMode
>>> class Names(TorchDispatchMode):
...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
...         print(func)
...         return func(*args, **(kwargs or {}))
>>> with Names():
...     x = tensorlib.ones(2).add_(1).exp()
aten.add_.default
aten.exp.default
"""

from typing import Any

from tensorlib import _aten
from tensorlib._core.interpreters.stack import Interpreter, performed

__all__ = ["TorchDispatchMode"]


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """False: a tensor that others are wrapped in is captured as what it computes."""
    return False


class Dispatched(_aten.OpOverload):
    """An operation as it is called. It equals `torch.ops.aten.NAME.default`."""

    def __init__(self, op: Any, name: str) -> None:
        super().__init__(f"{name}.default")
        self.op, self.written = op, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return performed(self.op, self.written, args, kwargs)


class TorchDispatchMode(Interpreter):
    """A context in which `__torch_dispatch__` of its class does the operations of the thread.

    func: an operation that runs, under its name here, with all its arguments; what is called is a
    `TorchFunctionMode`'s. Overloads have one name, so `func.overloadpacket` is what to compare.
    A derivative that a sweep computes as one formula is no operation. types: always ().
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What an operation gives. Raises: NotImplementedError where a class has none of its own.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no __torch_dispatch__")

    def call(self, op: Any, args: Any, kwargs: Any) -> Any:
        """What an operation gives."""
        return self.__torch_dispatch__(Dispatched(op, op.name), (), args, kwargs)

    def write(self, op: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Does what writes into its first tensor."""
        return self.__torch_dispatch__(Dispatched(op, name), (), args, kwargs)
