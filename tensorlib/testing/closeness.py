"""`assert_close`: compares Tensors, arrays, numbers and nests of them, and says how they differ."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

import tensorlib as tl
from tensorlib._core.base.error_names import type_name
from tensorlib.testing.tolerances import dtype_name, tolerance


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises an AssertionError, which says what differs, unless `actual` is close to `expected`.

    Close means |actual - expected| <= atol + rtol * |expected| for every element. Without rtol and
    atol, both come from the dtype (`tolerances.DEFAULTS`): integers and bools must be equal, and
    two dtypes take the wider tolerance. Infinities are close to themselves only, NaN to nothing
    unless `equal_nan`.

    Tensors, NumPy arrays and numbers may be mixed; a sequence of numbers may stand for an array.
    Sequences and mappings are compared item by item, and None equals itself. Of tensors on `meta`
    all but the elements is compared. Only what carries a dtype has it checked, and
    only Tensors their device, layout (sparse ones are compared as dense ones) and strides.
    allow_subclasses: whether two leaves may have types of which one is a subclass of the other.
    `msg` replaces the message, or is called with it and returns another.

    Raises: AssertionError for a difference, ValueError where only one of rtol and atol is given or
    a container holds itself, TypeError for what is none of the above and for types that differ
    unless `allow_subclasses`.

    >>> import tensorlib
    >>> assert_close(tensorlib.tensor([1.0, 2.0]), [1.0, 2.0 + 1e-7])
    >>> assert_close({"a": (1, 2.0)}, {"a": (1, 2.5)}, rtol=0.0, atol=0.5)
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"assert_close: got rtol={rtol} and atol={atol}; give both of them or neither"
        )
    given = None if rtol is None else {"rtol": rtol, "atol": atol}
    checked = [name for name, asked in (("device", check_device), ("layout", check_layout),
                                        ("stride", check_stride)) if asked]
    options = Options(given, equal_nan, check_dtype, checked, allow_subclasses)
    try:
        difference = _compare(actual, expected, options, path="")
    except RecursionError:
        raise ValueError("assert_close: got sequences or mappings that hold themselves, or are "
                         "nested too deep to be compared") from None
    if difference is None:
        return
    __tracebackhide__ = True
    if callable(msg):
        difference = msg(difference)
    elif msg is not None:
        difference = msg
    raise AssertionError(difference)


class Options(NamedTuple):
    """How leaves are compared."""
    given: dict[str, float] | None       # rtol and atol, where they do not come from the dtype
    equal_nan: bool
    check_dtype: bool
    checked: list[str]                   # what else of Tensors is compared
    allow_subclasses: bool


OLDER_DEFAULTS = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None,
                    atol: float | None = None, equal_nan: bool = True, msg: str = "") -> None:
    """`assert_close` as it was before: dtypes may differ, NaN equals NaN, and without rtol and atol
    both are wider: 1e-4 and 1e-5 for float32.

    Raises: as `assert_close`.

    >>> assert_allclose(tl.tensor([1.0, float("nan")]), [1.00001, float("nan")])
    """
    if not isinstance(actual, tl.Tensor):
        actual = tl.tensor(actual)
    if not isinstance(expected, tl.Tensor):
        expected = tl.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        both = [OLDER_DEFAULTS.get(x.dtype.name, (0.0, 0.0)) for x in (actual, expected)]
        rtol, atol = (max(each) for each in zip(*both))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False,
                 msg=msg or None)


def _compare(actual, expected, options, path):
    """A text that says how two nests differ, or None."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            missing = sorted(map(repr, expected.keys() - actual.keys()))
            extra = sorted(map(repr, actual.keys() - expected.keys()))
            return _at(path, "The keys of the mappings do not match!\n\n"
                             f"Missing: {', '.join(missing) or 'none'}\n"
                             f"Unexpected: {', '.join(extra) or 'none'}")
        pairs = ((key, actual[key], expected[key]) for key in expected)
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return _at(path, "The length of the sequences mismatch: "
                             f"{len(actual)} != {len(expected)}")
        pairs = zip(range(len(expected)), actual, expected)
    else:
        return _compare_leaves(actual, expected, options, path)
    differences = (_compare(a, e, options, f"{path}[{key!r}]") for key, a, e in pairs)
    return next((text for text in differences if text is not None), None)


def _compare_leaves(actual, expected, options, path):
    """What differs between two values that are not containers, as text, or None."""
    if actual is None or expected is None:
        return None if actual is expected else _at(
            path, f"None mismatch: {actual} is not {expected}")
    if not options.allow_subclasses and type(actual) is not type(expected):
        raise TypeError(f"assert_close: the types do not match: {type(actual)} != "
                        f"{type(expected)}{f' at {path}' if path else ''}")
    if isinstance(actual, tl.Tensor) and isinstance(expected, tl.Tensor):
        for name in options.checked:
            one, other = (_of_tensor(x, name) for x in (actual, expected))
            if one != other:
                return _at(path, _unlike(name + "()" * (name == "stride"), one, other))
    actual_values, actual_dtype = _values(actual, path)
    expected_values, expected_dtype = _values(expected, path)
    if actual_values.shape != expected_values.shape:
        return _at(path, _unlike("shape", actual_values.shape, expected_values.shape))
    if options.check_dtype and None not in (actual_dtype, expected_dtype):
        if actual_dtype != expected_dtype:
            return _at(path, _unlike("dtype", actual_dtype, expected_dtype))
    if isinstance(actual_values, tl.Tensor) or isinstance(expected_values, tl.Tensor):
        return None                  # one of them is on meta: there are no elements to compare
    given = options.given or _widest(
        actual_dtype or actual_values.dtype, expected_dtype or expected_values.dtype)
    return _compare_values(actual_values, expected_values, **given, equal_nan=options.equal_nan,
                           path=path)


def _unlike(name, one, other):
    return f"The values for attribute '{name}' do not match: {one} != {other}."


def _of_tensor(x, name):
    """The device, the layout or the strides of a Tensor, for which dims of size 1 do not count."""
    if name != "stride":
        return getattr(x, name)
    return () if x.layout is not tl.strided else tuple(
        step for step, size in zip(x.stride(), x.shape) if size != 1)


def _compare_values(actual, expected, rtol, atol, equal_nan, path):
    """What differs between two arrays beyond `atol + rtol * |expected|`, as text, or None."""
    close = actual == expected
    if close.all():                 # as most that is compared
        return None
    with np.errstate(all="ignore"):
        absolute = np.abs(_wide(actual) - _wide(expected))
        magnitude = np.abs(_wide(expected))
        if rtol or atol:
            close = close | (np.isfinite(magnitude) & (absolute <= atol + rtol * magnitude))
        if equal_nan:
            close = close | ((actual != actual) & (expected != expected))
        if close.all():
            return None
        relative = absolute / magnitude
    kind = "equal" if rtol == atol == 0 else "close"
    if actual.ndim == 0:
        return _at(path, f"Scalars are not {kind}!\n\n"
                         f"Expected {expected[()]} but got {actual[()]}.\n"
                         f"Absolute difference: {absolute[()]} (up to {atol} allowed)\n"
                         f"Relative difference: {relative[()]} (up to {rtol} allowed)")
    wrong = np.count_nonzero(~close)
    first = tuple(int(i) for i in np.argwhere(~close)[0])
    return _at(path, f"Tensor-likes are not {kind}!\n\n"
                     f"Mismatched elements: {wrong} / {close.size} ({wrong / close.size:.1%})\n"
                     f"Greatest absolute difference: {_greatest(absolute, close, atol)}\n"
                     f"Greatest relative difference: {_greatest(relative, close, rtol)}\n"
                     f"First mismatch: expected {expected[first]} but got {actual[first]} "
                     f"at index {first}")


def _greatest(difference, close, allowed):
    """The largest difference of the mismatched elements, where NaN is largest of all."""
    ranked = np.where(close, -np.inf, np.where(np.isnan(difference), np.inf, difference))
    index = np.unravel_index(ranked.argmax(), ranked.shape)
    index = tuple(int(i) for i in index)
    return f"{difference[index]} at index {index} (up to {allowed} allowed)"


def _values(value, path):
    """A NumPy array of the values of a leaf, and its dtype's name, or None where it has none.

    A tensor on `meta` stands for itself.
    """
    if isinstance(value, tl.Tensor):
        name = dtype_name(value.dtype)
        value = value.to_dense().detach()
        if name == "bfloat16":  # NumPy has no such dtype; every bfloat16 is a float32
            value = value.to(tl.float32)
        try:
            return value.numpy(), name
        except NotImplementedError:             # on meta
            return value, name
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value), dtype_name(value.dtype)
    if isinstance(value, Number):
        return np.asarray(value), None
    if _is_sequence(value):
        array = np.asarray(value)
        if array.dtype.kind in "biufc":
            return array, None
    at = f" at {path}" if path else ""
    raise TypeError(
        f"assert_close: got {type_name(value)}{at}; it takes Tensors, NumPy arrays, numbers, "
        "and sequences and mappings of them"
    )


def _wide(values):
    """Values as float64 or complex128, in which differences neither wrap around nor overflow."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _widest(*dtypes):
    both = [tolerance(dtype) for dtype in dtypes]
    return {name: max(each[name] for each in both) for name in ("rtol", "atol")}


def _is_sequence(value):
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _at(path, text):
    return f"{text}\n\nThe failure occurred for item {path}" if path else text
