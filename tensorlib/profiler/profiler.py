"""`profile`: the context that records events."""

import os
import time
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from tensorlib._core.base.warned import warn_of
from tensorlib._core.interpreters import profile as observing
from tensorlib.profiler.events import EventList, figures_of
from tensorlib.profiler.schedules import ProfilerAction, ProfilerActivity

NONE, WARMUP, RECORD, SAVE = ProfilerAction


class profile:
    """A context in which every operation is observed: its calls, its time, its memory, its line.

    record_shapes: those of the tensors are recorded. with_stack: each event keeps all lines of the
    program that led to it, not the innermost alone. profile_memory: tables show memory.
    schedule: a function as `schedule` makes it; then the program calls `step` after each of its
    steps, and `on_trace_ready` is called with the profile after each cycle.
    Operations on all threads are observed. `activities` other than the CPU, as `use_cuda`, are left
    out with a warning. With `enabled=False` nothing is observed.
    Raises: RuntimeError when another profile is being taken, TypeError for other `activities`.
    """

    def __init__(self, enabled: bool = True, *,
                 activities: Iterable[ProfilerActivity] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[["profile"], Any] | None = None,
                 record_shapes: bool = False, profile_memory: bool = True,
                 with_stack: bool = False, with_flops: bool = False, with_modules: bool = False,
                 acc_events: bool = False, use_cuda: bool | None = None) -> None:
        for activity in (*(activities or ()), *((ProfilerActivity.CUDA,) if use_cuda else ())):
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"profile: activities must be of ProfilerActivity, got "
                                f"{activity!r}")
            if activity is not ProfilerActivity.CPU:
                warn_of(f"profile: {activity.name} is not available; the CPU alone is "
                        "observed", level=2)
        self.record_shapes, self.with_stack = record_shapes, with_stack
        self.profile_memory, self.on_trace_ready = profile_memory, on_trace_ready
        self.enabled, self.schedule = enabled, schedule
        self.step_num = 0
        self.current_action = NONE
        self._observed: list[list[Any]] = []
        self._open: list[Any] | None = None          # the event of the step under way

    # ---- taking it -------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins the profile, or its first step. Raises: RuntimeError while there is another."""
        if not self.enabled:
            return
        self._go_to(self.schedule(0) if self.schedule else RECORD)

    def stop(self) -> None:
        """Ends the profile."""
        if self.current_action is not NONE:
            self._close_step()
            recorded = self.current_action in (RECORD, SAVE)
            self.current_action = NONE
            observing.leave_alone()
            if recorded and self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def step(self) -> None:
        """Says that a step of the program is over, so that the schedule goes on."""
        if self.schedule is None:
            if self.current_action is not NONE:
                self._close_step()
                self.step_num += 1
                self._open_step()
            return
        action, self.step_num = self.current_action, self.step_num + 1
        self._close_step()
        if action is SAVE:
            observing.leave_alone()
            self.current_action = NONE
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self._go_to(self.schedule(self.step_num))

    def _go_to(self, action: ProfilerAction) -> None:
        """Observes, or rests, as a new step wants it."""
        fresh = action in (RECORD, SAVE) and self.current_action not in (RECORD, SAVE)
        if action is NONE or fresh:
            if self.current_action is not NONE:
                observing.leave_alone()
            self.current_action = NONE
        if action is not NONE and self.current_action is NONE:
            found = observing.observe(self.record_shapes, self.with_stack)
            if fresh:
                self._observed = found
        self.current_action = action
        if self.schedule is not None:
            self._open_step()

    def _open_step(self) -> None:
        if self.current_action is not NONE:
            self._open = observing.begin(f"ProfilerStep#{self.step_num}")

    def _close_step(self) -> None:
        observing.end(self._open)
        self._open = None

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    # ---- what it saw -----------------------------------------------------------------------------

    def events(self) -> EventList:
        """Each event, in the order in which they began."""
        return figures_of(self._observed, self.profile_memory)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
                     ) -> EventList:
        """One row for each operation; or for each with its shapes, or with its callers."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def by_line(self) -> EventList:
        """One row for each line of the program, of all that it ran; the slowest come first."""
        return self.events().by_line()

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events as a trace, which chrome://tracing and ui.perfetto.dev draw."""
        self.events().export_chrome_trace(path)

    def export_stacks(self, path: str | os.PathLike[str],
                      metric: str = "self_cpu_time_total") -> None:
        """Writes a line for each stack, with its microseconds: what flame graphs are drawn from.

        It takes a profile with `with_stack=True`. Raises: ValueError for another metric.
        """
        if metric not in ("self_cpu_time_total", "cpu_time_total"):
            raise ValueError(f"export_stacks: metric must be 'self_cpu_time_total', got {metric!r}")
        rows = self.events().grouped(lambda row: (row.key, tuple(row.stack)))
        with open(path, "w") as file:
            for row in rows:
                stack = [text.replace(";", ",").replace(" ", "_") for text in reversed(row.stack)]
                file.write(f"{';'.join([*stack, row.key])} {getattr(row, metric):.0f}\n")


class record_function:
    """A context, or a decorator, that is an event of its own name in profiles.

    >>> with tensorlib.profiler.profile() as prof:
    ...     with tensorlib.profiler.record_function("the whole"):
    ...         y = tensorlib.ones(3) + 1
    >>> [event.name for event in prof.events()]
    ['the whole', 'ones', 'add']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function: name must be a string, got {name!r}")
        self.name = name
        self._open: list[list[Any] | None] = []

    def __enter__(self) -> "record_function":
        self._open.append(observing.begin(self.name))
        return self

    def __exit__(self, *error: object) -> None:
        observing.end(self._open.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)
        return recorded


class emit_nvtx:
    """Marks for NVIDIA's profilers. Raises: RuntimeError, since they watch GPUs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("emit_nvtx: needs a GPU; profile observes the CPU")


def tensorboard_trace_handler(dir_name: str | os.PathLike[str], worker_name: str | None = None,
                              use_gzip: bool = False) -> Callable[[profile], None]:
    """What `on_trace_ready` takes to write each trace into a folder, under a name of its own."""
    def write(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or os.getpid()}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, name))
    return write
