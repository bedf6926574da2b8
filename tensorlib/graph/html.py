"""Tensors and modules in notebooks: HTML without scripts, for light and dark themes."""

from __future__ import annotations

import itertools
import math
from html import escape
from typing import Any

import numpy as np

from tensorlib._core.arrays.printing import formatter
from tensorlib._core.tensor.tensor import Tensor

EDGE = 5                # rows and columns that are shown at each end of a dim that is longer
TABLES = 3              # of a tensor of more dims than two; further ones are counted
COUNTED = 1 << 22       # up to so many elements NaN and infinity are counted
CHILDREN = 40           # of a module
TABLE = "border-collapse:collapse;margin:2px 0;font-size:90%"
CELL = "text-align:right;padding:1px 6px;border:1px solid rgba(128,128,128,.3)"
PLACE = f"{CELL};opacity:.6;font-weight:normal"
NAN = f"{CELL};background:rgba(170,60,200,.45);font-weight:bold"
INFINITE = f"{CELL};background:rgba(240,150,0,.5);font-weight:bold"
GAP = object()          # stands for the elements that are left out


# ---- tensors -------------------------------------------------------------------------------------

def tensor_html(x: Tensor) -> str | None:
    """A table of a tensor's elements, or None where it has none to show: its text is shown then."""
    try:
        heading = "".join(f"<span style='margin-right:1em'>{escape(part)}</span>"
                          for part in said_of(x))
        body = "".join(tables(x)) if x.numel() else ""
    except Exception:          # without memory, in a batch, sparse, or of a class of the user's
        return None
    return f"<div><div><b>{escape(type(x).__name__)}</b> {heading}</div>{body}</div>"


def said_of(x: Tensor) -> list[str]:
    """Shape, dtype, what belongs to the graph, and how many elements are no finite numbers."""
    said = [str(tuple(x.shape)), x.dtype.name]
    name = getattr(x, "name", None)
    if isinstance(name, str):
        said.insert(0, name)
    if x.grad_fn is not None:
        said.append(f"grad_fn={x.grad_fn.name()}")
    elif x.requires_grad:
        said.append("requires_grad")
    if x.is_floating_point() and x.numel() <= COUNTED:
        values = x.detach()
        for text, count in (("NaN", int(values.isnan().sum())), ("inf", int(values.isinf().sum()))):
            if count:
                said.append(f"{count:,} {text}")
    return said


def ends(size: int) -> list[Any]:
    """The places that are shown of a dim, with GAP for those between."""
    if size <= 2 * EDGE + 1:
        return list(range(size))
    return [*range(EDGE), GAP, *range(size - EDGE, size)]


def tables(x: Tensor) -> Any:
    """A table for each of the first matrices in a tensor, those after the first one folded."""
    x = x.detach()
    lead = x.shape[:-2]
    for number, place in enumerate(itertools.product(*map(range, lead))):
        if number == TABLES:
            yield f"<div>and {math.prod(lead) - TABLES:,} more</div>"
            return
        table = matrix_html(x[place])
        if not place:
            yield table
        else:
            label = f"[{', '.join(map(str, place))}]"
            is_open = "" if number else " open"
            yield f"<details{is_open}><summary>{label}</summary>{table}</details>"


def matrix_html(x: Tensor) -> str:
    """The table of a matrix, of a vector as one row, or of a number."""
    rows = ends(x.shape[0]) if x.ndim == 2 else [0]
    columns = ends(x.shape[-1]) if x.ndim else [0]
    parts = x.reshape(-1, x.shape[-1] if x.ndim else 1)
    parts = parts[[row for row in rows if row is not GAP]]
    parts = parts[:, [column for column in columns if column is not GAP]]
    values = (parts.float() if x.is_floating_point() and x.itemsize < 4 else parts).numpy()
    write, _ = formatter(values)
    largest = magnitude(values)
    lines = []
    if x.ndim:
        lines.append("<tr>" + "".join(place_html(each) for each in ["", *columns][x.ndim == 1:])
                     + "</tr>")
    left = iter(values)
    for row in rows:
        cells = "" if x.ndim < 2 else place_html(row)
        if row is GAP:
            cells += "".join(f"<td style='{CELL}'>⋮</td>" for _ in columns)
        else:
            numbers = iter(next(left).tolist())
            cells += "".join(f"<td style='{CELL}'>…</td>" if column is GAP
                             else cell_html(next(numbers), write, largest) for column in columns)
        lines.append(f"<tr>{cells}</tr>")
    return f"<table style='{TABLE}'>{''.join(lines)}</table>"


def magnitude(values: np.ndarray[Any, Any]) -> float:
    """The largest absolute value of those that are shown and finite."""
    absolute = np.abs(values.astype(np.float64))
    return float(absolute[np.isfinite(absolute)].max(initial=0.0))


def place_html(place: Any) -> str:
    """A row's or a column's number."""
    return f"<th style='{PLACE}'>{'' if place is GAP else place}</th>"


def cell_html(value: Any, write: Any, largest: float) -> str:
    """An element: the redder, or if it is below 0 the bluer, the larger it is."""
    number = float(value)
    if math.isnan(number):
        style = NAN
    elif math.isinf(number):
        style = INFINITE
    else:
        part = abs(number) / largest if largest else 0.0
        colour = "214,69,69" if number > 0 else "43,108,176"
        style = f"{CELL};background:rgba({colour},{0.45 * part:.2f})" if part else CELL
    return f"<td style='{style}'>{escape(write(value))}</td>"


# ---- modules -------------------------------------------------------------------------------------

def module_html(module: Any) -> str:
    """A module as a tree that unfolds, with the number of parameters of each part."""
    return f"<div style='font-family:monospace'>{branch('', module, True)}</div>"


def branch(name: str, module: Any, is_open: bool = False) -> str:
    """A module and those in it."""
    said = f"<b>{escape(type(module).__name__)}</b>"
    said = f"({escape(name)}): {said}" if name else said
    extra = module.extra_repr()
    said += f"({escape(extra)})" if extra else ""
    said += f" <span style='opacity:.65'>{escape(counted(module))}</span>"
    children = list(module.named_children())
    if not children:
        return f"<div style='margin-left:1.2em'>{said}</div>"
    inside = "".join(branch(*child) for child in children[:CHILDREN])
    if len(children) > CHILDREN:
        inside += f"<div style='margin-left:1.2em'>and {len(children) - CHILDREN:,} more</div>"
    return (f"<details style='margin-left:1.2em'{' open' if is_open else ''}>"
            f"<summary>{said}</summary>{inside}</details>")


def counted(module: Any) -> str:
    """How many parameters a module has, and how many of these do not learn."""
    sizes = []
    for p in module.parameters():
        if hasattr(p, "materialize"):          # of a lazy module that was not called yet
            return "parameters not yet made"
        sizes.append((p.numel(), p.requires_grad))
    if not sizes:
        return ""
    frozen = sum(size for size, learns in sizes if not learns)
    total = sum(size for size, _ in sizes)
    return f"{total:,} parameters" + (f", {frozen:,} frozen" if frozen else "")
