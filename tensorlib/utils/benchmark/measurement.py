"""What was measured: times of runs, and what they say."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median, quantiles

UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
MIN_CONFIDENCE = 1                      # significant figures below which a measurement warns


def select_unit(seconds: float) -> tuple[str, float]:
    """The unit that suits a time, as its name and its seconds."""
    return next((unit for unit in reversed(UNITS) if seconds >= unit[1]), UNITS[0])


@dataclass(frozen=True)
class TaskSpec:
    """What is measured, and under which names it is shown."""

    stmt: str
    setup: str = "pass"
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or else the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else "stmt: (multi-line)"


class Measurement:
    """Times of runs of one task. `number_per_run` of a run's statements follow each other."""

    def __init__(self, number_per_run: int, raw_times: Iterable[float], task_spec: TaskSpec,
                 metadata: dict[str, object] | None = None) -> None:
        self.number_per_run, self.task_spec = number_per_run, task_spec
        self.raw_times, self.metadata = list(raw_times), metadata
        if not self.raw_times:
            raise ValueError("Measurement: takes one time or more")

    @property
    def times(self) -> list[float]:
        """Seconds of one statement, in each run."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        """Seconds of one statement: half of the runs were faster."""
        return median(self.times)

    @property
    def mean(self) -> float:
        """Seconds of one statement, on average."""
        return fmean(self.times)

    @property
    def iqr(self) -> float:
        """The range in which the middle half of the times lies."""
        if len(self.raw_times) < 2:
            return 0.0
        low, _, high = quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def significant_figures(self) -> int:
        """How many figures of the median can be relied on, by the spread of the times."""
        if len(self.raw_times) < 2 or self.iqr == 0:
            return 4 if len(self.raw_times) > 1 else 2
        # the middle half of a normal distribution is 1.35 of its deviations wide
        deviation = 1.645 * self.iqr / 1.349 / math.sqrt(len(self.raw_times))
        return max(0, min(4, math.floor(math.log10(self.median / deviation)) + 1))

    @property
    def has_warnings(self) -> bool:
        """Whether the times differ so much that the median says little."""
        return self.significant_figures < MIN_CONFIDENCE or self.iqr > 0.25 * self.median

    @property
    def title(self) -> str:
        """What was measured."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """Where it was measured, if the task says so."""
        return self.task_spec.env or "Unspecified env"

    @property
    def as_row_name(self) -> str:
        """What a row of a table with this measurement is called."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements: Iterable["Measurement"]) -> list["Measurement"]:
        """One measurement for each task, of all times of it. Runs of other lengths are rescaled."""
        found: dict[TaskSpec, list[Measurement]] = {}
        for each in measurements:
            found.setdefault(each.task_spec, []).append(each)
        return [Measurement(1, [time for each in group for time in each.times], spec)
                for spec, group in found.items()]

    def __repr__(self) -> str:
        unit, size = select_unit(self.median)
        runs = len(self.raw_times)
        lines = [f"<{type(self).__module__}.Measurement object at {id(self):#x}>", self.title]
        if self.task_spec.setup not in ("", "pass"):
            lines.append(f"setup: {self.task_spec.setup.strip()}")
        if runs > 1:
            lines += [f"  Median: {self.median / size:.2f} {unit}",
                      f"  IQR:    {self.iqr / size:.2f} {unit} "
                      f"({min(self.times) / size:.2f} to {max(self.times) / size:.2f})"]
        else:
            lines.append(f"  {self.median / size:.2f} {unit}")
        lines.append(f"  {runs} measurement{'s' if runs > 1 else ''}, {self.number_per_run} runs "
                     f"per measurement, {self.task_spec.num_threads} thread"
                     f"{'s' if self.task_spec.num_threads > 1 else ''}")
        if self.has_warnings:
            lines.append("  WARNING: the times differ by much: something else may be running")
        return "\n".join(lines)
