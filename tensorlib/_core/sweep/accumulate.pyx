"""Sums of gradients: at outputs that several nodes use, and in the `.grad` of leaves.

If nothing else refers to a buffer, it is added to in place.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF

from tensorlib._core.apply.elementwise cimport apply_binary, is_dense
from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT64
from tensorlib._core.base.upcalls cimport ADD, registered, upcalls
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.node cimport Node
from tensorlib._core.graph.op cimport Op
from tensorlib._core.index.keys cimport Index, put
from tensorlib._core.interpreters.foreign cimport overrides
from tensorlib._core.sweep.state cimport Sweep
from tensorlib._core.tensor.tensor cimport (
    Tensor, gradient_of, requires_grad, same_shape, set_gradient, track_tensor,
)
from tensorlib._core.tiles.copies cimport copy_into, new_arranged_as, packed_copy
from tensorlib._core.tiles.flat cimport run_loop
from tensorlib._core.tiles.loops cimport Loop, find_loop, loop_id

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* value)

cdef int ADD_LOOP = loop_id("add")


cdef inline bint only_ours(PyObject* g) noexcept:
    """Whether nothing else refers to a gradient, which is held once here, or to its buffer."""
    cdef Tensor x
    if Py_REFCNT(g) != 1:
        return False
    x = <Tensor>g
    return x.storage.capacity != 0 and Py_REFCNT(<PyObject*>x.storage) == 1


cdef bint has_usual_steps(Tensor x) noexcept:
    """Whether a contiguous tensor has the strides of a new one also in dims of size 0 or 1: results
    of replays may have those of a view."""
    cdef Py_ssize_t expected = 1
    cdef int d
    for d in range(x.ndim_ - 1, -1, -1):
        if x.steps[d] != expected:
            return False
        expected *= max(x.dims[d], 1)
    return True


cdef inline bint rules_layout(Tensor leaf) noexcept:
    return not leaf.packed and is_dense(leaf)


cdef bint lies_for(Tensor g, Tensor leaf) noexcept:
    if rules_layout(leaf):
        return is_laid_as(g, leaf)
    return g.packed and has_usual_steps(g)


cdef Tensor copied_for(Tensor g, Tensor leaf):
    cdef Tensor made
    if not rules_layout(leaf):
        return packed_copy(g, g.type)
    made = new_arranged_as(leaf, g.type)
    copy_into(made, g)
    return made


cdef inline bint is_laid_as(Tensor x, Tensor y) noexcept:
    """Whether two tensors of one shape have the same strides."""
    cdef int d
    for d in range(x.ndim_):
        if x.dims[d] != 1 and x.steps[d] != y.steps[d]:
            return False
    return True


cdef int add_to_place(PyObject** place, Tensor g, bint create_graph) except -1:
    """Adds `g` to the gradient that has arrived at an output of a node."""
    cdef object total
    if not create_graph and only_ours(place[0]) and add_in_place(<Tensor>place[0], g):
        return 0
    total = apply_binary(<Op>registered(ADD), <object>place[0], g)
    Py_DECREF(<object>place[0])
    Py_INCREF(total)
    place[0] = <PyObject*>total
    return 0


cdef bint add_in_place(Tensor x, Tensor g) except -1:
    """x += g if both are plain buffers of one dtype that may be written; else False."""
    cdef Loop* loop = find_loop(ADD_LOOP, x.type)
    cdef char* inputs[2]
    cdef bint is_scalar[2]
    if (loop.run == NULL or g.type != x.type or not same_shape(x, g) or not x.storage.writable
            or not (x.packed or is_dense(x))):
        return False
    if not (x.packed and g.packed or is_laid_as(x, g)):
        return False
    inputs[0], inputs[1] = x.data_pointer, g.data_pointer
    is_scalar[0] = is_scalar[1] = False
    run_loop(loop, inputs, is_scalar, x.data_pointer, x.numel_)
    x.storage.version += 1
    return True


# ---- parts of a tensor ---------------------------------------------------------------------------
# The gradient of x in x[key] is zero outside the key. If x is cut into parts, each would fill and
# add a whole tensor: cutting (8, 64, 384) into three took 0.5 ms of a step of 8. So the gradients
# of all but the first are added at their keys, unless others were added since (-0 + 0 is 0). The
# gradient of what was overwritten in part may be such a first one; 0 is added to the rest of it.

cdef int hold_spread(Sweep* sweep, Tensor g, Node target, bint overwritten) except -1:
    """Remembers a gradient that was delivered and may be added to, if nothing else refers to it."""
    if target.n_outputs != 1 or target.visit.grads != <PyObject*>g or Py_REFCNT(
            <PyObject*>g.storage) != 1 or not g.packed or g.type != FLOAT32 and g.type != FLOAT64:
        return 0
    drop_spread(sweep)
    Py_INCREF(g)
    sweep.spread, sweep.overwritten = <PyObject*>g, overwritten
    return 0


cdef void drop_spread(Sweep* sweep) noexcept:
    cdef PyObject* spread = sweep.spread
    sweep.spread = NULL
    Py_XDECREF(spread)


cdef bint add_picked(Sweep* sweep, Node node, Tensor g, Node target) except -1:
    """Adds the gradient of an x[key] to that of x, which has arrived at `target`; False if it must
    be put into zeros first."""
    cdef PyObject* total = target.visit.grads
    if sweep.create_graph or total != sweep.spread or Py_REFCNT(total) != 2 or (
            (<Tensor>total).type != g.type):
        return False
    if sweep.overwritten:
        add_zero(<Tensor>total)
        sweep.overwritten = False
    put(<Tensor>total, <Index>node.attributes["index"], g, True)
    (<Tensor>total).storage.version += 1
    return True


cdef int add_zero(Tensor x) except -1:
    """x += 0, which turns -0 into 0, of a packed tensor of float32 or float64."""
    cdef double zero = 0.0               # in either dtype
    cdef char* inputs[2]
    cdef bint is_scalar[2]
    inputs[0], inputs[1] = x.data_pointer, <char*>&zero
    is_scalar[0], is_scalar[1] = False, True
    run_loop(find_loop(ADD_LOOP, x.type), inputs, is_scalar, x.data_pointer, x.numel_)
    return 0


# ---- of leaves -----------------------------------------------------------------------------------

cdef int accumulate(Node node, bint create_graph) except -1:
    """leaf.grad += the gradient that arrived; a buffer of the sweep's own becomes the grad.

    In place if possible, so that references to `.grad` stay valid, as in PyTorch.
    """
    cdef Tensor leaf = <Tensor>node.saved[0].tensor
    cdef PyObject* g = node.visit.grads
    if g == NULL:
        return 0
    if create_graph:
        track_tensor(leaf)
    cdef object total = gradient_of(leaf)
    if total is None:
        if create_graph or only_ours(g) and lies_for(<Tensor>g, leaf):
            set_gradient(leaf, <Tensor>g)
        else:
            set_gradient(leaf, copied_for(<Tensor>g, leaf))
    elif watched and overrides(total):                  # its class overrides addition
        set_gradient(leaf, <Tensor?>upcalls.binary(ADD, total, <Tensor>g))
    elif (create_graph or requires_grad(<Tensor>total)
            or not add_in_place(<Tensor>total, <Tensor>g) and not (
                rules_layout(<Tensor>total)
                and add_in_place(<Tensor>total, copied_for(<Tensor>g, <Tensor>total)))):
        set_gradient(leaf, apply_binary(<Op>registered(ADD), total, <Tensor>g))
    return 0
