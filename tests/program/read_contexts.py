"""Ways to read what is elsewhere than the code says: what each thread or context has of its own,
settings of NumPy's and of Python's, and memory behind what looks like a number."""

import contextvars
import copy
import copyreg
import sys
import threading
import warnings

import numpy as np

from read_cases import Thing, case


@case
class OfAThread:
    def __init__(self):
        self.a = threading.local()
        self.a.scale = 2.0

    def read(self, x):
        return x * self.a.scale + getattr(self.a, "more", 1.0)

    def change(self):
        self.a.scale = 3.0

    def change_what_was_not_there(self):
        self.a.more = 5.0

    def other(self):
        self.a.another = 1.0


@case
class OfAContext:
    def __init__(self):
        self.scale = contextvars.ContextVar("scale", default=2.0)
        self.more = contextvars.ContextVar("more")
        self.another = contextvars.ContextVar("another")

    def read(self, x):
        return x * self.scale.get() + self.more.get(1.0) - self.scale.get(4.0)

    def change(self):
        self.scale.set(3.0)

    def change_what_was_not_there(self):
        self.more.set(5.0)

    def other(self):
        self.another.set(1.0)


@case
class RecordsOfArrays:
    def __init__(self):
        self.all = np.zeros(2, dtype=[("scale", "f8"), ("more", "i4")])
        self.one, self.other_ones = self.all[0], np.zeros(2)

    def read(self, x):
        return x * float(self.one["scale"]) + int(self.all[1]["more"])

    def change_in_the_array(self):
        self.all["scale"][0] = 5.0

    def change_what_is_read_of_the_array(self):
        self.all[1]["more"] = 3

    def other(self):
        self.other_ones[0] = 1.0


@case
class FieldsOfRecords:
    def __init__(self):
        self.all = np.zeros(2, dtype=[("scale", "f8")]).view(np.recarray)
        self.one = self.all[0]

    def read(self, x):
        return x + float(self.one.scale)

    def change(self):
        self.all["scale"][0] = 5.0


@case
class TuplesThatIterateInTheirOwnWay:
    def __init__(self):
        class Pair(tuple):
            pass
        self.kind = Pair
        self.pair = Pair((2.0, 3.0))

    def read(self, x):
        first, second = self.pair
        return x * first + second

    def change(self):
        self.kind.__iter__ = lambda _: iter((5.0, 6.0))


# ---- settings, each with a context in which it is another one ------------------------------------

ZEROS, ZERO, LONG = np.zeros(2), np.float64(0), "1" * 2000


def of_errors(divide):
    """A function that gives one of two values, by what NumPy does at an error."""
    def read(x):
        try:
            return x * float(divide() > 0)
        except (FloatingPointError, RuntimeWarning):
            return x * 5
    return read


def array_with_digits(x):
    return x * len(f"{np.array([1.23456789])}")


def number_of_many_digits(x):
    try:
        return x * (int(LONG) % 7)
    except ValueError:
        return x * 9


class FewDigits:
    def __enter__(self):
        self.before = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(700)

    def __exit__(self, *error):
        sys.set_int_max_str_digits(self.before)


class WarningsAreErrors(warnings.catch_warnings):
    def __enter__(self):
        super().__enter__()
        warnings.simplefilter("error")


OWN = Thing(scale=2.0)


def copied(x):
    return x * copy.copy(OWN).scale + copy.deepcopy([OWN])[0].scale


class CopiesAreRegistered:
    def __enter__(self):
        copyreg.pickle(Thing, lambda own: (Thing, (), {"scale": own.scale + 5}))

    def __exit__(self, *error):
        del copyreg.dispatch_table[Thing]


def raising():
    return np.errstate(all="raise")


SETTINGS = {
    "array / array": (of_errors(lambda: (1 / ZEROS)[0]), raising),
    "scalar / scalar": (of_errors(lambda: np.float64(1) / ZERO), raising),
    "a method": (of_errors(lambda: ZERO.__rtruediv__(1.0)), raising),
    "a warning": (of_errors(lambda: (1 / ZEROS)[0]), WarningsAreErrors),
    "a warning of a function": (of_errors(lambda: -np.log(ZEROS)[0]), WarningsAreErrors),
    "an array as text": (array_with_digits, lambda: np.printoptions(precision=2)),
    "an array in %": (lambda x: x * len("%s" % np.array([1.23456789])),  # noqa: UP031
                      lambda: np.printoptions(precision=2)),
    "a number of many digits": (number_of_many_digits, FewDigits),
    "copies": (copied, CopiesAreRegistered),
}
