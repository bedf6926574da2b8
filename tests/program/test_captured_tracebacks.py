"""Frames that a function sees, in tracebacks or below its own, and those that its caller sees:
those of the eager call, without the frames of what captures."""

import logging
import sys
import traceback

import pytest
from cases import each

import tensorlib as tl

pytestmark = pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")


def names(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def fails(x):
    raise ValueError(x.shape)


def fails_inside(x):
    return [fails(y) for y in [x]]


def caught(x, seen):
    try:
        fails_inside(x)
    except ValueError as error:
        seen.append(names(error))
    return x * 2


def caught_by_its_own_operator(x, seen):
    try:
        return {}["absent"] * x
    except KeyError as error:
        seen.append(names(error))
    return x * 2


def caught_again(x, seen):
    try:
        try:
            fails_inside(x)
        except ValueError as error:
            raise KeyError(1) from error
    except KeyError as error:
        seen.append((names(error), names(error.__cause__), traceback.format_exception(error)))
    return x * 2


def handled_at_last(x, seen):
    try:
        try:
            fails_inside(x)
        finally:
            seen.append(names(sys.exc_info()[1]))
    except ValueError:
        return x * 2


class Suppressing:
    def __init__(self, seen):
        self.seen = seen

    def __enter__(self):
        return self

    def __exit__(self, kind, error, tb):
        self.seen.append(names(error))
        return True


def suppressed(x, seen):
    with Suppressing(seen):
        fails_inside(x)
    return x * 2


@each("function", [caught, caught_by_its_own_operator, caught_again, handled_at_last, suppressed])
def test_what_a_function_sees_of_its_errors(function):
    logs = []
    for wrap in (lambda f: f, tl.compile):
        seen = []
        f = wrap(lambda x: function(x, seen))
        assert [f(tl.ones(2)).tolist() for _ in range(3)] == [[2, 2]] * 3
        logs.append(seen)
    assert logs[0] == logs[1]


def test_what_a_caller_sees_of_an_error():
    with pytest.raises(ValueError) as eager:
        fails_inside(tl.ones(2))
    with pytest.raises(ValueError) as found:
        tl.compile(fails_inside)(tl.ones(2))
    assert names(found.value)[-3:] == names(eager.value)[-3:]


def in_parts(x, seen):
    y = x * 2
    try:
        fails(y)
    except ValueError as error:
        seen.append(names(error))
    print(end="")                                       # which takes the function apart
    return y + 1


def test_frames_of_parts_have_the_name_of_the_function():
    seen, wanted = [], []
    f = tl.compile(in_parts)
    for _ in range(3):
        f(tl.ones(2), seen)
        in_parts(tl.ones(2), wanted)
    assert [x[0] for x in seen] == [x[0] for x in wanted] == ["in_parts"] * 3


class Lines(logging.Handler):
    """Keeps where each message was logged."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def emit(self, record):
        self.seen.append((record.funcName, record.lineno))


def logs(x, seen):
    logger = logging.Logger("captured")
    logger.addHandler(Lines(seen))
    logger.warning("here")
    logs_again(logger)
    return x * 2


def logs_again(logger):
    logger.warning("and here")


def asks_for_the_stack(x, seen):
    stack = traceback.extract_stack()
    seen.append([(frame.name, frame.lineno) for frame in stack[-2:]])
    return x * 2


def walks_back(x, seen):
    frame = sys._getframe()
    seen.append((frame.f_back.f_code.co_name, sys._getframe(1) is frame.f_back))
    return x * 2


def reaches_too_far(x, seen):
    try:
        sys._getframe(10_000)
    except ValueError as error:
        seen.append(str(error))
    return x * 2


@each("function", [logs, asks_for_the_stack, walks_back, reaches_too_far])
def test_what_a_function_sees_of_its_callers(function):
    found = []
    for f in (function, tl.compile(function)):
        seen = []
        for _ in range(3):
            f(tl.ones(2), seen)
        found.append(seen)
    assert found[0] == found[1]
