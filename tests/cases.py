"""Cases that one test goes through, where each would be cheaper than a test of its own.

Pytest spends a millisecond or two on a test beside what it does: set-up, teardown, reports,
messages between processes. A test of many small cases takes them in one go, and says which fail.
"""

import functools
import gc
import inspect

import pytest

SHOWN = 5       # failures of a test that are printed whole
# Cases after which what is kept of them, such as programs, is taken from what the collector and
# searches for referrers go through: captures search, and took twice as long at the end of a test.
BETWEEN = 10


def each(names, values, ids=None):
    """Marks a test as one that goes through all values; as `pytest.mark.parametrize`, in one test.

    Several marks give all combinations. What fixtures give is made once, for all of them.
    """
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    values = list(values)
    assert values

    def label(place):
        if ids is not None and not callable(ids):
            return str(list(ids)[place])
        row = [values[place]] if len(names) == 1 else values[place]
        return "-".join(str((ids or named)(value)) for value in row)

    def decorate(test):
        def check(value, /, *args, **kwargs):
            row = (value,) if len(names) == 1 else value
            test(*args, **kwargs, **dict(zip(names, row, strict=True)))

        @functools.wraps(test)
        def all_cases(*args, **kwargs):
            go_through(values, lambda value: check(value, *args, **kwargs), label)

        left = dict(inspect.signature(test).parameters)
        for name in names:
            del left[name]
        all_cases.__signature__ = inspect.Signature(left.values())
        return all_cases

    return decorate


def named(value):
    """What a value is called in the report of a failure."""
    return getattr(value, "__name__", None) or repr(value)


def go_through(values, check, label):
    """Calls `check` with every value; raises in the end what failed, with the `label(place)` of it.
    """
    failed, errors, skipped = [], [], []
    for place, value in enumerate(values):
        if place % BETWEEN == BETWEEN - 1:
            gc.collect()
            gc.freeze()
        try:
            check(value)
        except pytest.skip.Exception as skip:
            skipped.append(skip)
        except (Exception, pytest.fail.Exception) as error:
            failed.append(label(place))
            error.add_note(f"in the case {failed[-1]}")
            if len(errors) < SHOWN:
                errors.append(error)
    if len(skipped) == len(values):
        raise skipped[0]
    if not failed:
        return
    if len(errors) == 1:
        raise errors[0]
    raise BaseExceptionGroup(f"{len(failed)} of {len(values)} cases failed: {', '.join(failed)}",
                             errors)
