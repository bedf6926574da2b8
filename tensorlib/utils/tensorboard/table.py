"""Numbers of a training as a table in a file, which every spreadsheet and pandas read."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorlib.utils.tensorboard.values import number_of


class CSVWriter:
    """Logs numbers into a file of comma-separated values: a row for each step.

    The first column is the step, the others have the names of the numbers. A file that is there is
    gone on with. A name that comes later makes a new column, for which the file is written anew.

    Args:
        path: the file.
        flush_every: after how many steps it is written; at the latest at the end.

    Raises: ValueError for a file whose first column is not `step`, or steps that go back.

    >>> with CSVWriter("log.csv") as log:
    ...     log.add_scalars({"loss": 0.5, "accuracy": 0.8}, 0)
    ...     log.add_scalar("loss", 0.25, 1)
    >>> print(open("log.csv").read(), end="")
    step,loss,accuracy
    0,0.5,0.8
    1,0.25,
    """

    def __init__(self, path: str | os.PathLike[str], flush_every: int = 1) -> None:
        self.path, self.flush_every = Path(path), flush_every
        if flush_every < 1:
            raise ValueError(f"CSVWriter: flush_every must be 1 or more, got {flush_every}")
        self.columns: list[str] = ["step"]
        self.waiting: list[dict[str, Any]] = []
        self.is_new = not self.path.exists() or not self.path.stat().st_size
        if not self.is_new:
            with self.path.open(newline="") as file:
                self.columns = next(csv.reader(file), [])
            if self.columns[:1] != ["step"] or len(set(self.columns)) < len(self.columns):
                raise ValueError(f"CSVWriter: {self.path} is not a log: its first line is "
                                 f"{','.join(self.columns)!r}")

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int) -> None:
        """Logs one number.

        Args:
            tag: its name, which is a column.
            scalar_value: the number, or a tensor of one element.
            global_step: the step, which is a row.
        """
        self.add_scalars({tag: scalar_value}, global_step)

    def add_scalars(self, tag_scalar_dict: Mapping[str, Any], global_step: int) -> None:
        """Logs several numbers of one step.

        Args:
            tag_scalar_dict: the numbers by name.
            global_step: the step, which is a row.
        """
        found = {str(tag): number_of("CSVWriter", value) for tag, value in tag_scalar_dict.items()}
        if "step" in found:
            raise ValueError("CSVWriter: a number can't have the name 'step'")
        if not self.waiting or self.waiting[-1]["step"] != global_step:
            if len(self.waiting) >= self.flush_every:
                self.flush()
            self.waiting.append({"step": global_step})
        self.waiting[-1].update(found)

    def flush(self) -> None:
        """Writes what was logged into the file."""
        names = dict.fromkeys(name for row in self.waiting for name in row)
        added = [name for name in names if name not in self.columns]
        if added and not self.is_new:
            with self.path.open(newline="") as file:
                rows = list(csv.DictReader(file))
            self.columns += added
            beside = self.path.with_name(f"{self.path.name}.new")   # so that no log is ever lost
            with beside.open("w", newline="") as file:
                writer = csv.DictWriter(file, self.columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            beside.replace(self.path)
        elif added:
            self.columns += added
        if not self.waiting:
            return
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            if self.is_new:
                writer.writeheader()
            writer.writerows(self.waiting)
        self.is_new, self.waiting = False, []

    def close(self) -> None:
        """Writes what is left."""
        self.flush()

    def __enter__(self) -> CSVWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
