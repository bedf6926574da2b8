"""The table of NumPy's functions that work on Tensors: each with what does its work here."""

COUNTERPARTS = {}


def counterpart(*functions):
    """Makes a function the counterpart of NumPy's, whose names of arguments it keeps."""
    def decorate(function):
        COUNTERPARTS.update(dict.fromkeys(functions, function))
        return function
    return decorate
