"""The views of a tensor: the list of those that live.

Without a global lock threads that evaluate one module make and free views of its parameters. The
list holds none of them: what it leads to is taken under the lock `links`, unless it is dying, and
what dies is off the list before anything else is done to it.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF

from tensorlib._core.base.locks cimport FREE_THREADED, drop, hold, is_linked, links, revive
from tensorlib._core.tensor.tensor cimport Tensor

# A linked list, so that a write in place can tell each view that its history has changed. Inline,
# since every view enters it as it is made, and leaves it as it dies.

cdef inline void set_base(Tensor view, Tensor x) noexcept:
    """Notes that `view` looks at `x`, or at what `x` itself is a view of."""
    cdef Tensor base = x if x.base_ is None else <Tensor>x.base_
    view.base_ = base
    view.origin = x.origin
    if FREE_THREADED:
        is_linked(<PyObject*>view)
    hold(&links)
    view.next_view = base.first_view
    view.view_link = &base.first_view
    if view.next_view != NULL:
        (<Tensor>view.next_view).view_link = &view.next_view
    base.first_view = <PyObject*>view
    drop(&links)


cdef inline void unlink_view(PyObject* view) noexcept:
    """Takes a view off the list of its base. Under `links`."""
    (<Tensor>view).view_link[0] = (<Tensor>view).next_view
    if (<Tensor>view).next_view != NULL:
        (<Tensor>(<Tensor>view).next_view).view_link = (<Tensor>view).view_link
    (<Tensor>view).view_link = NULL


cdef inline void leave_lists(PyObject* x) noexcept:
    """Takes a tensor off the list of its base, and empties its own: the views of one that dies can
    outlive it when a cycle is collected."""
    cdef PyObject* view
    hold(&links)
    if (<Tensor>x).view_link != NULL:
        unlink_view(x)
    view = (<Tensor>x).first_view
    while view != NULL:
        (<Tensor>view).view_link = NULL
        view = (<Tensor>view).next_view
    (<Tensor>x).first_view = NULL
    drop(&links)


cdef inline list live_views(Tensor base):
    """The live views of a tensor."""
    cdef list views = []
    cdef PyObject* link
    hold(&links)
    link = base.first_view
    while link != NULL:
        if not FREE_THREADED:
            views.append(<object>link)
        elif revive(link):
            views.append(<object>link)
            Py_XDECREF(link)
        link = (<Tensor>link).next_view
    drop(&links)
    return views


cdef inline int leave_family(Tensor x) except -1:
    """Parts a tensor that got other memory from its base, and from its views, which keep theirs."""
    cdef Tensor view
    if FREE_THREADED:
        for view in live_views(x):
            view.base_ = None
        leave_lists(<PyObject*>x)
        x.base_ = None
        return 0
    while x.first_view != NULL:
        view = <Tensor>x.first_view
        unlink_view(<PyObject*>view)
        view.base_ = None
    if x.base_ is not None:
        if x.view_link != NULL:
            unlink_view(<PyObject*>x)
        x.base_ = None
    return 0
