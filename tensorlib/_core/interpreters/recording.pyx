"""Recording: the node that an operation adds to the graph.

`record` is called for every operation that runs while the grad mode is on. If an input requires a
gradient, a node is built; otherwise the cost is one branch for each input.
"""

from cpython.object cimport PyObject

from tensorlib._core.base.dtypes cimport COMPLEX_KIND, FLOAT_KIND, KIND
from tensorlib._core.base.epochs cimport unsteady
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.node cimport Node, OUTPUT, new_node, set_edge, track
from tensorlib._core.graph.op cimport Op, Rule
from tensorlib._core.graph.saved cimport counted, keep
from tensorlib._core.tensor.tensor cimport (
    ALONE, Tensor, alias, leave_family, requires_grad, track_tensor,
)

from tensorlib._core.base.storage import OutOfMemoryError

class UnsupportedDtype(NotImplementedError, TypeError, RuntimeError):
    """All of PyTorch's errors for it: its functions', its operators' and its older functions'."""

    __module__ = "tensorlib"


cdef extern from "Python.h":
    ctypedef struct TupleItems "PyTupleObject":
        PyObject** ob_item
    object PyObject_Vectorcall(object function, PyObject** args, size_t n, PyObject* names)

cdef extern from * nogil:
    int __builtin_popcount(unsigned int bits)


cdef int link_outputs(Op op, PyObject** args, int n, object outputs, object attributes) except -1:
    """`record` for inputs at least one of which requires a gradient."""
    cdef unsigned int mask = 0
    cdef Rule rule
    cdef int i
    if not op.differentiable:
        return 0
    for i in range(n):
        if requires_grad(<Tensor>args[i]):
            rule = <Rule>(op.rules[0] if op.variadic else op.rules[i])
            if rule is not None:
                mask |= rule.mask
    if mode().forward_mode:
        mask |= forward_mask(op, n, 1 if isinstance(outputs, Tensor) else len(outputs))
    return link(op, args, n, mask, outputs, attributes)


cdef unsigned int forward_mask(Op op, int n, int n_outputs):
    """The mask of what forward mode may need: outputs, and inputs of what is not linear."""
    cdef unsigned int mask = ((<unsigned int>1 << min(n_outputs, 8)) - 1) << OUTPUT
    if op.linearity == "multilinear" or op.linearity == "jvp":
        mask |= (<unsigned int>1 << n) - 1
    return mask


cdef int link(Op op, PyObject** args, int n, unsigned int mask, object outputs,
              object attributes) except -1:
    """Makes the node of an operation that ran; `mask` says which values it saves."""
    cdef bint several = not isinstance(outputs, Tensor)
    cdef int i, n_outputs = len(outputs) if several else 1
    cdef Node node
    cdef Tensor out
    if not several and KIND[(<Tensor>outputs).type] < FLOAT_KIND:
        return 0
    node = new_node(op, n, __builtin_popcount(mask), n_outputs)
    node.attributes = attributes
    for i in range(n):
        set_edge(node, i, <Tensor>args[i])
    if n > OUTPUT and mask & 1:
        raise RuntimeError(f"{op.name}: its gradient needs the tensors themselves, and takes "
                           f"at most {OUTPUT} of them; got {n}")
    for i in range(min(n, <int>OUTPUT)):
        if mask >> i & 1:
            keep(node, i, <Tensor>args[i])
    for i in range(n_outputs):
        out = <Tensor>outputs[i] if several else <Tensor>outputs
        if mask >> (OUTPUT + i) & 1:
            keep(node, OUTPUT + i, alias(out))
        if KIND[out.type] >= FLOAT_KIND:
            out.grad_node = node
            out.slot = i
            if out.base_ is not None and not lies_in(out, args, n):
                leave_family(out)            # it has no other owner and no history
                out.origin = ALONE
            if node.tracked:
                track_tensor(out)
    if node.tracked:
        track(node)
    return 0


cdef bint lies_in(Tensor out, PyObject** args, int n):
    """Whether a result shares the memory of an input."""
    cdef int i
    for i in range(n):
        if args[i] != NULL and isinstance(<object>args[i], Tensor) and (
                (<Tensor>args[i]).storage is out.storage):
            return True
    return False


# ---- operations in general -----------------------------------------------------------------------

cdef object apply_general(Op op, tuple args, dict kwargs):
    """Runs any other operation on canonical arguments (tensors first) and records it."""
    cdef object out
    if not op.takes_complex:
        refuse_complex(op, tuple(args[0]) if op.variadic else args)
    try:
        if unsteady and op.pure and not (op.is_view or op.may_view):
            out = result_of_held(op, args, kwargs)
        elif kwargs:
            out = op.forward(*args, **kwargs)
        else:
            out = PyObject_Vectorcall(op.forward, (<TupleItems*><PyObject*>args).ob_item, len(args),
                                      NULL)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(f"{op.name}: {error}") from None
    if mode().grad and op.differentiable:
        record_general(op, args, kwargs, out)
    return out


cdef object result_of_held(Op op, tuple args, dict kwargs):
    """The result of `forward` on aliases of the tensors, which no other thread can change."""
    cdef tuple given = tuple([held(x) for x in args])
    cdef object out = op.forward(*given, **{name: held(x) for name, x in (kwargs or {}).items()})
    cdef int i
    for i in range(len(args)):
        if out is given[i]:
            return args[i]
    return out


cdef object held(object x):
    """A tensor, or the tensors of a tuple, as aliases of the same memory; else `x` itself."""
    if isinstance(x, Tensor):
        return alias(<Tensor>x)
    if type(x) is not tuple:
        return x
    return tuple([alias(<Tensor>each) if isinstance(each, Tensor) else each for each in <tuple>x])


cdef int refuse_complex(Op op, tuple args) except -1:
    """Raises for a complex tensor among the arguments of an operation that takes none."""
    cdef int i
    for i in range(len(args) if op.variadic else op.n_args):
        if isinstance(args[i], Tensor) and KIND[(<Tensor>args[i]).type] == COMPLEX_KIND:
            raise UnsupportedDtype(f"{op.name}: not implemented for {(<Tensor>args[i]).dtype}")
    return 0


cdef int record_general(Op op, tuple args, dict kwargs, object out) except -1:
    cdef tuple tensors = tuple(args[0]) if op.variadic else args
    cdef int i, n = len(tensors) if op.variadic else op.n_args
    cdef bint wanted = False
    for i in range(n):
        if tensors[i] is out:
            return 0                     # the operation did nothing
        wanted = wanted or (isinstance(tensors[i], Tensor) and requires_grad(<Tensor>tensors[i]))
    if not wanted:
        return 0
    attributes = bind_attributes(op, args, kwargs or {}) if (
        op.kept_attributes or mode().forward_mode) else None
    return record(op, (<TupleItems*><PyObject*>tensors).ob_item, n, out, attributes)


cdef dict bind_attributes(Op op, tuple args, dict kwargs):
    """The attributes that rules name (or all): positional, by keyword, or the default."""
    cdef dict bound = {}
    cdef int i, first = 1 if op.variadic else op.n_args
    for i, name in enumerate(op.attributes):
        if name in op.kept_attributes or mode().forward_mode:
            bound[name] = counted(args[first + i] if first + i < len(args) else
                                  kwargs.get(name, op.defaults[i]))
    return bound
