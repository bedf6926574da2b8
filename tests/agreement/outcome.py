"""What a call gives in a library, with its gradients, and where two of them differ."""

import warnings

import numpy as np

from tests.peer import flat, same_kind, summary, values_of
from tensorlib.testing import assert_close, tolerance


def outcome(library, function, call):
    """("raised", error), or ("returned", results, which of them are views, derivatives)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            made, tensors = call.made(library)
        except Exception as error:
            return "unmade", error
        library.manual_seed(0)
        try:
            result = function(*made.args, **made.kwargs)
            results = tensors_in(library, result)
            found = flat(result if isinstance(result, (tuple, list, int, float)) else [result])
        except Exception as error:
            return "raised", error
        views = [strides(y) for y in results if shows_one_of(tensors, y)]
        return "returned", found, views, derivatives(library, results, tensors)


def inside(library, place):
    """What a library has under a name with dots, or None."""
    for name in filter(None, place.split(".")):
        library = getattr(library, name, None)
    return library


def tensors_in(library, result):
    """The tensors of a result, in order."""
    if isinstance(result, library.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [y for x in result for y in tensors_in(library, x)]
    return []


def shows_one_of(tensors, y):
    """Whether a result shows the memory of an argument."""
    root = y if y._base is None else y._base
    return y.numel() > 1 and root.data_ptr() in [
        (x if x._base is None else x._base).data_ptr() for x in tensors]


def strides(y):
    """The strides that matter."""
    return tuple(step for step, n in zip(y.stride(), y.shape) if n > 1)


def weighed(library, results, seed):
    """The sum of the results with random weights, or None where none is part of a graph."""
    rng = np.random.default_rng(seed)
    total = None
    for y in results:
        if y is None or not y.requires_grad:
            continue
        weights = library.from_numpy(rng.uniform(0.5, 1.5, tuple(y.shape))).to(y.dtype)
        part = (y * weights).sum()
        total = part if total is None else total + part
    return total


def derivatives(library, results, tensors):
    """First and second derivatives with respect to the tensors, as arrays; or an error's text."""
    wanted = [x for x in tensors if x.requires_grad]
    if not wanted:
        return []
    found, total = [], weighed(library, results, 1)
    try:
        for order in (1, 2):
            if total is None:
                return [*found, None]
            grads = library.autograd.grad(total, wanted, create_graph=True, allow_unused=True)
            found.append([None if g is None else values_of(g) for g in grads])
            total = weighed(library, [g for g in grads if g is not None], 1 + order)
    except Exception as error:
        found.append(error)
    return found


def differs(ours, theirs, kind, call, random=False):
    """A text that says how two outcomes differ, or None."""
    if "unmade" in (ours[0], theirs[0]):
        return None
    if ours[0] != theirs[0]:
        return (f"dtype/error: tensorlib {ours[0]} {summary(ours[1])}, "
                f"PyTorch {theirs[0]} {summary(theirs[1])}")
    if ours[0] == "raised":
        if same_kind(ours[1], theirs[1]):
            return None
        return f"error: tensorlib {summary(ours[1])}, PyTorch {summary(theirs[1])}"
    if len(ours[1]) != len(theirs[1]):
        return f"count: {len(ours[1])} results, PyTorch gives {len(theirs[1])}"
    half = any(x.dtype in ("float16", "bfloat16") for x in call.arrays())
    for (dtype, shape, values), (their_dtype, their_shape, their_values) in zip(ours[1], theirs[1]):
        if dtype != their_dtype:
            return f"dtype: {dtype}, PyTorch's {their_dtype}"
        if shape != their_shape:
            return f"shape: {shape}, PyTorch's {their_shape}"
        if not random and (text := far(values, their_values, dtype, kind, half)):
            return f"values: {text}"
    if ours[2] != theirs[2]:
        return f"views: strides {ours[2]}, PyTorch's {theirs[2]}"
    return None if random else derivatives_differ(ours[3], theirs[3], call)


def far(values, their_values, dtype, kind, half=False):
    """How two arrays differ, or an empty text."""
    limits = tolerance("float16" if half and dtype == "float32" else dtype, kind)
    if their_values.size and their_values.dtype.kind == "f":
        finite = np.abs(their_values[np.isfinite(their_values)])
        scale = float(finite.max()) if finite.size else 0.0
        limits["atol"] = max(limits["atol"], limits["rtol"] * min(scale, 1e300))
    try:
        assert_close(values, their_values, equal_nan=True, **limits)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""


def with_nans_of(h, g):
    """g with NaN where h has it."""
    return np.where(np.isnan(h), h, g) if g.shape == h.shape else g


def derivatives_differ(ours, theirs, call):
    """How derivatives differ, or None. What only one library can differentiate is not compared, nor
    what is NaN in PyTorch and no NaN here: zero is strong."""
    dtypes = [x.dtype for x in call.arrays() if x.requires_grad]
    if any(name != "float64" for name in dtypes):
        return None                          # of float64 alone rounding is known
    for order, (mine, other) in enumerate(zip(ours, theirs), 1):
        if isinstance(other, Exception):
            return None
        if isinstance(mine, Exception):
            return f"derivative {order}: tensorlib raised {summary(mine)}"
        for g, h in zip(mine or (), other or ()):
            if g is None or h is None:
                left = h if g is None else g
                if left is not None and np.any(np.nan_to_num(left, nan=0.0) != 0):
                    return f"derivative {order}: {g} beside {h}"
            elif text := far(with_nans_of(h, g), h, "float64", "gradient"):
                return f"derivative {order}: {text}"
    return None
