"""The table of NumPy functions that work on Tensors, each with the function that does it."""

import numpy as np

from tensorlib._core.graph.op import declared
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import declare_all

COUNTERPARTS = {}


def counterpart(*functions):
    """Makes a function the counterpart of NumPy's, whose names of arguments it keeps.

    Raises: ValueError where one has a counterpart already, as a ufunc has that an element-wise
    operation names as its reference. A module whose import failed may say it again.
    """
    def decorate(function):
        for numpys in functions:
            if COUNTERPARTS.get(numpys, function).__module__ != function.__module__:
                raise ValueError(f"counterpart: numpy.{numpys.__name__} has one already, "
                                 f"{COUNTERPARTS[numpys].__name__}")
            COUNTERPARTS[numpys] = function
        return function
    return decorate


def add_elementwise():
    """Makes element-wise operations the counterparts of the ufuncs that are their references.

    Of several, as `maximum` and `clamp_min`, it is the one declared first. The others have a
    reference that differs in some dtype or for NaN. Those declared outside the library are none.
    """
    for name, op in declared.items():
        if (name in FUNCTIONS and op.elementwise
                and isinstance(op.testing["reference"], np.ufunc)):
            COUNTERPARTS.setdefault(op.testing["reference"], FUNCTIONS[name])


def counterpart_of(function):
    """What does the work of NumPy's function on Tensors, or None."""
    if function not in COUNTERPARTS and declare_all():
        add_elementwise()
    return COUNTERPARTS.get(function)


add_elementwise()
