"""How operations are called: operator slots, the compiled function of each `Op`, in-place forms.

The function that a user calls is made here once per operation, closed over its record, so that a hot
operation runs no Python frame.
"""

from cpython.number cimport PyIndex_Check
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from tensorlib._core.copies cimport copy_into, may_overlap, packed_copy
from tensorlib._core.dtypes cimport KIND
from tensorlib._core.elementwise cimport apply_binary, apply_elementwise, apply_into, apply_unary
from tensorlib._core.memory cimport first_version, untracked
from tensorlib._core.node cimport gradient_edge, mode, set_history
from tensorlib._core.op cimport Op, Rule
from tensorlib._core.operands cimport (
    all_tensors, check_sequence, convert_arguments, operand, refuse_shared_write, stand_in, stands_in,
    tuple_of,
)
from tensorlib._core.product cimport apply_product, product
from tensorlib._core.recording cimport apply_general, record
from tensorlib._core.shape cimport MAX_NDIM, broadcast
from tensorlib._core.tensor cimport (
    ALONE, AMONG_OTHERS, MATMUL, N_OPERATORS, Operator, Tensor, UNRECORDED, alias, late, new_tensor, replace, requires_grad,
)
from tensorlib._core.walk cimport MAX_INPUTS

from tensorlib._core.op import find


# ---- operator slots ------------------------------------------------------------------------------

# In the order of the enum `Operator`.
OPERATORS = ("add", "sub", "mul", "div", "floor_divide", "remainder", "pow", "matmul",
             "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
             "lt", "le", "eq", "ne", "gt", "ge", "neg", "abs", "bitwise_not")
cdef PyObject* operators[N_OPERATORS]      # Op records, owned for ever


cdef object binary_operator(Operator which, object a, object b):
    cdef Op op = <Op>operators[<int>which]
    return apply_product(op, a, b) if which == MATMUL else apply_binary(op, a, b)


cdef object unary_operator(Operator which, object a):
    return apply_unary(<Op>operators[<int>which], a)


cdef object inplace_operator(Operator which, object a, object b):
    cdef Op op = <Op>operators[<int>which]
    if not op.elementwise:
        return NotImplemented              # x @= y becomes x = x @ y
    cdef Tensor x = operand(op, b, a)
    if x is None:
        refuse_shared_write(op, (b,))
        return NotImplemented
    return apply_inplace(op, a, (x,))


def connect_operators():
    """Points the operator slots of Tensor at the registered operations."""
    cdef Op op
    cdef int i
    for i, name in enumerate(OPERATORS):
        op = find(name)
        Py_INCREF(op)
        operators[i] = <PyObject*>op
    late.binary = binary_operator
    late.unary = unary_operator
    late.inplace = inplace_operator


# ---- in place ------------------------------------------------------------------------------------

cdef int check_writable(str name, Tensor x, bint recorded) except -1:
    """Raises RuntimeError unless `x` may be written in place by operation `name`."""
    cdef int d
    if not x.storage.writable:
        raise RuntimeError(
            f"{name}: the tensor looks at read-only memory and can't be written; clone() it first")
    for d in range(x.ndim_):
        if x.steps[d] == 0 and x.dims[d] > 1 and x.numel_:
            raise RuntimeError(
                f"{name}: unsupported operation: more than one element of the written-to tensor "
                "refers to a single memory location (it was expanded); clone() it first")
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


cdef int check_origin(str name, Tensor x) except -1:
    """Raises RuntimeError for a write into a view that was not made alone, in a graph."""
    if not (requires_grad(x) or x.base_ is not None and requires_grad(<Tensor>x.base_)):
        return 0
    if x.origin == UNRECORDED:
        raise RuntimeError(
            f"{name}: a view was created in no_grad mode and is being modified inplace with grad mode "
            "enabled; make the view outside of no_grad, or modify it inside")
    if x.origin == AMONG_OTHERS:
        raise RuntimeError(
            f"{name}: this view is the output of a function that returns multiple views, and is being "
            "modified inplace; index or narrow the tensor instead, or clone() the view")
    return 0


cdef object COPY = None              # the operation, found when it is first needed


cdef int forget(Tensor x) except -1:
    """Notes that what `x` holds now does not depend on what it was: that gets a gradient of zero."""
    cdef Tensor fresh = alias(x)
    return replaced_by(x, fresh, fresh)


cdef int replaced_by(Tensor x, Tensor fresh, Tensor source) except -1:
    """Notes that `fresh`, the new value of `x`, is a copy of `source`."""
    global COPY
    cdef PyObject* args[2]
    cdef Tensor old = alias(x)
    if COPY is None:
        COPY = find("copy")
    old.grad_node, old.slot = x.grad_node, x.slot
    args[0], args[1] = <PyObject*>old, <PyObject*>source
    record(<Op>COPY, args, 2, fresh, None)
    return rebase(x, fresh)


cdef object apply_inplace(Op op, Tensor x, tuple others):
    """x := op(x, *others), recorded as a new value of `x` and of the tensor that it is a view of."""
    cdef PyObject* args[MAX_INPUTS]
    cdef list kept = []
    cdef Tensor old, fresh, other
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int i, ndim
    cdef bint wanted = requires_grad(x)
    args[0] = <PyObject*>x
    for i in range(op.n_args - 1):
        other = <Tensor>others[i]
        args[i + 1] = <PyObject*>other
        wanted = wanted or requires_grad(other)
        ndim = broadcast(op.name, x.ndim_, x.dims, other.ndim_, other.dims, dims)
        if ndim != x.ndim_ or not fits(x, dims):
            raise RuntimeError(
                f"{op.name}_: output with shape {tuple(x.shape)} doesn't match the broadcast shape "
                f"{tuple([dims[k] for k in range(ndim)])}")
    wanted = wanted and mode().grad
    check_writable(op.name + "_", x, mode().grad)
    if not wanted:
        apply_into(op, args, x)
        return x
    if not op.differentiable:
        apply_into(op, args, x)
        forget(x)
        return x
    old = packed_copy(x, x.type) if value_is_kept(op, args) else alias(x)
    old.grad_node, old.slot = x.grad_node, x.slot
    for i in range(1, op.n_args):
        if args[i] != <PyObject*>x and meets(x, <Tensor>args[i]):
            other = as_it_was(<Tensor>args[i])
            kept.append(other)
            args[i] = <PyObject*>other
    apply_into(op, args, x)
    for i in range(op.n_args):
        if args[i] == <PyObject*>x:
            args[i] = <PyObject*>old
    fresh = alias(x)
    record(op, args, op.n_args, fresh, None)
    rebase(x, fresh)
    return x


cdef bint meets(Tensor x, Tensor other) noexcept:
    """Whether a write into `x` may change `other`."""
    return other.storage is x.storage and (
        other.data_pointer == x.data_pointer or may_overlap(other, x))


cdef Tensor as_it_was(Tensor x):
    """A copy of a value that is about to change, in its place in the graph."""
    cdef Tensor copy = packed_copy(x, x.type)
    copy.grad_node, copy.slot = gradient_edge(x), x.slot
    return copy


cdef bint fits(Tensor x, const Py_ssize_t* dims) noexcept:
    cdef int d
    for d in range(x.ndim_):
        if x.dims[d] != dims[d]:
            return False
    return True


cdef bint value_is_kept(Op op, PyObject** args):
    """Whether a rule that will run needs the value that is about to be overwritten."""
    cdef unsigned int mask = 0, own = 0
    cdef int i
    for i in range(op.n_args):
        if args[i] == args[0]:
            own |= <unsigned int>1 << i
        if requires_grad(<Tensor>args[i]) and op.rules[i] is not None:
            mask |= (<Rule>op.rules[i]).mask
    return mask & own


cdef object view_scatter = None, as_strided = None


cdef int rebase(Tensor x, Tensor fresh) except -1:
    """Gives `x` the history of `fresh`, the value just written into its memory.

    If `x` is a view, the base becomes itself with that value put in, and every live view of the
    base becomes a view of that.
    """
    global view_scatter, as_strided
    cdef Tensor base, view, scattered, seen
    cdef PyObject* link
    cdef list views = []
    if x.base_ is None:
        base = x
        set_history(base, fresh.grad_node, fresh.slot)
    else:
        if view_scatter is None:
            view_scatter, as_strided = find("view_scatter"), find("as_strided")
        base = <Tensor>x.base_
        scattered = view_scatter_record(base, x, fresh)
        set_history(base, scattered.grad_node, 0)
    link = base.first_view
    while link != NULL:
        views.append(<object>link)
        link = (<Tensor>link).next_view
    if views and as_strided is None:
        as_strided = find("as_strided")
    for view in views:
        seen = strided_record(base, view)
        set_history(view, seen.grad_node, 0)
    return 0


cdef Tensor view_scatter_record(Tensor base, Tensor view, Tensor value):
    """The base with its view replaced by `value`: recorded only, the memory holds it already."""
    cdef PyObject* args[2]
    cdef Tensor old = alias(base), new = alias(base)
    old.grad_node, old.slot = base.grad_node, base.slot
    args[0], args[1] = <PyObject*>old, <PyObject*>value
    record(<Op>view_scatter, args, 2, new, {"place": place_in(base, view)})
    return new


cdef Tensor strided_record(Tensor base, Tensor view):
    cdef PyObject* args[1]
    cdef Tensor new = alias(view)
    args[0] = <PyObject*>base
    record(<Op>as_strided, args, 1, new, {"place": place_in(base, view)})
    return new


cdef tuple place_in(Tensor base, Tensor view):
    """Where a view lies in its base: sizes, strides and offset, and the strides of the base."""
    return (tuple(view.shape), view.stride(), view.storage_offset(), base.stride(),
            base.storage_offset())


# ---- out= ----------------------------------------------------------------------------------------

cdef object apply_out(Op op, tuple args, object out):
    """out := op(*args) for an element-wise operation."""
    cdef PyObject* given[MAX_INPUTS]
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t joined[MAX_NDIM]
    cdef int i, d, ndim = 0
    cdef list tensors = as_tensors(op, args)
    cdef Tensor x
    if not isinstance(out, Tensor):
        raise TypeError(f"{op.name}: out must be a Tensor, not {type(out).__name__}")
    for i in range(op.n_args):
        x = <Tensor>tensors[i]
        given[i] = <PyObject*>x
        ndim = broadcast(op.name, ndim, dims, x.ndim_, x.dims, joined)
        for d in range(ndim):
            dims[d] = joined[d]
    prepare_out(op.name, tensors, out, ndim, dims)
    apply_into(op, given, out)
    return out


cdef int prepare_out(str name, list tensors, Tensor out, int ndim, const Py_ssize_t* dims) except -1:
    """Checks `out` and gives an empty one the shape of the result."""
    cdef int d
    cdef Tensor x
    for x in tensors:
        if mode().grad and (requires_grad(x) or requires_grad(out)):
            raise RuntimeError(
                f"{name}: functions with out=... don't support automatic differentiation, but one "
                "of the arguments requires grad")
    check_writable(name, out, False)
    if out.ndim_ != ndim or not fits(out, dims):
        if out.numel_:
            raise RuntimeError(
                f"{name}: out has shape {tuple(out.shape)} but the result has shape "
                f"{tuple([dims[d] for d in range(ndim)])}; pass an empty tensor to have it resized")
        replace(out, new_tensor(out.type, ndim, dims))
    return 0


def store_out(str name, tuple inputs, Tensor result, out):
    """Puts a result into `out`, for the operations that are not element-wise."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}: out must be a Tensor, not {type(out).__name__}")
    prepare_out(name, [x for x in inputs if isinstance(x, Tensor)], out, result.ndim_, result.dims)
    if KIND[result.type] > KIND[(<Tensor>out).type]:
        raise RuntimeError(f"{name}: result type {result.dtype} can't be cast to the desired output "
                           f"type {out.dtype}")
    copy_result(out, result)
    return out


cdef int copy_result(Tensor out, Tensor result) except -1:
    cdef Tensor source = packed_copy(result, result.type) if may_overlap(result, out) else result
    copy_into(out, source)
    out.storage.version += 1
    return 0


cdef list as_tensors(Op op, tuple args):
    """The arguments of an operation that writes to a tensor, as tensors."""
    cdef list tensors = operands_of(op, args)
    if tensors is not None:
        return tensors
    refuse_shared_write(op, args)
    return refused(op, args)


cdef object refused(Op op, tuple args):
    """What a value among the arguments makes of the operation. Raises: TypeError for other types."""
    done = stand_in(op, args, None)
    if done is not NotImplemented:
        return done
    for i, value in enumerate(args):
        if operand(op, value, None) is None:
            raise TypeError(f"{op.name}: {op.arguments[i]} must be a Tensor or a number, not "
                            f"{type(value).__name__}")


cdef list operands_of(Op op, tuple args):
    """The arguments of an element-wise operation as tensors; numbers take a partner's dtype.

    None where an argument can't be one.
    """
    cdef Tensor partner = None, x
    cdef list tensors = []
    for i, value in enumerate(args):
        if isinstance(value, Tensor) and i not in op.boolean_inputs:
            partner = <Tensor>value
            break
    for i, value in enumerate(args):
        x = operand(op, value, None if i in op.boolean_inputs else partner)
        if x is None:
            return None
        tensors.append(x)
    return tensors


# ---- compiled functions --------------------------------------------------------------------------

# Python's own error for a wrong number of arguments would say "function() takes ...". An empty
# `more` costs nothing measurable.

cdef int check_count(str name, int wanted, tuple more, object last) except -1:
    """Raises unless `last`, the last of the wanted arguments, was given and no more."""
    if more or last is ...:
        raise TypeError(f"{name}: takes {wanted} {'argument' if wanted == 1 else 'arguments'}, got "
                        + (f"{wanted + len(more)}" if more else "fewer"))
    return 0


def make_unary(Op op):
    def function(input=..., *more, out=None):
        if more or input is ...:
            check_count(op.name, 1, more, input)
        if out is None:
            return apply_unary(op, input)
        return apply_out(op, (input,), out)
    return function


def make_binary(Op op):
    def function(input=..., other=..., *more, out=None):
        if more or other is ...:
            check_count(op.name, 2, more, other)
        if out is not None:
            return apply_out(op, (input, other), out)
        result = apply_binary(op, input, other)
        if result is NotImplemented:
            result = stand_in(op, (input, other), None)
        if result is NotImplemented:
            as_tensors(op, (input, other))     # raises the error that names the argument
        return result
    return function


def make_nary(Op op):
    """For element-wise operations of three and more tensors."""
    def function(*args, out=None, **kwargs):
        cdef PyObject* given[MAX_INPUTS]
        cdef list tensors
        cdef int i
        if len(args) < op.n_args:
            args = by_position(op, args, kwargs)
        if len(args) != op.n_args or kwargs:
            raise TypeError(f"{op.name}: takes {', '.join(op.arguments)}; got {len(args)} arguments "
                            f"and {list(kwargs)}")
        if out is not None:
            return apply_out(op, args, out)
        if all_tensors(args):
            for i in range(op.n_args):
                given[i] = <PyObject*>args[i]
            return apply_elementwise(op, given)
        tensors = operands_of(op, args)
        if tensors is None:
            return refused(op, args)
        for i in range(op.n_args):
            given[i] = <PyObject*><object>tensors[i]
        return apply_elementwise(op, given)
    return function


cdef tuple by_position(Op op, tuple args, dict kwargs):
    """Moves tensor arguments that were given by keyword to their places."""
    cdef list placed = list(args)
    for name in op.arguments[len(args):]:
        if name not in kwargs:
            raise TypeError(f"{op.name}: missing argument {name!r}")
        placed.append(kwargs.pop(name))
    return tuple(placed)


def make_inplace(Op op):
    """The method `NAME_` of an element-wise operation."""
    if op.n_args == 1:
        def function(input=..., *more):
            check_count(op.name + "_", 1, more, input)
            return apply_inplace(op, input, ())
    elif op.n_args == 2:
        def function(input=..., other=..., *more):
            check_count(op.name + "_", 2, more, other)
            return apply_inplace(op, input, tuple(as_tensors(op, (input, other))[1:]))
    else:
        def function(input, *others):
            return apply_inplace(op, input, tuple(as_tensors(op, (input, *others))[1:]))
    return function


def make_product(int a_ndim=0, int b_ndim=0, str second="other"):
    """The maker of a product's function, which takes tensors of these numbers of dims (0: any).

    `second` is what PyTorch calls the second tensor.
    """
    def maker(Op op):
        def function(input, other=None, *, out=None, **named):
            if other is None and second in named:
                other = named.pop(second)
            if named:
                raise TypeError(f"{op.name}: takes input, {second} and out; got {list(named)}")
            if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
                done = stand_in(op, (input, other), None) if out is None else NotImplemented
                if done is not NotImplemented:
                    return done
                wrong = other if isinstance(input, Tensor) else input
                raise TypeError(f"{op.name}: expects two Tensors, got {type(wrong).__name__}")
            if a_ndim:
                check_dims(op.name, input, other, a_ndim, b_ndim)
            if out is None:
                return apply_product(op, input, other)
            return product_into(op.name, input, other, out)
        return function
    return maker


cdef int check_dims(str name, Tensor a, Tensor b, int a_ndim, int b_ndim) except -1:
    if a.ndim_ != a_ndim or b.ndim_ != b_ndim:
        raise RuntimeError(f"{name}: expects tensors of {a_ndim} and {b_ndim} dims, got shapes "
                           f"{tuple(a.shape)} and {tuple(b.shape)}")
    if a_ndim == 3 and a.dims[0] != b.dims[0]:
        raise RuntimeError(
            f"{name}: batch sizes differ: {tuple(a.shape)} @ {tuple(b.shape)}")
    return 0


cdef object product_into(str name, Tensor a, Tensor b, object out):
    cdef Tensor result = product(name, a, b)
    if isinstance(out, Tensor) and (<Tensor>out).type != result.type:
        raise RuntimeError(f"{name}: out has dtype {out.dtype} but the result has {result.dtype}")
    return store_out(name, (a, b), result, out)


def make_sized(Op op):
    """For operations on one tensor and sizes (or dims), one by one or as a sequence."""
    cdef object forward = op.forward
    cdef str named = op.attributes[0]
    def function(input, *sizes, **keyword):
        cdef PyObject* args[1]
        cdef Tensor x
        if keyword:
            if sizes or list(keyword) != [named]:
                raise TypeError(f"{op.name}: takes {named}, got {list(keyword)}")
            sizes = (keyword[named],)
        if len(sizes) == 1 and not PyIndex_Check(sizes[0]):
            sizes = as_sizes(op, sizes[0])
        if not isinstance(input, Tensor):
            done = stand_in(op, (input, sizes), None)
            if done is NotImplemented:
                raise TypeError(f"{op.name}: {op.arguments[0]} must be a Tensor, not "
                                f"{type(input).__name__}")
            return done
        x = forward(input, sizes)
        if mode().grad and requires_grad(<Tensor>input):
            args[0] = <PyObject*>input
            record(op, args, 1, x,
                   {named: sizes} if op.kept_attributes or mode().complete else None)
        return x
    return function


cdef tuple as_sizes(Op op, object sizes):
    try:
        return tuple(sizes)
    except TypeError:
        raise TypeError(f"{op.name}: {op.attributes[0]} must be ints, got {sizes!r}") from None


def make_checked(str name, dict places, function):
    """A plain function behind a check that the arguments at these places (by name) are Tensors."""
    def checked(*args, **kwargs):
        cdef Py_ssize_t place
        for argument, place in places.items():
            x = args[place] if place < len(args) else kwargs.get(argument)
            if not (isinstance(x, Tensor) or stands_in(x)):
                raise TypeError(f"{name}: {argument} must be a Tensor, not {type(x).__name__}")
        return function(*args, **kwargs)
    return checked


def make_general(Op op):
    """For operations that are not element-wise: checks the tensors, runs `forward`, records."""
    cdef int n = op.n_args
    cdef bint variadic = op.variadic
    def function(*args, **kwargs):
        cdef int i
        if len(args) < n:
            args = by_position(op, args, kwargs)
        if variadic:
            args = (tuple_of(op, args[0]), *args[1:])
            if not all_tensors(<tuple>args[0]):
                done = stand_in(op, args, kwargs)
                if done is not NotImplemented:
                    return done
                check_sequence(op, <tuple>args[0])
        else:
            for i in range(n):
                if not isinstance(args[i], Tensor):
                    done = stand_in(op, args, kwargs)
                    if done is not NotImplemented:
                        return done
                    args = convert_arguments(op, args)
                    break
        if kwargs and "out" in kwargs:
            out = kwargs.pop("out")
            if out is not None:
                return store_general(op, args, kwargs, out)
        return apply_general(op, args, kwargs)
    return function


cdef object store_general(Op op, tuple args, dict kwargs, object out):
    """Runs an operation and puts its result, or each of its results, into `out`."""
    cdef tuple inputs = tuple(args[0]) if op.variadic else args
    result = op.forward(*args, **kwargs)
    if isinstance(result, Tensor):
        return store_out(op.name, inputs, result, out)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{op.name}: out must be a tuple of {len(result)} Tensors")
    return type(result)(*[store_out(op.name, inputs, x, y) for x, y in zip(result, out)])
