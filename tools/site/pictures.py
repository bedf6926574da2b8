"""Pictures of element-wise functions and their derivatives: small drawings inside of the pages.

They are drawn here, and not by a library of charts, since the colours have to follow those of the
page, light or dark, and a page has to stay small.
"""

import math

import tensorlib as tl

WIDTH, HEIGHT, MARGIN = 420, 240, 28
POINTS = 241
RANGES = {                                        # where -4 to 4 shows little
    **dict.fromkeys(("acos", "asin", "atanh", "erfinv", "arccos", "arcsin", "arctanh"), (-1, 1)),
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh"), (-3, 3)),
    **dict.fromkeys(("sin", "cos", "sinc", "tan"), (-7, 7)),
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt", "lgamma", "digamma", "entr"),
                    (-0.5, 6)),
    **dict.fromkeys(("logit", "ndtri"), (0, 1)),
}


def curve(function, low, high):
    """The places, values and derivatives (or None) of a function of one number."""
    x = tl.linspace(low, high, POINTS, dtype=tl.float64).requires_grad_()
    y = function(x)
    if not isinstance(y, tl.Tensor) or y.shape != x.shape:
        return None
    slopes = None
    if y.requires_grad:
        slopes, = tl.autograd.grad(y.sum(), x)
        slopes = slopes.tolist()
    return x.tolist(), [float(value) for value in y.tolist()], slopes


def bounds(values):
    """The heights that the picture spans, without what runs off to infinity."""
    finite = sorted(v for v in values if math.isfinite(v))
    if not finite:
        return None
    low, high = finite[len(finite) // 40], finite[-1 - len(finite) // 40]
    low, high = max(low, -6.0), min(high, 6.0)
    if high - low < 1e-9:
        low, high = low - 1, high + 1
    space = 0.08 * (high - low)
    return low - space, high + space


def line(xs, ys, place, kind):
    """A curve as paths, broken where it has no value or leaps from edge to edge."""
    paths, before = [], None
    for x, y in zip(xs, ys):
        point = place(x, y) if math.isfinite(y) else None
        if point and not -HEIGHT < point[1] < 2 * HEIGHT:
            point = None
        if point:
            leap = before is None or abs(point[1] - before[1]) > 0.6 * HEIGHT
            paths.append(f"{'M' if leap else 'L'}{point[0]:.1f} {point[1]:.1f}")
        before = point
    return f'<path class="{kind}" d="{"".join(paths)}"/>'


def picture(name, function):
    """The drawing of a function of one number, as an <svg> element, or None if it has none."""
    low, high = RANGES.get(name, (-4, 4))
    found = curve(function, low, high)
    if found is None or (span := bounds(found[1])) is None:
        return None
    xs, ys, slopes = found

    def place(x, y):
        return (MARGIN + (x - low) / (high - low) * (WIDTH - 2 * MARGIN),
                HEIGHT - MARGIN - (y - span[0]) / (span[1] - span[0]) * (HEIGHT - 2 * MARGIN))

    zero_x, zero_y = place(min(max(0, low), high), min(max(0, span[0]), span[1]))
    left, bottom = place(low, span[0])
    right, top = place(high, span[1])
    parts = [f'<rect class="frame" x="{left}" y="{top}" width="{right - left}" '
             f'height="{bottom - top}"/>',
             f'<path class="axis" d="M{left} {zero_y:.1f}H{right}M{zero_x:.1f} {top}V{bottom}"/>',
             f'<clipPath id="inside"><rect x="{left}" y="{top}" width="{right - left}" '
             f'height="{bottom - top}"/></clipPath><g clip-path="url(#inside)">']
    if slopes is not None:
        parts.append(line(xs, slopes, place, "slope"))
    parts.append(line(xs, ys, place, "value") + "</g>")
    for text, x, y, anchor in (
            (f"{low:g}", left, bottom + 16, "start"), (f"{high:g}", right, bottom + 16, "end"),
            (f"{span[1]:.2g}", left - 4, top + 8, "end"), (f"{span[0]:.2g}", left - 4, bottom,
                                                           "end")):
        parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>')
    says = f"{name}(x) for x from {low:g} to {high:g}" + (
        ", and its derivative" if slopes is not None else "")
    key = '<figcaption><span class="value">—</span> the function' + (
        ' <span class="slope">- -</span> its derivative' if slopes is not None else "")
    return (f'<figure class="curve"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{says}">{"".join(parts)}</svg>{key}</figcaption></figure>')
