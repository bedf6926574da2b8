"""Figures as a table of text."""

from collections.abc import Sequence

from tensorlib.profiler.statistics import Figures


def time_text(microseconds: float) -> str:
    """A time in the unit that suits it: "1.250ms"."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if abs(microseconds) >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


def bytes_text(nbytes: float) -> str:
    """A number of bytes in the unit that suits it: "1.25 MB"."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes:.0f} B"


def share_text(part: float, whole: float) -> str:
    """A share in percent."""
    return f"{100 * part / whole:.2f}%" if whole else "--"


def shortened(text: str, width: int, ends: bool = False) -> str:
    """A text of at most `width` characters; `ends`: its end counts most, as that of a path."""
    if len(text) <= width:
        return text
    return "..." + text[len(text) - width + 3:] if ends else text[:width - 3] + "..."


def laid_out(rows: Sequence[Figures], total: Figures, limit: int, with_memory: bool,
             widths: tuple[int, int, int], header: str | None) -> str:
    """The table of some rows, and under it the time of all."""
    names, shapes, sources = widths
    shown = rows if limit < 0 else rows[:limit]
    time = total.self_cpu_time_total
    columns = [
        ("Name", [shortened(row.key, names, "/" in row.key) for row in shown]),
        ("Self CPU %", [share_text(row.self_cpu_time_total, time) for row in shown]),
        ("Self CPU", [time_text(row.self_cpu_time_total) for row in shown]),
        ("CPU total %", [share_text(row.cpu_time_total, time) for row in shown]),
        ("CPU total", [time_text(row.cpu_time_total) for row in shown]),
        ("CPU time avg", [time_text(row.cpu_time) for row in shown])]
    if with_memory:
        columns += [("CPU Mem", [bytes_text(row.cpu_memory_usage) for row in shown]),
                    ("Self CPU Mem", [bytes_text(row.self_cpu_memory_usage) for row in shown])]
    columns.append(("# of Calls", [str(row.count) for row in shown]))
    if any(row.input_shapes for row in rows):        # of all: the same columns for any limit
        columns.append(("Input Shapes", [
            shortened(str([list(shape) for shape in row.input_shapes]), shapes) for row in shown]))
    if any(row.stack for row in rows):
        columns.append(("Source Location", [
            shortened(row.stack[0] if row.stack else "", sources, True) for row in shown]))
    sizes = [max(map(len, [title, *texts])) for title, texts in columns]
    rule = "  ".join("-" * size for size in sizes)
    lines = [rule, "  ".join(title.rjust(size) for (title, _), size in zip(columns, sizes)), rule]
    lines += ["  ".join(text.rjust(size) for text, size in zip(texts, sizes))
              for texts in zip(*(texts for _, texts in columns))]
    lines += [rule, f"Self CPU time total: {time_text(time)}", ""]
    return "\n".join(([header] if header else []) + lines)
