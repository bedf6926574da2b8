"""Communication under way: waiting for it, with a bound, without keeping a core busy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tensorlib.distributed.errors import DistBackendError, DistTimeoutError
from tensorlib.distributed.mpi import mpi

__all__ = ["Work", "WorkFuture"]

# How often a request is tested before the processor is offered to others between two tests: some
# 30 us, in which a small message between running processes arrives.
EAGER_TESTS = 100
# After that many seconds of offering it, a process sleeps between tests. A test is also what moves
# a large message on, so each byte under way adds a little.
PATIENCE, PATIENCE_PER_BYTE = 0.02, 5e-9
FIRST_SLEEP, LONGEST_SLEEP = 50e-6, 1e-3


class Work:
    """What an asynchronous call returns: `wait()` ends it, and only then are its results there.

    All communication is by non-blocking calls of MPI. They move on whenever this process tests
    one of them: in `wait()`, in `is_completed()`, and in the hooks of a backward sweep.
    """

    def __init__(self, group: Any, name: str, requests: Sequence[Any], result: Any = None,
                 finish: Callable[[], None] | None = None, nbytes: int = 0,
                 keep: Any = None) -> None:
        self.group, self.name, self.result = group, name, result
        self._requests = list(requests)
        self._finish, self._nbytes, self._keep = finish, nbytes, keep
        self._error: BaseException | None = None
        self._done = False
        self.source: int | None = None

    def is_completed(self) -> bool:
        """Whether it has ended; a call moves it on, and never waits."""
        if not self._done:
            try:
                self._done = self._test()
            except BaseException as error:
                self._error, self._done = error, True
            if self._done:
                self._end()
        return self._done

    def is_success(self) -> bool:
        """Whether it has ended without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """The error that ended it, or None."""
        return self._error

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """True once it has ended.

        Raises: DistTimeoutError beyond the timeout (by default that of the group); the error that
        ended it.
        """
        if not self._done:
            bound = self.group.seconds if timeout is None else seconds_of(timeout)
            if not wait_until(self.is_completed, bound, self._nbytes):
                self.group.fail(self)
                self._error, self._done = DistTimeoutError(
                    f"{self.name}: rank {self.group.global_rank} waited for {bound:g} s in "
                    f"{self.group.described()}; another rank has ended, hangs, or did not make "
                    "this call. The group can't be used any more: end the job, and look at the "
                    "other ranks first"), True
        if self._error is not None:
            raise self._error
        return True

    def get_future(self) -> WorkFuture:
        """A future of the list of tensors that this gives."""
        value = self.result if isinstance(self.result, list) else [self.result]
        return WorkFuture(self, lambda: value)

    def source_rank(self) -> int:
        """The rank that a message came from. Raises RuntimeError before it is there."""
        if self.source is None:
            raise RuntimeError(f"{self.name}: nothing has come yet")
        return self.source

    def _test(self) -> bool:
        try:
            while self._requests:
                if not self._requests[-1].Test():
                    return False
                self._requests.pop()
        except mpi().Exception as error:
            raise backend_error(self.group, self.name, error) from error
        return True

    def _end(self) -> None:
        """Unpacks what came, and releases the memory."""
        if self._error is None and self._finish is not None:
            try:
                self._finish()
            except BaseException as error:
                self._error = error
        self._requests, self._finish, self._keep = [], None, None


class WorkFuture:
    """A value that is there once some communication has ended.

    Unlike `futures.Future`, which another thread fulfils, it moves the communication on itself when
    it is asked or waited for.

    >>> future = tensorlib.distributed.Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(4)
    >>> doubled.wait()
    8
    """

    def __init__(self, work: Any = None, value: Callable[[], Any] | None = None) -> None:
        self._work, self._make = work, value
        self._has_value = False
        self._value: Any = None

    def done(self) -> bool:
        """Whether the value is there."""
        return self._has_value or (self._make is not None and self._work.is_completed())

    def is_completed(self) -> bool:
        """The same, as of a `Work`."""
        return self.done()

    def wait(self) -> Any:
        """The value, once it is there. Raises: RuntimeError if nothing is under way for it."""
        if not self._has_value:
            if self._make is None:
                raise RuntimeError("Future: nothing is under way, and set_result() was not called")
            self._work.wait()
            self.set_result(self._make())
        return self._value

    def value(self) -> Any:
        """The value. Raises: RuntimeError before it is there."""
        if not self.done():
            raise RuntimeError("Future: the value is not there yet; wait() for it")
        return self.wait()

    def set_result(self, value: Any) -> None:
        """Gives the value."""
        self._value, self._has_value = value, True

    def then(self, callback: Callable[[WorkFuture], Any]) -> WorkFuture:
        """A future of what the callback makes of this one, called by whoever waits first."""
        def made() -> Any:
            self.wait()
            return callback(self)

        return WorkFuture(_FutureWaiter(self), made)


class _FutureWaiter:
    """Waits for a future, as another's work."""

    def __init__(self, future: WorkFuture) -> None:
        self.future = future

    def is_completed(self) -> bool:
        return self.future.done()

    def wait(self) -> None:
        self.future.wait()


def backend_error(group: Any, name: str, error: Any) -> DistBackendError:
    """What MPI raised in a call, as the error that says where."""
    return DistBackendError(
        f"{name}: MPI on rank {group.global_rank}: {error.Get_error_string()}")


def wait_until(ended: Callable[[], bool], bound: float, nbytes: int = 0) -> bool:
    """Calls `ended` until it is so or `bound` seconds are over; which of them it was."""
    for _ in range(EAGER_TESTS):
        if ended():
            return True
    start = time.monotonic()
    patience, sleep = PATIENCE + nbytes * PATIENCE_PER_BYTE, FIRST_SLEEP
    while not ended():
        waited = time.monotonic() - start
        if waited > bound:
            return ended()
        if waited < patience:
            os.sched_yield()
        else:
            time.sleep(sleep)
            sleep = min(2 * sleep, LONGEST_SLEEP)
    return True


def seconds_of(timeout: timedelta | float) -> float:
    """A timeout in seconds. Raises: TypeError, ValueError for what is not a positive time."""
    if isinstance(timeout, timedelta):
        timeout = timeout.total_seconds()
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout: takes a timedelta or seconds, got {type(timeout).__name__}")
    if not timeout > 0:
        raise ValueError(f"timeout: takes more than 0 seconds, got {timeout:g}")
    return float(timeout)


