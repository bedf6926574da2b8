"""Measuring how long a statement takes."""

import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from textwrap import dedent
from time import perf_counter
from typing import Any

from tensorlib._core.base.pool import get_num_threads, set_num_threads
from tensorlib.utils.benchmark.measurement import Measurement, TaskSpec

timer = perf_counter     # the clock, by the name that PyTorch gives it
MOST_RUNS = 10_000_000


class Language(Enum):
    """The languages that PyTorch's timers know; statements of C++ are refused here."""

    PYTHON = 0
    CPP = 1


def unindented(text: str) -> str:
    """Program text as it stands in a string of several lines, without what these begin with."""
    return dedent(text).removeprefix("\n").rstrip()


class Timer:
    """Measures a statement of Python, by default on one thread.

    stmt, setup: program text, which may be indented, run with the names in `globals`, and with
    `torch` for this library; `global_setup` is for C++ alone.
    label, sub_label, description, env: what results are shown under, which `Compare` sorts by.
    Raises: ValueError for another language than Python.
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
                 timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
                 label: str | None = None, sub_label: str | None = None,
                 description: str | None = None, env: str | None = None, num_threads: int = 1,
                 language: Language | str = Language.PYTHON) -> None:
        if language not in (Language.PYTHON, "python", "py") or global_setup:
            raise ValueError("Timer: statements are in Python, and have no global_setup; got "
                             f"language={language!r}, global_setup={global_setup!r}")
        if not isinstance(stmt, str):
            raise ValueError("Timer: stmt must be a string, for calls differ in cost; got "
                             f"{type(stmt).__name__}")
        stmt, setup = unindented(stmt), unindented(setup)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env,
                                   num_threads)
        # a copy: what the statement assigns does not reach the caller's names
        names = dict(globals or {})
        first = "" if "torch" in names else "import tensorlib as torch\n"
        self._timer = timeit.Timer(stmt, first + setup, timer, names)

    @contextmanager
    def _threads(self) -> Iterator[None]:
        """A context with the task's number of threads."""
        before = get_num_threads()
        set_num_threads(self._task_spec.num_threads)
        try:
            yield
        finally:
            set_num_threads(before)

    def _time(self, number: int) -> float:
        """Seconds of so many statements."""
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """The time of one run of `number` statements, after a short one to warm up.

        Raises: ValueError for a number below 1.
        """
        if number < 1:
            raise ValueError(f"Timer.timeit: number must be 1 or more, got {number}")
        with self._threads():
            self._time(max(number // 100, 2))
            return Measurement(number, [self._time(number)], self._task_spec)

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """PyTorch has it in name alone: `blocked_autorange` is what it offers. Raises."""
        raise NotImplementedError("Timer.autorange: see Timer.blocked_autorange")

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """PyTorch has it in name alone: `blocked_autorange` is what it offers. Raises."""
        raise NotImplementedError("Timer.repeat: see Timer.blocked_autorange")

    def _block_size(self, min_run_time: float) -> int:
        """How many statements make a run that takes 1 % of the time in all, and long enough for
        what the clock itself takes to be nothing."""
        overhead = min(self._timer.timeit(0) for _ in range(5))
        number = 1
        while True:
            taken = self._time(number)
            if (taken >= min_run_time / 1000 and overhead <= 1e-4 * taken
                    or taken >= min_run_time or number >= MOST_RUNS):
                return number
            number *= 10

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None,
                          min_run_time: float = 0.2) -> Measurement:
        """The times of runs that take `min_run_time` seconds together.

        callback: called with the number of statements and the seconds of each run.
        """
        with self._threads():
            number, times, total = self._block_size(min_run_time), list[float](), 0.0
            while total < min_run_time:
                times.append(self._time(number))
                total += times[-1]
                if callback is not None:
                    callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01,
                           max_run_time: float = 10.0,
                           callback: Callable[[int, float], Any] | None = None) -> Measurement:
        """The times of runs until the middle half of them lies within `threshold` of the median.

        Between `min_run_time` and `max_run_time` seconds.
        """
        with self._threads():
            number, times, total = self._block_size(0.05), list[float](), 0.0
            while total < max_run_time:
                times.append(self._time(number))
                total += times[-1]
                if callback is not None:
                    callback(number, times[-1])
                found = Measurement(number, times, self._task_spec)
                if total >= min_run_time and len(times) > 3 and (
                        found.iqr <= threshold * found.median):
                    break
        return Measurement(number, times, self._task_spec)
