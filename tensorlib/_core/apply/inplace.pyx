"""In-place operations: which tensors may be written, and the new histories after a write.

A write to a view also changes its base and every other view of that: all of them get a new grad_fn
here.
"""

from cpython.object cimport PyObject

from tensorlib._core.apply.elementwise cimport apply_into, has_dims, tuple_of
from tensorlib._core.base.dtypes cimport COMPLEX_KIND, FLOAT_KIND, KIND, real_of
from tensorlib._core.base.shape cimport MAX_NDIM, broadcast, sizes_of
from tensorlib._core.base.storage cimport first_version, untracked
from tensorlib._core.base.upcalls cimport (
    AS_COMPLEX, AS_REAL, AS_STRIDED, COPY, VIEW_SCATTER, registered,
)
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.attached cimport RETAINS, hook_node
from tensorlib._core.graph.modes cimport PACKED, mode
from tensorlib._core.graph.node cimport Node, gradient_node
from tensorlib._core.graph.op cimport Op, Rule
from tensorlib._core.graph.saved cimport note_written
from tensorlib._core.interpreters.interception cimport interpreted
from tensorlib._core.interpreters.foreign cimport all_run_plain
from tensorlib._core.interpreters.recording cimport record
from tensorlib._core.tensor.tensor cimport (
    ALONE, AMONG_OTHERS, IN_FUNCTION, Tensor, UNRECORDED, alias, live_views, new_tensor,
    requires_grad, same_shape, track_tensor,
)
from tensorlib._core.tiles.copies cimport copy_into, may_overlap, packed_copy
from tensorlib._core.tiles.loops cimport find_loop
from tensorlib._core.tiles.program cimport MAX_INPUTS

from tensorlib._core.layout.reinterpret import as_real

cdef bint is_expanded(Tensor x) noexcept:
    """Whether several elements share an address, as in expanded tensors."""
    cdef int d
    for d in range(x.ndim_):
        if x.steps[d] == 0 and x.dims[d] > 1 and x.numel_:
            return True
    return False


cdef int check_writable(str name, Tensor x, bint recorded) except -1:
    """Raises RuntimeError unless `x` may be written in place by operation `name`."""
    if not x.storage.writable:
        raise RuntimeError(
            f"{name}: the tensor looks at read-only memory and can't be written; clone() it first")
    if is_expanded(x):
        raise RuntimeError(
            f"{name}: unsupported operation: more than one element of the written-to tensor "
            "refers to a single memory location (it was expanded); clone() it first")
    return check_may_change(name, x, recorded)


cdef bint is_plainly_writable(Tensor x) noexcept:
    """A fast test that `check_writable` can't fail, which holds for most tensors."""
    return (x.packed and x.storage.writable and not untracked(x.storage)
            and x.storage.born >= mode().epoch and not x.wants_grad and x.base_ is None
            and x.origin == ALONE)


cdef int check_may_change(str name, Tensor x, bint recorded) except -1:
    """Raises RuntimeError unless `x` may get a new value, or the same one with other sizes."""
    if untracked(x.storage) and first_version()[0] == 0:
        raise RuntimeError(
            f"{name}: inplace update to inference tensor outside InferenceMode is not allowed; "
            "clone() it first")
    if x.storage.born < mode().epoch:
        raise RuntimeError(
            f"{name}: in place on a tensor that was made outside of the function being transformed "
            f"(an argument of it or a captured tensor, of shape {tuple(x.shape)}); clone() it, or "
            "return the new value")
    if not recorded:
        return 0
    if x.wants_grad:
        raise RuntimeError(
            f"{name}: a leaf Variable that requires grad is being used in an in-place operation; "
            "do it under no_grad() or on a copy")
    if x.base_ is not None and (<Tensor>x.base_).wants_grad:
        raise RuntimeError(
            f"{name}: a view of a leaf Variable that requires grad is being used in an in-place "
            "operation; do it under no_grad() or on a copy")
    return check_origin(name, x) if x.origin != ALONE else 0


cdef str IN_FUNCTION_ENDS = (
    "was created inside a custom Function (or because an input was returned as-is). Its history "
    "would override the Function's backward; clone() the output of the Function")


cdef int check_origin(str name, Tensor x) except -1:
    """Raises RuntimeError for a write, in a graph, to a view that is one of several outputs."""
    if not (requires_grad(x) or x.base_ is not None and requires_grad(<Tensor>x.base_)):
        return 0
    if x.origin == UNRECORDED:
        raise RuntimeError(
            f"{name}: a view was created in no_grad mode and is being modified inplace with grad "
            "mode enabled; make the view outside of no_grad, or modify it inside")
    if x.origin == AMONG_OTHERS:
        raise RuntimeError(
            f"{name}: this view is the output of a function that returns multiple views, and is "
            "being modified inplace; index or narrow the tensor instead, or clone() the view")
    if x.origin == IN_FUNCTION:
        raise RuntimeError(f"{name}: a view is being modified inplace that {IN_FUNCTION_ENDS}")
    return 0


cdef list copied_from(Tensor x, Tensor source):
    """The histories of `x` and its views after `x` becomes a copy of `source` (None: constants).

    The old value of `x` gets a gradient of zero.
    """
    cdef PyObject* args[2]
    cdef Tensor old = alias(x), fresh = alias(x)
    old.grad_node, old.slot = x.grad_node, x.slot
    args[0], args[1] = <PyObject*>old, <PyObject*>(fresh if source is None else source)
    record(<Op>registered(COPY), args, 2, fresh, None)
    return new_histories(x, fresh)


cdef object bind_inplace(Op op, PyObject** args):
    """The entry point of element-wise operations in place."""
    if watched and not all_run_plain(args, op.n_args):
        return interpreted(op, op.name + "_", tuple_of(args, op.n_args), None, plain_inplace, op)
    return run_inplace(op, args)


cdef object run_inplace(Op op, PyObject** args):
    """x := op(x, ...) of the tensors `args`, of which `x` is the first.

    It is recorded as a new value of `x` and of its base, if it is a view. `args` is modified.
    """
    cdef PyObject* before[MAX_INPUTS]        # what the graph records: the old value of `x`
    cdef list kept, histories
    cdef Tensor x = <Tensor>args[0], old, fresh, other
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int i, ndim
    cdef bint wanted = requires_grad(x)
    for i in range(1, op.n_args):
        other = <Tensor>args[i]
        wanted = wanted or requires_grad(other)
        if other.ndim_ == 0 or same_shape(x, other):
            continue
        ndim = broadcast(op.name, x.ndim_, x.dims, other.ndim_, other.dims, dims)
        if ndim != x.ndim_ or not has_dims(x, dims):
            raise RuntimeError(
                f"{op.name}_: output with shape {tuple(x.shape)} doesn't match the broadcast shape "
                f"{sizes_of(ndim, dims)}")
    wanted = wanted and mode().grad
    if not is_plainly_writable(x):
        check_writable(op.name + "_", x, mode().grad)
    if KIND[x.type] == COMPLEX_KIND and KIND[find_loop(op.loop, x.type).result] == FLOAT_KIND:
        raise RuntimeError(f"{op.name}_: not implemented for {x.dtype} in place, since its result "
                           "is real")
    if not wanted:
        apply_into(op, args, x)
        return x
    if not op.differentiable:
        histories = copied_from(x, None)
        apply_into(op, args, x)
        take_histories(histories)
        return x
    old = packed_copy(x, x.type) if value_is_kept(op, args) else alias(x)
    old.grad_node, old.slot = x.grad_node, x.slot
    kept = []
    for i in range(1, op.n_args):
        if args[i] != <PyObject*>x and meets(x, <Tensor>args[i]):
            other = as_it_was(<Tensor>args[i])
            kept.append(other)
            args[i] = <PyObject*>other
    for i in range(op.n_args):
        before[i] = <PyObject*>old if args[i] == <PyObject*>x else args[i]
    if mode().node_flags & PACKED:
        fresh = computed(op, args, x)        # the hook gets the new value
        record(op, before, op.n_args, fresh, None)
        histories = new_histories(x, fresh)
        write_computed(op, x, fresh)
    else:
        fresh = alias(x)
        record(op, before, op.n_args, fresh, None)
        histories = new_histories(x, fresh)
        apply_into(op, args, x)
    take_histories(histories)
    return x


cdef object plain_inplace(object what, tuple args, dict kwargs):
    cdef PyObject* given[MAX_INPUTS]
    cdef int i
    for i in range((<Op>what).n_args):
        given[i] = <PyObject*>args[i]
    return run_inplace(<Op>what, given)


cdef Tensor computed(Op op, PyObject** args, Tensor x):
    """The value that an in-place write will store in `x`, as a new tensor."""
    cdef Tensor out = new_tensor(x.type, x.ndim_, x.dims)
    apply_into(op, args, out)
    return out


cdef int write_computed(Op op, Tensor x, Tensor value) except -1:
    """x := value, after hooks have run, which may have changed `x` in any way."""
    if x.type != value.type or not same_shape(x, value):
        raise RuntimeError(f"{op.name}_: a saved tensor pack hook changed the tensor's layout")
    copy_into(x, value)
    x.storage.version += 1
    return 0


cdef bint meets(Tensor x, Tensor other) noexcept:
    """Whether a write to `x` may change `other`."""
    return other.storage is x.storage and (
        other.data_pointer == x.data_pointer or may_overlap(other, x))


cdef Tensor as_it_was(Tensor x):
    """A copy of a value that is about to change, with its place in the graph."""
    cdef Tensor copy = packed_copy(x, x.type)
    copy.grad_node, copy.slot = gradient_node(x), x.slot
    return copy


cdef bint value_is_kept(Op op, PyObject** args):
    """Whether a gradient rule that will run needs the value that is about to be overwritten."""
    cdef unsigned int mask = 0, own = 0
    cdef int i
    for i in range(op.n_args):
        if args[i] == args[0]:
            own |= <unsigned int>1 << i
        if requires_grad(<Tensor>args[i]) and op.rules[i] is not None:
            mask |= (<Rule>op.rules[i]).mask
    return mask & own


cdef int rebase(Tensor x, Tensor fresh) except -1:
    """Gives `x` the history of `fresh`, the value that was written to its memory."""
    take_histories(new_histories(x, fresh))
    return 0


cdef list new_histories(Tensor x, Tensor fresh):
    """The tensors that get a new history when `x` becomes `fresh`, each with a tensor that has it.

    If `x` is a view, the base becomes itself with that value written into it, and every live view
    of the base a view of that. Nothing is changed here, since this may fail: `take_histories`
    follows after the write.
    """
    cdef Tensor base = x, new_base = fresh, view
    cdef list histories
    if x.base_ is not None:
        base = <Tensor>x.base_
        new_base = view_scatter_record(base, x, fresh)
    histories = [(base, new_base)] if base is x else [(None, fresh), (base, new_base)]
    for view in live_views(base):
        histories.append((view, stale_record(base, new_base, view) if (
            view.origin == IN_FUNCTION or not share_parts(base, view)) else (
            strided_record(base, new_base, view))))
    return [(x, seen, None if x is None else follow(<Tensor>x, <Tensor>seen))
            for x, seen in histories]


cdef void take_histories(list histories) noexcept:
    """Sets the new histories after the write; None: there are none.

    It does not allocate, since nothing may fail after a write.
    """
    cdef Tensor x, seen
    cdef list followed
    if histories is None:
        return
    for x, seen, followed in histories:
        if seen.grad_node is not None:
            note_written(<Node>seen.grad_node, seen.storage)
        if x is None:                        # an intermediate one, of the base
            continue
        if seen.grad_node is not None and (<Node>seen.grad_node).tracked:
            track_tensor(x)
        set_history(x, seen, followed)


# The hook of `retain_grad` moves to the new node of its tensor: `follow` is called before the
# write, since it may fail, `set_history` after it.

cdef list follow(Tensor x, Tensor seen):
    """Adds the retain_grad hook of `x` to the node of `seen`; returns its key at the old node.
    """
    cdef list keys = []
    if not x.keeps_grad or x.grad_node is None or seen.grad_node is None:
        return None
    for key, (kind, _, hook) in list(((<Node>x.grad_node).hooks or {}).items()):
        if kind == RETAINS and hook.x() is x:
            hook_node(<Node>seen.grad_node, RETAINS, seen.slot, hook)
            keys.append(key)
    return keys


cdef void set_history(Tensor x, Tensor seen, list followed) noexcept:
    """Gives `x` the grad_fn of `seen`, after `follow`."""
    if followed:
        for key in followed:
            (<dict>(<Node>x.grad_node).hooks).pop(key, None)
    x.grad_node, x.slot = seen.grad_node, seen.slot


cdef Tensor view_scatter_record(Tensor base, Tensor view, Tensor value):
    """The base with its view replaced by `value`: only recorded, as the memory holds it already."""
    cdef PyObject* args[2]
    cdef Tensor old = alias(base), new
    old.grad_node, old.slot = base.grad_node, base.slot
    if view.type != base.type:
        old, view, value = in_parts(old), in_parts(view), in_parts(value)
    new = alias(old)
    args[0], args[1] = <PyObject*>old, <PyObject*>value
    record(<Op>registered(VIEW_SCATTER), args, 2, new, {"place": place_in(old, view)})
    return of_parts(new, base) if new.type != base.type else new


cdef Tensor strided_record(Tensor base, Tensor new_base, Tensor view):
    """The view of a base that has a new history."""
    cdef PyObject* args[1]
    cdef Tensor shown = view, new
    if view.type != base.type:
        new_base, shown = in_parts(new_base), in_parts(view)
    new = alias(shown)
    args[0] = <PyObject*>new_base
    record(<Op>registered(AS_STRIDED), args, 1, new, {"place": place_in(new_base, shown)})
    return of_parts(new, view) if new.type != view.type else new


cdef bint share_parts(Tensor a, Tensor b) noexcept:
    """Whether tensors have one dtype, or one that of the parts of the other's complex numbers."""
    return a.type == b.type or (
        KIND[a.type] == COMPLEX_KIND and real_of(a.type) == b.type
        or KIND[b.type] == COMPLEX_KIND and real_of(b.type) == a.type)


cdef Tensor in_parts(Tensor x):
    """A complex tensor viewed as real pairs, with its history; a real one itself."""
    cdef PyObject* args[1]
    if KIND[x.type] != COMPLEX_KIND:
        return x
    cdef Tensor out = as_real(x)
    args[0] = <PyObject*>x
    record(<Op>registered(AS_REAL), args, 1, out, None)
    return out


cdef Tensor of_parts(Tensor x, Tensor like):
    """A complex view of the pairs `x`, with their history."""
    cdef PyObject* args[1]
    cdef Tensor out = alias(like)
    args[0] = <PyObject*>x
    record(<Op>registered(AS_COMPLEX), args, 1, out, None)
    return out


def refuse_stale(g, maker):
    """Raises RuntimeError: the gradient of a view whose position in its base is unknown."""
    raise RuntimeError(
        f"backward: an output of {maker} is a view whose base, or another view of its base, was "
        f"modified inplace. It {IN_FUNCTION_ENDS}")


cdef Op STALE = Op("stale_view", "A view that a Function made, after its base was written.",
                   ("input",), ("maker",), (None,))
STALE.add_rule("input", refuse_stale, names=("g", "maker"))


cdef Tensor stale_record(Tensor base, Tensor new_base, Tensor view):
    """The node of a view that a `Function` made and whose base has changed: its gradient raises."""
    cdef PyObject* args[1]
    cdef Tensor new = alias(view)
    maker = "a custom Function" if view.grad_node is None else view.grad_node.name()
    args[0] = <PyObject*>new_base
    record(STALE, args, 1, new, {"maker": maker})
    return new


cdef tuple place_in(Tensor base, Tensor view):
    """The sizes, strides and offset of a view in its base, and the strides of the base."""
    return (tuple(view.shape), view.stride(), view.storage_offset(), base.stride(),
            base.storage_offset())
