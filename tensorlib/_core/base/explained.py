"""Adds to docstrings the explanations of parameters that they do not explain themselves."""

import re

from tensorlib._core.base.parameter_words import WORDS

EXAMPLE = "\n\n    >>> "
HEAD = re.compile(r"(?:^ *|[.;] )((?:\w+, )*\w+): ", re.MULTILINE)
IN_PYTHON = 1 << 9          # the flag of heap types: the docstrings of others are fixed


def explained(doc, name, parameters, bases=()):
    """A docstring with an Args part for the parameters that it does not explain itself.

    name, bases: the names of the function, or of a class and its bases, which may have explanations
    of their own.
    """
    lines = []
    for parameter in parameters:
        own = (WORDS.get(f"{owner}.{parameter}") for owner in (name, *bases))
        words = next(filter(None, own), None) or WORDS.get(parameter)
        if words and not (
                f"`{parameter}`" in doc or f"`{parameter}=" in doc
                or (f"{parameter}: " in doc or f"{parameter}, " in doc)
                and parameter in heads(doc)):
            lines.append(f"        {parameter}: {words}.")
    if not lines:
        return doc
    before, example, after = doc.partition(EXAMPLE)
    part = "\n".join(["    Args:", *lines])
    return f"{before.rstrip()}\n\n{part}{example}{after}" + ("" if after else "\n    ")


def heads(doc):
    """The names that a docstring explains in the form `a, b: what they are`."""
    return {name for names in HEAD.findall(doc) for name in names.split(", ")}


def parameters_of(function):
    """The names of the parameters of a function or, for a wrapper, of the wrapped function."""
    while not hasattr(function, "__signature__") and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if hasattr(function, "__signature__"):
        return tuple(function.__signature__.parameters)
    code = getattr(function, "__code__", None)
    return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount] if code else ()


class Explained:
    """A descriptor for the docstring of a class, which is completed when it is read."""

    def __init__(self, doc, name):
        self.doc, self.name, self.whole = doc, name, None

    def __get__(self, instance, owner):
        if owner.__name__ != self.name:         # subclasses do not inherit docstrings
            return None
        if self.whole is None:
            names = parameters_of(owner.__init__)[1:] or parameters_of(owner.__new__)[1:]
            self.whole = explained(self.doc, self.name, names, [
                base.__name__ for base in owner.__mro__[1:]])
        return self.whole


def explain(members, names):
    """Explains the parameters of a package's own classes, and of its functions in Python.

    members: the names of the package; names: those which are public.
    """
    for name in names:
        value = members.get(name)
        doc = getattr(value, "__doc__", None)
        if not isinstance(doc, str):
            continue
        if isinstance(value, type):
            if value.__flags__ & IN_PYTHON and isinstance(vars(value).get("__doc__"), str):
                value.__doc__ = Explained(doc, value.__name__)
        elif hasattr(value, "__code__"):
            value.__doc__ = explained(doc, name, parameters_of(value))
