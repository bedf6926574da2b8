"""Fills the table of upcalls: what lower layers of the library call in higher ones."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from tensorlib._core.apply.getitem cimport getitem, setitem
from tensorlib._core.apply.operators cimport binary_operator, inplace_operator, unary_operator
from tensorlib._core.arrays.arrays cimport fill_buffer
from tensorlib._core.arrays.as_numbers cimport number_of
from tensorlib._core.arrays.convert cimport constructed
from tensorlib._core.base.upcalls cimport (
    buffer_function, getitem_function, held_function, item_function,
    setitem_function, upcalls,
)
from tensorlib._core.graph.attached cimport track_held
from tensorlib._core.interpreters.interception cimport called_whole, offered_method
from tensorlib._core.interpreters.foreign cimport any_asks
from tensorlib._core.interpreters.stack cimport called, effect, leaving
from tensorlib._core.tensor.numbers cimport item_of

from tensorlib._core.base.upcalls import OPERATIONS
from tensorlib._core.graph.op import find


def fill_upcalls(*, needs_of, gradient_of, tangent_of, declare_all):
    """Fills the table in `_core/base/upcalls.pxd`, once all operations are registered.

    The arguments are functions of an `Op`: what its gradient needs, its backward operation, its
    forward-mode rule. Raises: KeyError for an operation that is not registered.
    """
    for i, name in enumerate(OPERATIONS):
        upcalls.operations[<int>i] = owned(find(name))
    upcalls.needs_of = owned(needs_of)
    upcalls.gradient_of = owned(gradient_of)
    upcalls.tangent_of = owned(tangent_of)
    upcalls.declare_all = owned(declare_all)
    upcalls.binary = binary_operator
    upcalls.inplace = inplace_operator
    upcalls.unary = unary_operator
    # casts, since the table has `object` where a function takes a Tensor
    upcalls.getitem = <getitem_function>getitem
    upcalls.setitem = <setitem_function>setitem
    upcalls.constructed = constructed
    upcalls.number = <item_function>number_of
    upcalls.item = <item_function>item_of
    upcalls.fill_buffer = <buffer_function>fill_buffer
    upcalls.track_held = <held_function>track_held
    upcalls.leaving, upcalls.effect, upcalls.offered = leaving, effect, offered_method
    upcalls.called, upcalls.whole, upcalls.asks = called, called_whole, any_asks


cdef PyObject* owned(object value):
    """A new reference, which the table never releases."""
    Py_INCREF(value)
    return <PyObject*>value
