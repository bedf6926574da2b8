from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdlib cimport malloc

from tensorlib._core.base.locks cimport (
    FREE_THREADED, drop, gradients, hold, is_linked, links, revive,
)
from tensorlib._core.base.storage cimport Storage

cdef extern from "Python.h":
    void PyObject_GC_Track(object value)
    bint PyObject_GC_IsTracked(object value)
    Py_ssize_t Py_REFCNT(PyObject* value)

cdef enum:
    INLINE_NDIM = 5

# What an exported buffer keeps alive: its layout, and the memory itself, since
# the tensor may get another one.
cdef struct Export:
    PyObject* storage               # owned
    Py_ssize_t layout[1]            # sizes and strides: as many as it takes

# How a view was made. A write in place into one that was not made alone is refused, as in PyTorch.
cdef enum Origin:
    ALONE
    UNRECORDED                      # while operations were not recorded
    AMONG_OTHERS                    # by an operation that gives several views
    IN_FUNCTION                     # by a `Function`, whose backward a new history would override

cdef class Tensor:
    cdef char* data_pointer
    cdef Py_ssize_t* dims           # sizes
    cdef Py_ssize_t* steps          # strides in elements
    cdef Py_ssize_t numel_
    cdef int ndim_
    cdef int type                   # dtype id
    cdef int slot                   # which output of grad_fn this is
    cdef bint packed                # row-major without gaps
    cdef bint wants_grad            # a leaf that requires grad
    cdef bint keeps_grad            # retain_grad was called
    cdef bint is_scalar             # stands for a Python number in promotion
    cdef Origin origin              # of a view: what a write in place into it must know
    cdef Py_ssize_t inline_dims[2 * INLINE_NDIM]
    cdef Storage storage
    cdef object grad_node           # Node or None
    cdef void* accumulator          # the AccumulateGrad node of a leaf, borrowed
    cdef object gradient            # Tensor or None
    cdef object base_               # for a view: the tensor whose storage it shares, or None
    # the live views of a tensor: a linked list
    cdef PyObject* first_view
    cdef PyObject* next_view
    cdef PyObject** view_link       # what points to this view in the list
    cdef object hooks
    cdef dict attributes            # what the user set, a name among it, or None
    cdef object __weakref__

cdef inline object gradient_of(Tensor x):
    """The gradient, which another thread may set meanwhile."""
    cdef object g
    if not FREE_THREADED:
        return x.gradient
    hold(&gradients)
    g = x.gradient
    drop(&gradients)
    return g

cdef inline int set_gradient(Tensor x, object value) except -1:
    cdef object before
    if not FREE_THREADED:
        x.gradient = value
        return 0
    hold(&gradients)
    before = x.gradient
    x.gradient = value
    drop(&gradients)               # the old value may be freed now, which may run Python code
    return 0

cdef inline bint requires_grad(Tensor x) noexcept:
    return x.wants_grad or x.grad_node is not None

# The garbage collector tracks a tensor only once it can be part of a cycle: with hooks, with a
# tracked node, or with a gradient that has a graph. Otherwise half of the time to record 100,000
# operations went into the collector's traversals of what they kept.

cdef inline void track_tensor(Tensor x) noexcept:
    """Has the garbage collector track a tensor, and its base if it is a view."""
    hold(&links)                   # tracking twice is an error
    if not PyObject_GC_IsTracked(x):
        PyObject_GC_Track(x)
    if x.base_ is not None and not PyObject_GC_IsTracked(x.base_):
        PyObject_GC_Track(x.base_)
    drop(&links)

# The live views of a tensor are a linked list, so that a write in place can tell each of them that
# its history has changed. Inline, since every view enters it as it is made, and leaves it as it
# dies. Without a global lock threads that evaluate one module make and free views of its
# parameters. The list holds none of them: what it leads to is taken under the lock `links`, unless
# it is dying, and what dies is off the list before anything else is done to it.

cdef inline void set_base(Tensor view, Tensor x) noexcept:
    """Records that `view` is a view of `x`, or of the base of `x`."""
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
    """Takes a tensor off the list of its base, and empties its own list: when a cycle is collected,
    views can outlive their base."""
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
    cdef PyObject* revived = NULL
    hold(&links)
    try:
        link = base.first_view
        while link != NULL:
            if not FREE_THREADED:
                views.append(<object>link)
            elif revive(link):
                revived = link
                views.append(<object>link)
                revived = NULL
                Py_XDECREF(link)               # the list owns it now
            link = (<Tensor>link).next_view
    finally:
        drop(&links)
        Py_XDECREF(revived)        # if the list could not grow; freeing it may take the lock
    return views


cdef inline int leave_family(Tensor x) except -1:
    """Unlinks a tensor whose memory was replaced from its base and views, which keep theirs."""
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


cdef inline void drop_gradients(Tensor x) noexcept:
    """Releases the gradient, the gradient of that and so on, without recursion."""
    cdef Tensor g = x.gradient
    x.gradient = None
    while type(g) is Tensor and Py_REFCNT(<PyObject*>g) == 1:
        g.gradient, g = None, g.gradient

cdef inline int set_layout_room(Tensor x, int ndim) except -1:
    """Makes dims and steps point to space for `ndim` of each."""
    cdef Py_ssize_t* room = x.inline_dims
    cdef int apart = INLINE_NDIM
    if ndim > INLINE_NDIM:
        apart = ndim
        room = <Py_ssize_t*>malloc(2 * ndim * sizeof(Py_ssize_t))
        if room == NULL:
            raise MemoryError()
    x.dims, x.steps, x.ndim_ = room, room + apart, ndim
    return 0


cdef inline void take_on(Tensor x, Tensor other) noexcept:
    """Copies the layout of `other` to `x`, which has space for it."""
    cdef int d
    for d in range(other.ndim_):
        x.dims[d] = other.dims[d]
        x.steps[d] = other.steps[d]
    x.numel_ = other.numel_
    x.type = other.type
    x.packed = other.packed
    x.data_pointer = other.data_pointer


cdef inline bint same_shape(Tensor a, Tensor b) noexcept:
    cdef int d
    if a.ndim_ != b.ndim_:
        return False
    for d in range(a.ndim_):
        if a.dims[d] != b.dims[d]:
            return False
    return True

cdef Tensor new_tensor(int dtype, int ndim, const Py_ssize_t* dims)
cdef Tensor new_like(Tensor x, int dtype)
cdef Tensor new_view(Tensor x, int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps,
                     char* data)
cdef Tensor over_storage(Storage storage, char* data, int dtype, int ndim,
                         const Py_ssize_t* dims, const Py_ssize_t* steps)
cdef Tensor alias(Tensor x)
cdef int set_attribute(Tensor x, str name, value) except -1
cdef int replace(Tensor x, Tensor other) except -1


cdef inline Tensor new_scalar(int dtype):
    """An uninitialised 0-d tensor."""
    return new_tensor(dtype, 0, NULL)


cdef inline int become(Tensor x, Tensor other) except -1:
    """Makes the new tensor `x` what `other` is: its elements, its place in the graph and among the
    views of another."""
    replace(x, other)
    if other.base_ is not None:
        set_base(x, other)
    x.grad_node, x.slot = other.grad_node, other.slot
    if x.grad_node is not None:
        track_tensor(x)
    return 0


cdef inline object own_dict(Tensor x):
    """The dict that instances of a subclass have, or None: Tensor's own have `attributes`."""
    return x.__dict__ if type(x).__dictoffset__ else None
