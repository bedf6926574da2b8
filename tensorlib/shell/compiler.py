"""The names of `torch.compiler`; `tensorlib.compile` is this library's compiler."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorlib import compile
from tensorlib._core.interpreters.capture import capture
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.run.dispatch import STANCES, take_stance

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin",
           "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends",
           "reset", "set_stance"]
# A first call is captured as it runs eagerly, so that these are the default here.
EAGER_FIRST = ("eager_then_compile", "aot_eager_then_compile")


def is_compiling() -> bool:
    """Whether what runs is being captured by `compile`, or as another program.

    >>> tensorlib.compiler.is_compiling()
    False
    """
    recorder = capture()
    return recorder is not None and not getattr(recorder, "why", "")


def is_dynamo_compiling() -> bool:
    """The same as `is_compiling`."""
    return is_compiling()


def is_exporting() -> bool:
    """False: an export captures as `compile` does."""
    return False


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *,
            reason: str | None = None) -> Any:
    """`fn`, which runs eagerly also where its caller was given to `compile`: so does the caller.

    Without a function, this is a decorator. recursive changes nothing.
    Raises: program.CaptureError when it is called in what must be captured whole.
    """
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason)
    function, why = fn, "" if reason is None else f" ({reason})"

    @wraps(function)
    def eager(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            name = getattr(function, "__qualname__", repr(function))
            refuse(f"compiler.disable: {name} is not to be captured{why}")
        return function(*args, **kwargs)
    return eager


class set_stance:
    """What calls of compiled functions do from now on, in a block, or in a decorated function.

    stance: "default"; "force_eager": none is replayed; "eager_on_recompile" and
    "fail_on_recompile": those for which there is no replay yet run eagerly, or are errors.
    skip_guard_eval_unsafe, force_backend: change nothing.
    Raises: ValueError for another stance, program.CaptureError in what must be captured whole.

    >>> double = tensorlib.compile(lambda x: x * 2)
    >>> with tensorlib.compiler.set_stance("force_eager"):
    ...     double(tensorlib.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
                 force_backend: Any = None) -> None:
        if stance not in STANCES and stance not in EAGER_FIRST:
            raise ValueError(f"set_stance: stance must be one of "
                             f"{', '.join((*STANCES, *EAGER_FIRST))}, got {stance!r}")
        self.stance = "default" if stance in EAGER_FIRST else stance
        self.before = self._take()

    def _take(self) -> str:
        """Takes the stance, and returns the one before."""
        if is_compiling():
            refuse(f"compiler.set_stance({self.stance!r}) can't be captured")
        return take_stance(self.stance)

    def __enter__(self) -> None:
        self._take()

    def __exit__(self, *error: Any) -> None:
        take_stance(self.before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, under this stance."""
        take_stance(self.before)
        stance = self.stance

        @wraps(function)
        def under(*args: Any, **kwargs: Any) -> Any:
            with set_stance(stance):
                return function(*args, **kwargs)
        return under


def refuse(why: str) -> None:
    """Ends the capture under way. Raises: CaptureError if it must not end."""
    recorder: Any = capture()
    if not hasattr(recorder, "fail"):
        raise CaptureError(why)
    recorder.fail(why)


def allow_in_graph(fn: Any) -> Any:
    """The function as it is: what it does with tensors is captured as all else."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """The function as it is: what is not a tensor is constant in a capture."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Does nothing: there are no graphs of a GPU."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """No names: there is one way to run what was captured."""
    return []


def reset() -> None:
    """Does nothing: what was captured is kept with the function that `compile` gave."""
