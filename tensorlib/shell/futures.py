"""Results that are there later, under the names of `torch.futures`.

>>> future = tensorlib.futures.Future()
>>> doubled = future.then(lambda done: done.value() * 2)
>>> future.set_result(tensorlib.ones(2))
>>> doubled.wait()
tensor([2., 2.])
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import tensorlib as tl
from tensorlib._core.base.explained import explain

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(tl.Future, Generic[T]):
    """A result that another thread, or a later line, gives by `set_result` or `set_exception`.

    devices: changes nothing; values are in the memory of the process.
    """

    def __init__(self, *, devices: Iterable[Any] | None = None) -> None:
        self._held: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._held.done()

    def wait(self) -> T:
        """The result, once it is there. Raises the error that was set in its place."""
        return self._held.result()

    def value(self) -> T:
        """The result. Raises: RuntimeError if there is none yet; the error that was set."""
        if not self.done():
            raise RuntimeError("Future.value: there is no result yet; wait() waits for it")
        return self._held.result()

    def set_result(self, result: T) -> None:
        """Gives the result, and calls what waits for it. Raises: RuntimeError the second time."""
        self._complete(self._held.set_result, result)

    def set_exception(self, result: BaseException) -> None:
        """Gives an error in the place of a result. Raises: RuntimeError the second time."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"Future.set_exception: expected an exception, got {result!r}")
        self._complete(self._held.set_exception, result)

    def _complete(self, give: Callable[[Any], None], result: Any) -> None:
        if self.done():
            raise RuntimeError("Future can only be marked completed once")
        give(result)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """What `callback` makes of this future, once it is done, as another one."""
        made: Future[S] = Future()

        def call(_: Any) -> None:
            try:
                made.set_result(callback(self))
            except Exception as error:
                made.set_exception(error)

        self._held.add_done_callback(call)
        return made

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Has `callback` be called with this future once it is done, or now if it is."""
        self._held.add_done_callback(lambda _: callback(self))


def collect_all(futures: Iterable[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of all these futures, which is done when the last of them is."""
    given = list(futures)
    waiting: set[Future[Any]] = set(given)
    all_done: Future[list[Future[Any]]] = Future()

    def one_less(future: Future[Any]) -> None:
        waiting.discard(future)
        if not waiting and not all_done.done():
            all_done.set_result(given)

    if not given:
        all_done.set_result(given)
    for future in given:
        future.add_done_callback(one_less)
    return all_done


def wait_all(futures: Iterable[Future[Any]]) -> list[Any]:
    """The results of all futures, once they are there. Raises the first error among them."""
    return [future.wait() for future in collect_all(futures).wait()]


explain(vars(), __all__)
