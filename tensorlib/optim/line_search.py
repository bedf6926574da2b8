"""The search along a line for a point that meets the strong Wolfe conditions.

Source: J. Nocedal & S. Wright, "Numerical optimization", 2006, algorithms 3.5 and 3.6, with the
interpolation of formula 3.59; the guards against slow progress are those of M. Schmidt's minFunc.
"""

from collections import namedtuple
from math import sqrt

DECREASE = 1e-4              # of what the slope promises, at least
FLATTENING = 0.9             # of the slope, at most

Point = namedtuple("Point", "t loss gradient slope")


def strong_wolfe(look, t, d, loss, gradient, slope, *, decrease=DECREASE, flattening=FLATTENING,
                 smallest=1e-9, most=25):
    """A loss, its gradient, where on the line they are, and how many points were tried.

    `look(t)` gives the loss and the gradient at t along the direction d; loss, gradient and slope
    are those at 0. most: the points that may be tried after the first.
    """
    def at(t):
        loss, gradient = look(t)
        return Point(t, loss, gradient, float(gradient.dot(d)))

    def falls_short(point):
        return point.loss > start.loss + decrease * point.t * slope

    def is_flat(point):
        return abs(point.slope) <= -flattening * slope

    start = before = Point(0.0, loss, gradient, slope)
    point, looks = at(t), 0
    while looks < most:                    # further and further, until a good point is behind
        if falls_short(point) or (looks > 1 and point.loss >= before.loss):
            break
        if is_flat(point):
            return point.loss, point.gradient, point.t, looks + 1
        if point.slope >= 0:
            break
        nearest, furthest = point.t + 0.01 * (point.t - before.t), point.t * 10
        before, point = point, at(interpolated(before, point, nearest, furthest))
        looks += 1
    else:
        before = start
    # between the lower and the higher end there is a good point
    low, high = sorted((before, point), key=lambda end: end.loss)
    slow = False
    length = float(d.abs().max())
    while looks < most and abs(high.t - low.t) * length >= smallest:
        first, last = sorted((low.t, high.t))
        t = interpolated(low, high, first, last)
        margin = 0.1 * (last - first)
        close = min(last - t, t - first) < margin
        if close and (slow or not first < t < last):
            t = last - margin if abs(t - last) < abs(t - first) else first + margin
            close = False
        slow = close
        point = at(t)
        looks += 1
        if falls_short(point) or point.loss >= low.loss:
            low, high = sorted((low, point), key=lambda end: end.loss)
            continue
        if is_flat(point):
            low = point
            break
        if point.slope * (high.t - low.t) >= 0:
            high = low
        low = point
    return low.loss, low.gradient, low.t, looks + 1


def interpolated(a, b, first, last):
    """Where the cubic through two points with their slopes is lowest, within bounds."""
    if a.t == b.t:
        return (first + last) / 2
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (first + last) / 2
    d2 = sqrt(square)
    divisor = b.slope - a.slope + 2 * d2
    if divisor == 0:
        return (first + last) / 2
    return min(max(b.t - (b.t - a.t) * (b.slope + d2 - d1) / divisor, first), last)


# ---- as PyTorch calls them, for optimisers of other libraries ------------------------------------

def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=DECREASE, c2=FLATTENING, tolerance_change=1e-9,
                  max_ls=25):
    """What `strong_wolfe` gives, where `obj_func(x, t, d)` is the loss and the gradient at t."""
    def look(t):
        loss, gradient = obj_func(x, t, d)
        return loss, gradient.clone()            # the function may write to its own anew
    return strong_wolfe(look, t, d, f, g, gtd, decrease=c1, flattening=c2,
                        smallest=tolerance_change, most=max_ls)


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """What `interpolated` gives, by default between both points."""
    first, last = sorted((x1, x2)) if bounds is None else bounds
    return interpolated(Point(x1, f1, None, g1), Point(x2, f2, None, g2), first, last)
