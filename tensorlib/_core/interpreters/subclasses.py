"""Subclasses of Tensor with `__torch_function__`, which also handles what is not an operation.

Sizes, dtypes, gradients and in-place methods are fast attributes of Tensor. A subclass that
overrides `__torch_function__` gets methods and properties in their place when the class is made,
so that plain Tensors do not pay for the dispatch.
"""

from tensorlib._core.interpreters.foreign import (
    as_they_are, note_override, note_plain_subclass, overridden, refuse_override,
)
from tensorlib._core.tensor.tensor import Tensor, attach

ASKED = frozenset("""__array__ __bool__ __complex__ __contains__ __deepcopy__ __float__ __format__
    __index__ __int__ __len__ __repr__""".split())          # of the names with underscores
UNASKED = frozenset("as_subclass flags".split())            # of the others
AS_THEY_ARE = "grad", "_grad", "_base"       # results that are not converted to the class

dispatching = {}                             # the replacements, by name


def asked_names():
    """The names of Tensor for which subclasses get replacements: those without a record."""
    for name, value in list(vars(Tensor).items()):
        if name in ASKED or name in AS_THEY_ARE or name == "_version" or not (
                name.startswith("_") or name in UNASKED or is_operation(value)):
            yield name


def is_operation(value):
    """Whether a method dispatches by itself: it has a record, or is to be imported with one."""
    return "op" in getattr(value, "__dict__", ()) or type(value).__module__ == "tensorlib.ops.lazy"


def dispatching_method(name):
    """A method of this name that calls `__torch_function__`."""
    def method(self, *args, **kwargs):
        function = getattr(Tensor, name)
        done = overridden(function, (self, *args), kwargs)
        return function(self, *args, **kwargs) if done is NotImplemented else done
    method.__name__ = method.__qualname__ = name
    method.__doc__ = getattr(Tensor, name).__doc__
    return method


def dispatching_property(name):
    """A property of this name whose `__get__` and `__set__` call `__torch_function__`."""
    def dispatched(form, *args):
        function = getattr(vars(Tensor)[name], form)
        done = overridden(function, args, {})
        return function(*args) if done is NotImplemented else done

    if name in AS_THEY_ARE:
        as_they_are.add(vars(Tensor)[name].__get__)
    return property(lambda self: dispatched("__get__", self),
                    lambda self, value: dispatched("__set__", self, value),
                    lambda self: dispatched("__delete__", self), vars(Tensor)[name].__doc__)


def dispatching_form(name):
    """The replacement of an attribute of Tensor in an overriding class."""
    if name not in dispatching:
        made = dispatching_method if callable(vars(Tensor)[name]) else dispatching_property
        dispatching[name] = made(name)
    return dispatching[name]


def asks_for_all(x):
    """Whether a tensor is of an overriding class that has the replacements."""
    return type(x).ndim is dispatching.get("ndim")


def note_subclass(cls, dispatches=True, **kwargs):
    """Records a new subclass of Tensor: from the first overriding one on, calls are observed.

    dispatches: whether it also handles what is not an operation.
    """
    super(Tensor, cls).__init_subclass__(**kwargs)
    if cls.__torch_function__ is refuse_override:
        note_plain_subclass(cls)
        return
    note_override()
    if not dispatches:
        return
    for name in asked_names():
        if getattr(cls, name) is getattr(Tensor, name):       # not overridden by itself
            setattr(cls, name, dispatching_form(name))


attach("__init_subclass__", classmethod(note_subclass))
