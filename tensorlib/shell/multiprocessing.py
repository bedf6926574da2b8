"""Python's `multiprocessing`, under the name by which scripts for PyTorch import it.

Tensors go to other processes by value. What lies in shared memory, as `Module.share_memory()`
makes it, is the same memory in all processes that are forked afterwards.
"""

import signal
import traceback
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as _names
from multiprocessing import connection, get_context
from typing import Any

from tensorlib._core.base.registry import Registry

__all__ = [*_names, "ProcessContext", "ProcessException", "ProcessExitedException",
           "ProcessRaisedException", "get_all_sharing_strategies", "get_sharing_strategy",
           "set_sharing_strategy", "spawn", "start_processes"]

STRATEGIES = {"file_descriptor", "file_system"}
_kept = Registry(strategy="file_descriptor")


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return set(STRATEGIES)


def get_sharing_strategy() -> str:
    """The strategy that `set_sharing_strategy` stored, at first "file_descriptor"."""
    return str(_kept["strategy"])


def set_sharing_strategy(new_strategy: str) -> None:
    """Stores a name, without effect. Raises: ValueError for an unknown one.

    >>> tensorlib.multiprocessing.set_sharing_strategy("file_system")
    """
    if new_strategy not in STRATEGIES:
        raise ValueError(f"set_sharing_strategy: expected one of {', '.join(sorted(STRATEGIES))}, "
                         f"got {new_strategy!r}")
    _kept["strategy"] = new_strategy


# ---- processes that do one thing -----------------------------------------------------------------

class ProcessException(Exception):
    """A process that `spawn` started has not ended well: its number, and the process's own."""

    def __init__(self, msg: str, error_index: int, pid: int | None) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process has raised an error, whose text this one shows."""


class ProcessExitedException(ProcessException):
    """A process has ended by an exit code, or was killed by a signal, which has a name."""

    def __init__(self, msg: str, error_index: int, error_pid: int | None, exit_code: int,
                 signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


class ProcessContext:
    """Processes that were started together: `join()` waits for them."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes, self.errors = processes, errors
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int | None]:
        """The ids of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Whether all have ended well, after waiting for one that ends, `timeout` seconds at most.

        Where one has failed the others are told to end, and killed after `grace_period` seconds.
        Raises: ProcessRaisedException, ProcessExitedException for the first that has failed.
        """
        for sentinel in connection.wait(self.sentinels, timeout=timeout):
            i = self.sentinels.pop(sentinel)  # type: ignore[call-overload]
            self.processes[i].join()
            if self.processes[i].exitcode:
                self._end(grace_period)
                raise self._error(i)
        return not self.sentinels

    def _end(self, grace_period: float | None) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30 if grace_period is None else grace_period)
            if process.is_alive():
                process.kill()
                process.join()

    def _error(self, i: int) -> ProcessException:
        process, code = self.processes[i], self.processes[i].exitcode
        try:
            text = f"process {i} terminated with the following error:\n{self.errors[i].recv()}"
            return ProcessRaisedException(text, i, process.pid)
        except EOFError:                     # it had no time to say why
            pass
        name = signal.Signals(-code).name if -code in set(signal.Signals) else None
        how = f"signal {name}" if name else f"exit code {code}"
        return ProcessExitedException(f"process {i} terminated with {how}", i, process.pid, code,
                                      name)


def _run(fn: Callable[..., Any], i: int, args: tuple[Any, ...], error: Any) -> None:
    """What a process does: an error is sent as text, since its type may not be there to build."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass                                 # it was ended from outside
    except Exception:
        error.send(traceback.format_exc())
        raise SystemExit(1) from None


def start_processes(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1,
                    join: bool = True, daemon: bool = False, start_method: str = "spawn"
                    ) -> ProcessContext | None:
    """As `spawn`, with processes that are started in this way."""
    context: Any = get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        receives, sends = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, sends), daemon=daemon)
        process.start()
        sends.close()
        processes.append(process)
        errors.append(receives)
    started = ProcessContext(processes, errors)
    while join and not started.join():
        pass
    return None if join else started


def spawn(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
          daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """Runs `fn(i, *args)` in `nprocs` new processes, and waits for them.

    join: whether to wait; without it, a `ProcessContext` is returned. fn must be one that can be
    pickled, from a module. Raises: ProcessRaisedException with the text of an error in a process,
    ProcessExitedException for one that was killed.
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)
