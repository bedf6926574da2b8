"""Where the time of a program goes: which operations, from which lines of it, on how much memory.

>>> x = tensorlib.rand(64, 64)
>>> with tensorlib.profiler.profile() as prof:
...     for _ in range(3):
...         y = (x @ x).relu()
>>> [(row.key, row.count) for row in prof.key_averages()]
[('matmul', 3), ('relu', 3)]

`print(prof.key_averages().table(sort_by="self_cpu_time_total"))` shows a table of operations,
`prof.by_line().table()` one of lines, and `prof.export_chrome_trace("trace.json")` writes what
chrome://tracing and ui.perfetto.dev draw. While no profile is taken, an operation asks whether one
is, and nothing else.
"""

from typing import TYPE_CHECKING

from tensorlib._core.base.explained import explain
from tensorlib._core.base.importing import on_first_use

if TYPE_CHECKING:
    from tensorlib.profiler.events import EventList
    from tensorlib.profiler.statistics import Figures
    from tensorlib.profiler.profiler import (
        emit_nvtx,
        profile,
        record_function,
        tensorboard_trace_handler,
    )
    from tensorlib.profiler.schedules import (
        ProfilerAction,
        ProfilerActivity,
        kineto_available,
        schedule,
        supported_activities,
    )

__all__ = ["EventList", "Figures", "ProfilerAction", "ProfilerActivity", "emit_nvtx",
           "kineto_available", "profile", "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler"]

__getattr__, __dir__ = on_first_use(__name__, {
    "EventList": "events", "Figures": "statistics",
    **dict.fromkeys(("ProfilerAction", "ProfilerActivity", "kineto_available", "schedule",
                     "supported_activities"), "schedules"),
    **dict.fromkeys(("emit_nvtx", "profile", "record_function", "tensorboard_trace_handler"),
                    "profiler")})

explain(vars(), __all__)
