"""Declarations of lazy families, which become visible only when the family is complete.

So an import that fails, by an interrupt or for lack of memory, changes nothing: the placeholders of
the family stay, and their next use declares it again.
"""

import sys

from tensorlib._core.graph.op import register
from tensorlib._core.tensor.tensor import Tensor, attach
from tensorlib.ops.lazy_names import FAMILIES

FUNCTIONS = {}  # every public function by name, in the order of declaration
HOMES = {}      # the module that declares each of the library's operations


class Declarations:
    """The declarations of one family by name; running it again after a failure replaces them."""

    def __init__(self):
        self.operations, self.functions, self.methods = {}, {}, {}


PENDING = {family: Declarations() for family in FAMILIES}


def importing():
    """The names of the modules that this thread is importing, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            yield frame.f_globals.get("__name__") or ""
        frame = frame.f_back


def is_imported_here():
    """Whether a module of the library is being imported, so that its declarations are internal."""
    return next(importing(), "").startswith("tensorlib.")


def pending():
    """The declarations of the family that is being imported; None outside of lazy families."""
    for module in importing():
        if module in PENDING:
            return PENDING[module]
        if not module.startswith("tensorlib."):
            break
    return None


def put_operation(record):
    """Registers an operation, at once or at the end of its family.

    Raises: ValueError if another module declares one of that name.
    """
    home = next(importing(), "")
    if "." not in record.name and HOMES.setdefault(record.name, home) != home:
        raise ValueError(f"ops: an operation named {record.name!r} exists already")
    family = pending()
    if family is None:
        register({record.name: record})
    else:
        family.operations[record.name] = record


def put_function(name, function):
    """Makes `function` the public function of this name."""
    family = pending()
    (FUNCTIONS if family is None else family.functions)[name] = function


def put_method(name, function):
    """Makes `function` the method of this name."""
    family = pending()
    if family is None:
        attach(name, function)
    else:
        family.methods[name] = function


def function_named(name):
    """The public function of this name, also where its family is being declared."""
    family = pending()
    return family.functions[name] if family and name in family.functions else FUNCTIONS[name]


def method_named(name):
    """The method of this name or None, also where its family is being declared."""
    family = pending()
    if family and name in family.methods:
        return family.methods[name]
    return getattr(Tensor, name, None)
