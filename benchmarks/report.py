"""The table and the picture of a benchmark run."""

import os
import platform
import subprocess
from datetime import date
from pathlib import Path

GREEN, RED, BLUE = "#2f855a", "#d64545", "#2b6cb0"
BEGIN, END = "<!-- table: written by python -m benchmarks --write -->", "<!-- end of table -->"
NOISE = 1.05  # what "no slower than" allows between two cases timed one after the other


def machine() -> dict:
    cpuinfo = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in
             (cpuinfo.read_text().splitlines() if cpuinfo.exists() else ())
             if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "date": date.today().isoformat(),
    }


def commit(directory: Path) -> str:
    """The commit checked out, with a + where files differ from it; "" outside a repository."""
    try:
        def git(*words):
            return subprocess.run(["git", *words], cwd=directory, check=True, text=True,
                                  capture_output=True).stdout.strip()
        return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain"))
    except (OSError, subprocess.CalledProcessError):
        return ""


def heading(document: dict) -> str:
    about = document["machine"]
    versions = ", ".join(
        f"{library} {found[library]} (Python {found['python']}, NumPy {found['numpy']})"
        for library, found in document["versions"].items()
    )
    threads = " and ".join(map(str, document["threads"]))
    several = "" if threads == "1" else "s"
    return (f"{versions}; {threads} thread{several} each; {about['processor']}, "
            f"{about['cores']} cores, {about['system']}; {about['date']}, "
            f"commit {document['commit'] or 'unknown'}.")


def quantity(value: float, figure: str) -> str:
    if figure == "memory":
        return f"{value:,.0f} B"
    if figure == "peak":
        return f"{value / 1e6:.3g} MB"
    if figure == "growth":
        return f"{value:.2f} x"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} ns"


def title(row: dict) -> str:
    per = "" if row["figure"] == "growth" else " per operation"
    return row["case"] + ("" if row["figure"] in ("time", "peak") else f": {row['figure']}{per}")


def met(row: dict, results: list[dict]) -> bool | None:
    """Whether the row meets all that is asked of it; None if that is nothing or cannot be known."""
    answers = []
    if row["no_slower_than"]:
        bounds = [other for other in results if other["case"] == row["no_slower_than"]
                  and other["threads"] == row["threads"]]
        own = row["tensorlib"]["median"]
        answers.append(own <= NOISE * bounds[0]["tensorlib"]["median"] if bounds else None)
    if row["target"] is not None:
        answers.append(row["ratio"]["median"] >= row["target"] if "ratio" in row else None)
    if False in answers:
        return False
    return True if True in answers and None not in answers else None


def asked(row: dict) -> str:
    """What a row is to meet, in words."""
    target = f"{row['target']:g}" if row["target"] else ""
    bound = f"no slower than {row['no_slower_than']}" if row["no_slower_than"] else ""
    return ", ".join(filter(None, (target, bound)))


def table(results: list[dict]) -> str:
    """The results in Markdown, aligned to be read as plain text as well.

    The first number of threads has all columns; the others have times and the ratio.
    """
    counts = list(dict.fromkeys(row["threads"] for row in results))
    more = {(row["threads"], title(row)): row for row in results if row["threads"] != counts[0]}
    lines = [("", "tensorlib", "PyTorch", "ratio", "quartiles", "target", "met",
              *[f"{column}, {count} threads" for count in counts[1:]
                for column in ("tensorlib", "PyTorch", "ratio")])]
    for row in results:
        if row["threads"] != counts[0]:
            continue
        ours, peer, ratio = (row.get(key) for key in ("tensorlib", "torch", "ratio"))
        if row["figure"] == "growth":
            ratio = None  # each stands for itself
        lines.append((
            title(row),
            quantity(ours["median"], row["figure"]),
            quantity(peer["median"], row["figure"]) if peer else "",
            f"{ratio['median']:.2f}" if ratio else "",
            "{:.2f} to {:.2f}".format(*ratio["quartiles"]) if ratio else "",
            asked(row),
            {True: "yes", False: "**no**", None: ""}[met(row, results)],
            *[cell for count in counts[1:] for cell in cells(more.get((count, title(row))))],
        ))
    widths = [max(map(len, column)) for column in zip(*lines)]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    sides = ["<", *(">" for _ in widths[1:])]
    aligned = [
        [f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths)]
        for line in lines
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [aligned[0], rule, *aligned[1:]])


def cells(row: dict | None) -> tuple[str, str, str]:
    """The times and the ratio of a row, of which each may be missing."""
    if row is None:
        return "", "", ""
    ours, peer, ratio = (row.get(key) for key in ("tensorlib", "torch", "ratio"))
    return (quantity(ours["median"], row["figure"]),
            quantity(peer["median"], row["figure"]) if peer else "",
            f"{ratio['median']:.2f}" if ratio and row["figure"] != "growth" else "")


def renew(readme: Path, document: dict) -> None:
    """Replaces what stands between the two marks."""
    before, _, rest = readme.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    if not after:
        raise ValueError(f"{readme} lacks the marks between which the table goes")
    body = f"{BEGIN}\n{heading(document)}\n\n{table(document['results'])}\n{END}"
    readme.write_text(before + body + after)


def draw(path: Path, document: dict) -> None:
    """How many times as fast as the peer each case is, on a log scale, with the targets."""
    from matplotlib.figure import Figure  # only a run that writes needs matplotlib
    from matplotlib.ticker import LogLocator

    results = [row for row in document["results"] if row["threads"] == document["threads"][0]]
    shown = [row for row in results if "ratio" in row and row["figure"] != "growth"]
    figure = Figure(figsize=(9, 0.27 * len(shown) + 2.4), layout="constrained")
    axes = figure.subplots()
    colors = {True: GREEN, False: RED, None: BLUE}
    place, places = 0.0, []
    for i, row in enumerate(shown):
        place += 1
        if i == 0 or row["group"] != shown[i - 1]["group"]:
            place += 1
            axes.text(0, place - 1, row["group"] + "  ", weight="bold", ha="right", va="center",
                      transform=axes.get_yaxis_transform())
        places.append(place)
        median, (low, high) = row["ratio"]["median"], row["ratio"]["quartiles"]
        color = colors[met(row, results)]
        axes.barh(place, median - 1, left=1, height=0.72, color=color, alpha=0.85)
        axes.plot((low, high), (place, place), color="black", linewidth=0.8, alpha=0.6)
        axes.annotate(f"{median:.3g}", (max(median, 1, high), place), (4, 0), va="center",
                      textcoords="offset points", fontsize=8, color=color, weight="bold")
        if row["target"]:
            axes.plot(row["target"], place, "|", color="black", markersize=11, markeredgewidth=2)
    axes.set_xscale("log")
    axes.set_yticks(places, [title(row) for row in shown], fontsize=8.5)
    axes.set_ylim(places[-1] + 0.8, places[0] - 1.6)
    axes.axvline(1, color="black", linewidth=1)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_title("Times as fast, or as small, as PyTorch\n"
                   "Marks: targets; green: met, red: missed, blue: none set", fontsize=11)
    figure.savefig(path, dpi=110)
