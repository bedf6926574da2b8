"""What was measured of an operation: its errors, and its speed beside PyTorch's."""

import json
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `(\w+)` \| ((?:float|complex)\d+) \| ([\d.]+) \| ([^|]+) \|$", re.MULTILINE)
# How the cases of the benchmarks name operations whose methods they do not call.
SIGNS = {" + ": "add", " * ": "mul", " / ": "div", " @ ": "matmul"}


@cache
def errors():
    """The rows of docs/accuracy.md: names to lists of (dtype, ulp, where)."""
    found = {}
    for name, dtype, ulp, where in ROW.findall((ROOT / "docs" / "accuracy.md").read_text()):
        found.setdefault(name, []).append((dtype, ulp, where))
    return found


def named_by(case):
    """What a case of the benchmarks times: a method, a sign, or the name that it begins with."""
    if match := re.fullmatch(r"a\.(\w+)\(.*", case):
        return match[1]
    for sign, name in SIGNS.items():
        if re.match(rf"a{re.escape(sign)}", case):
            return name
    return case.split(",")[0].split(" ")[0]


@cache
def speeds():
    """The cases of benchmarks/results.json on one thread: names to lists of (case, times)."""
    document = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    found = {}
    for row in document["results"]:
        if row["threads"] == 1 and row["figure"] == "time" and row.get("torch"):
            found.setdefault(named_by(row["case"]), []).append(
                (row["case"], row["tensorlib"]["median"], row["torch"]["median"],
                 row["ratio"]["median"]))
    return found


def duration(ns):
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if ns < 1000 * size or unit == "ms":
            return f"{ns / size:.3g} {unit}"


def tables(name):
    """The measured figures of an operation as Markdown; empty where there are none."""
    parts = []
    if name in errors():
        rows = [f"| {dtype} | {ulp} | {where} |" for dtype, ulp, where in errors()[name]]
        parts.append("\n".join(["## Accuracy", "", "| dtype | largest error in ulp | found at |",
                                "| --- | --: | --- |", *rows, "",
                                "[Accuracy](../accuracy.md) says how this is measured."]))
    if name in speeds():
        rows = [f"| `{case}` | {duration(ours)} | {duration(peer)} | {ratio:.1f} |"
                for case, ours, peer, ratio in speeds()[name]]
        parts.append("\n".join(["## Speed", "", "| | tensorlib | PyTorch | ratio |",
                                "| --- | --: | --: | --: |", *rows, "",
                                "Measured on one thread: see [Benchmarks](../benchmarks.md)."]))
    return "\n\n".join(parts)
