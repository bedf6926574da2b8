"""Several measurements side by side."""

from collections.abc import Iterable

from tensorlib.utils.benchmark.measurement import Measurement, select_unit

Row = tuple[str, int, str]              # of which environment, on how many threads, of what


class Compare:
    """A table of measurements: a row for each `sub_label`, a column for each `description`.

    Each label has a table of its own, with a unit of its own. Raises: TypeError for what is no
    measurement.
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trimmed = self._marked = False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements."""
        results = list(results)
        for each in results:
            if not isinstance(each, Measurement):
                raise TypeError(f"Compare: expected Measurements, got {type(each).__name__}")
        self._results += results

    def trim_significant_figures(self) -> None:
        """Shows no more figures than can be relied on."""
        self._trimmed = True

    def colorize(self, rowwise: bool = False) -> None:
        """Marks the best of each column, or of each row, with a star. Text has no colours."""
        self._marked = True
        self._rowwise = rowwise

    def highlight_warnings(self) -> None:
        """Does nothing: times that differ by much are marked in any case, with (!)."""

    def print(self) -> None:
        """Prints the tables."""
        print(self)

    def __str__(self) -> str:
        tables = []
        merged = Measurement.merge(self._results)
        for label in dict.fromkeys(each.task_spec.label or each.title for each in merged):
            tables.append(self._table(label, [
                each for each in merged if (each.task_spec.label or each.title) == label]))
        return "\n\n".join(tables)

    def _table(self, label: str, results: list[Measurement]) -> str:
        """The table of one label."""
        unit, size = select_unit(min(each.median for each in results))
        columns = list(dict.fromkeys(each.task_spec.description or "" for each in results))
        cells: dict[Row, dict[str, Measurement]] = {}
        for each in results:
            spec = each.task_spec
            cells.setdefault((spec.env or "", spec.num_threads, each.as_row_name), {})[
                spec.description or ""] = each
        rows = [["", *columns]]
        for (env, threads, name), row in sorted(cells.items(), key=lambda item: item[0][:2]):
            above = f"{threads} thread{'s' if threads > 1 else ''}" + (f" ({env})" if env else "")
            if [above] not in rows:
                rows.append([above])
            rows.append([name, *(self._cell(row.get(column), size, self._best(cells, row, column))
                                 for column in columns)])
        widths = [max(len(row[i]) for row in rows if len(row) > 1 or i == 0)
                  for i in range(len(columns) + 1)]
        lines = [f"[{label}]"]
        for row in rows:
            lines.append(f"{row[0]}:" if len(row) == 1 else "  ".join(
                text.ljust(width) if i == 0 else text.rjust(width)
                for i, (text, width) in enumerate(zip(row, widths))).rstrip())
        return "\n".join([*lines, "", f"Times are in {unit}."])

    def _best(self, cells: dict[Row, dict[str, Measurement]], row: dict[str, Measurement],
              column: str) -> float:
        """The time that a cell has to be as good as to be marked."""
        if not self._marked:
            return 0.0
        rivals = row.values() if self._rowwise else (
            each[column] for each in cells.values() if column in each)
        return min((each.median for each in rivals), default=0.0)

    def _cell(self, found: Measurement | None, size: float, best: float) -> str:
        """The text of one cell."""
        if found is None:
            return ""
        time = found.median / size
        if self._trimmed:
            time = float(f"{time:.{max(1, found.significant_figures)}g}")
        return f"{time:.1f}" + "*" * (found.median <= best) + " (!)" * found.has_warnings
