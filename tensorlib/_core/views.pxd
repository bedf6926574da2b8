"""The live views of a tensor: a linked list, so that a write in place can tell each of them that
its history has changed. Inline, since every view enters it as it is made and leaves it as it dies.
"""

from cpython.object cimport PyObject

from tensorlib._core.tensor cimport Tensor


cdef inline void set_base(Tensor view, Tensor x) noexcept:
    """Notes that `view` looks at `x`, or at what `x` itself is a view of."""
    cdef Tensor base = x if x.base_ is None else <Tensor>x.base_
    view.base_ = base
    view.origin = x.origin
    view.next_view = base.first_view
    view.view_link = &base.first_view
    if view.next_view != NULL:
        (<Tensor>view.next_view).view_link = &view.next_view
    base.first_view = <PyObject*>view


cdef inline void unlink_view(Tensor view) noexcept:
    """Takes a view off the list of its base."""
    view.view_link[0] = view.next_view
    if view.next_view != NULL:
        (<Tensor>view.next_view).view_link = view.view_link
    view.view_link = NULL


cdef inline void forget_views(Tensor base) noexcept:
    """Empties the list of a dying tensor, whose views can outlive it when a cycle is collected."""
    cdef PyObject* view = base.first_view
    while view != NULL:
        (<Tensor>view).view_link = NULL
        view = (<Tensor>view).next_view
    base.first_view = NULL
