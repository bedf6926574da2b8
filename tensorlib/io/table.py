"""The table of NumPy's functions that work on Tensors: each with what does its work here."""

COUNTERPARTS = {}


def counterpart(*functions):
    """Makes a function the counterpart of NumPy's, whose names of arguments it keeps.

    Raises: ValueError where one has a counterpart already, as a ufunc has that an element-wise
    operation names as its reference.
    """
    def decorate(function):
        for numpys in functions:
            if numpys in COUNTERPARTS:
                raise ValueError(f"counterpart: numpy.{numpys.__name__} has one already, "
                                 f"{COUNTERPARTS[numpys].__name__}")
            COUNTERPARTS[numpys] = function
        return function
    return decorate
