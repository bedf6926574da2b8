"""The results of a profile, as figures of events, of operations, and of source lines."""

import json
import os
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from tensorlib.profiler.statistics import Figures
from tensorlib.profiler.table import laid_out

Line = tuple[str, int, str]                     # file, number, function


class EventList(list[Figures]):
    """Figures in a list: of events in the order of time, or, averaged, of what was observed."""

    def __init__(self, rows: Iterable[Figures] = (), with_memory: bool = True) -> None:
        super().__init__(rows)
        self.with_memory = with_memory

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events."""
        return sum(row.self_cpu_time_total for row in self)

    def total_average(self) -> Figures:
        """The sum of all rows. What runs inside of another counts once."""
        total = Figures("Total")
        for row in self:
            total.add(row)
        total.cpu_time_total = total.self_cpu_time_total
        total.cpu_memory_usage = total.self_cpu_memory_usage
        return total

    def grouped(self, key_of: Callable[[Figures], Any]) -> "EventList":
        """The sums of rows with the same key, in the order in which these came first."""
        found: dict[Any, Figures] = {}
        for row in self:
            key = key_of(row)
            if key not in found:
                found[key] = Figures(row.key, input_shapes=row.input_shapes, stack=row.stack,
                                     inside=row.inside)
            found[key].add(row)
        return EventList(found.values(), self.with_memory)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
                     ) -> "EventList":
        """One row for each operation; or for each with its shapes, or with its callers."""
        grouped = self.grouped(lambda row: (
            row.key, row.input_shapes if group_by_input_shape else (),
            tuple(row.stack[:group_by_stack_n])))
        for row in grouped:
            row.input_shapes = row.input_shapes if group_by_input_shape else ()
            row.stack = row.stack[:group_by_stack_n]
        return grouped

    def by_line(self) -> "EventList":
        """One row for each line of the program, of all that it ran; the slowest come first."""
        lines = EventList((row for row in self if row.stack), self.with_memory)
        grouped = lines.grouped(lambda row: row.stack[0])
        for row in grouped:
            row.key, row.stack, row.input_shapes = row.stack[0], [], ()
            row.cpu_time_total = row.self_cpu_time_total      # each moment once
            row.cpu_memory_usage = row.self_cpu_memory_usage
        return EventList(sorted(grouped, key=attrgetter("self_cpu_time_total"), reverse=True),
                         self.with_memory)

    def table(self, sort_by: str | None = None, row_limit: int = 100,
              max_src_column_width: int = 75, max_name_column_width: int = 55,
              max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False) -> str:
        """The rows as text, at most `row_limit` of them; -1 for all.

        sort_by: an attribute, as "self_cpu_time_total", "cpu_time_total" or "count".
        top_level_events_only: leaves out what ran inside of other events when it first came.
        Raises: ValueError for what rows cannot be sorted by.
        """
        rows = [row for row in self if not (top_level_events_only and row.inside)]
        if sort_by is not None:
            if not isinstance(getattr(Figures("any"), sort_by, None), (int, float)):
                raise ValueError(f"table: rows cannot be sorted by {sort_by!r}; try "
                                 "'self_cpu_time_total', 'cpu_time_total' or 'count'")
            rows.sort(key=attrgetter(sort_by), reverse=True)
        return laid_out(rows, self.total_average(), row_limit, self.with_memory,
                        (max_name_column_width, max_shapes_column_width, max_src_column_width),
                        header)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events as a trace, which chrome://tracing and ui.perfetto.dev draw."""
        events = [{
            "ph": "X", "cat": "cpu_op", "name": row.key, "ts": row.begin,
            "dur": row.cpu_time_total, "pid": os.getpid(), "tid": row.thread,
            "args": {"bytes": row.cpu_memory_usage, "Input Dims": row.input_shapes,
                     "Call stack": ";".join(row.stack)}} for row in self]
        with open(path, "w") as file:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}, file)

    def __str__(self) -> str:
        return self.table()


def shown_line(line: Line) -> str:
    """A line of the program as rows show it: "train.py(12): step"."""
    path, number, function = line
    return f"{os.path.relpath(path) if is_below(path) else path}({number}): {function}"


def is_below(path: str) -> bool:
    """Whether a file lies in the working folder, so that its path is shorter from there."""
    return os.path.isabs(path) and path.startswith(os.getcwd() + os.sep)


def figures_of(observed: list[list[Any]], with_memory: bool = True) -> EventList:
    """The events of a profile, in the order in which they began."""
    inside: dict[int, list[int]] = {}           # time and bytes of what an event ran itself
    for event in observed:
        if event[3] is not None:
            spent = inside.setdefault(id(event[3]), [0, 0])
            spent[0] += event[2] - event[1]
            spent[1] += event[6]
    rows = []
    for event in observed:
        name, begin, end, _, thread, stack, nbytes, shapes, _ = event
        time_inside, bytes_inside = inside.get(id(event), (0, 0))
        rows.append(Figures(
            name, 1, (end - begin) / 1000, (end - begin - time_inside) / 1000, nbytes,
            nbytes - bytes_inside, tuple(shapes or ()), [shown_line(line) for line in stack],
            thread, begin / 1000, event[3] is not None))
    return EventList(sorted(rows, key=attrgetter("begin")), with_memory)
