"""Families of operations that are declared when one of them is first used.

    >>> tensorlib.tensor([180.0]).deg2rad()        # imports tensorlib.ops.pointwise.rare
    tensor([3.1416])

Most programs use few of the functions, and each declaration takes some 50 us. So a module in
`FAMILIES` is not imported with the package, but by the first use of one of its names, which are
placeholders until then, or when the registry is iterated over or an unknown name is looked up. Such
a module ends with `declared(__name__)`. The table of these names is generated.
"""

import sys
from functools import cache
from importlib import import_module
from inspect import isfunction, signature
from typing import NamedTuple

from tensorlib._core.base.error_names import nearest, print_as
from tensorlib._core.graph.op import declared as records
from tensorlib._core.graph.op import register
from tensorlib._core.tensor.tensor import Tensor, attach
from tensorlib.ops.complete import check_registry
from tensorlib.ops.lazy_names import FAMILIES
from tensorlib.ops.pending import FUNCTIONS, PENDING
from tensorlib.ops.publish import check_tensors


class Placeholder:
    """The placeholder of a function, and of the method of its name, until the family is declared.

    References to it stay valid: calls are passed on to the function.
    """

    def __init__(self, name, family):
        vars(self).update(__name__=name, __qualname__=name, __module__="tensorlib", family=family)

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def __get__(self, tensor, kind):
        return self.replaced_in(vars(Tensor)).__get__(tensor, kind)

    def __getattr__(self, attribute):
        if attribute != "function":
            return getattr(self.function, attribute)
        self.function = self.replaced_in(
            FUNCTIONS if self.__name__ in FUNCTIONS else vars(Tensor))
        return self.function

    def __eq__(self, other):
        return other is self or other is self.function

    def __hash__(self):
        """The hash of the function, so that it can be looked up by a kept placeholder."""
        return hash(self.function)

    def replaced_in(self, names):
        """The function that replaces this placeholder once its family is declared."""
        import_module(self.family)
        if names[self.__name__] is self:
            raise RuntimeError(f"{self.__name__}: called by {self.family}, which declares it")
        return names[self.__name__]

    @property
    def __doc__(self):
        return self.function.__doc__

    @property
    def __signature__(self):
        return signature(self.function)

    def __repr__(self):
        return repr(self.function)

    def __reduce__(self):
        return self.__name__


def put_placeholders(family):
    """Publishes placeholders for all names of a family."""
    both, functions, methods = map(str.split, FAMILIES[family][:3])
    for name in both + functions + methods:
        placeholder = Placeholder(name, family)
        if name not in methods:
            FUNCTIONS[name] = placeholder
        if name not in functions:
            attach(name, placeholder)


def declared(family):
    """Ends the declaration of a family: its functions replace the placeholders.

    An interrupt here may leave some of these; their next use declares the family again.
    """
    made = PENDING[family]
    check_registry(made.operations)
    check_tensors(made.functions, made.methods)
    register(made.operations)
    for name, method in made.methods.items():
        attach(name, method)
    for name, function in made.functions.items():
        FUNCTIONS[name] = function
        if type(public.get(name)) is Placeholder:
            public[name] = function


def publish_in(namespace):
    """Puts all functions into the namespace of the package, lazy ones when they are declared."""
    global public
    namespace.update(FUNCTIONS)
    print_as(Tensor, "tensorlib.Tensor")
    public = namespace


public = {}


for _family in FAMILIES:
    put_placeholders(_family)
def gathered(package):
    """The names of the functions that a package offers.

    Those that `tensorlib` itself does not have become the package's own: for pickles and stubs.
    """
    names, published = [], {id(function) for function in FUNCTIONS.values()}
    for name, value in vars(sys.modules[package]).items():
        home = getattr(value, "__module__", None) or ""
        if name[0] != "_" and (
                home == "tensorlib" or home.startswith(f"{package}.")
                and isfunction(getattr(value, "__wrapped__", value))):
            names.append(name)
            if id(value) not in published:
                value.__module__, value.__qualname__ = package, name
    return sorted(names)


# ---- operations as they are referred to ----------------------------------------------------------

class LazyOperation(NamedTuple):
    """An operation of a family that is not declared yet."""

    name: str


class Operations:
    """Each operation of the library as an attribute: its record, or a `LazyOperation`
    until it has one.

    Rules in other modules, such as batching rules, are registered for `operations.gather`. So a
    wrong name is an error when that module is imported, and no family is declared for it.
    """

    def __getattr__(self, name):
        if name in records:
            return records[name]
        undeclared = undeclared_operations()
        if name not in undeclared:
            near = nearest(name, {*records, *undeclared})
            raise AttributeError(f"ops: no operation named {name!r}" + (
                f"; did you mean {' or '.join(near)}?" if near else ""))
        return LazyOperation(name)


operations = Operations()


@cache
def undeclared_operations():
    """The names under which lazy families may register operations."""
    return {name for names in FAMILIES.values() for name in " ".join(names).split()}


def name_of(operation):
    """The name under which an operation is registered: of its record, or of its function."""
    return getattr(operation, "op", operation).name


# ---- all of them ---------------------------------------------------------------------------------

waiting = set(FAMILIES)


def declare_all():
    """Declares the families that are not declared yet; returns whether there were any."""
    found = bool(waiting)
    for family in FAMILIES if found else ():
        import_module(family)
        waiting.discard(family)
    return found
