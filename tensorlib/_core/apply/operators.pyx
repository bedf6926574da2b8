"""How operations are called: operator slots, and the compiled function of each `Op`.

The function of each is made once, closed over its record: a hot operation runs no Python frame.
"""

from cpython.number cimport PyIndex_Check
from cpython.object cimport PyObject

from tensorlib._core.apply.elementwise cimport apply_binary, bind_elementwise, apply_unary
from tensorlib._core.apply.inplace cimport bind_inplace
from tensorlib._core.apply.out_argument cimport apply_out
from tensorlib._core.arrays.operands cimport (
    all_tensors, as_tensors, convert_arguments, operand, operands_of, refused, tuple_of,
)
from tensorlib._core.base.shape cimport MAX_NDIM, items
from tensorlib._core.base.upcalls cimport MATMUL, OpSlot, upcalls
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.op cimport Op
from tensorlib._core.interpreters.door cimport interpreted
from tensorlib._core.interpreters.foreign cimport (
    is_taken, may_override, overridden, stand_in, to_write,
)
from tensorlib._core.interpreters.recording cimport apply_general, record
from tensorlib._core.products.product cimport bind_product, product, promoted
from tensorlib._core.tensor.tensor cimport Tensor, requires_grad
from tensorlib._core.tiles.program cimport MAX_INPUTS

from tensorlib._core.apply.out_argument import store_out, store_outs
from tensorlib._core.base.dtypes import dtype as dtype_type
from tensorlib._core.base.error_names import name_errors, shown
from tensorlib._core.graph.op import registry


# ---- operator slots ------------------------------------------------------------------------------

cdef object binary_operator(OpSlot which, object a, object b):
    cdef Op op = <Op>upcalls.operations[<int>which]
    return bind_product(op, a, b) if which == MATMUL else apply_binary(op, a, b)


cdef object unary_operator(OpSlot which, object a):
    return apply_unary(<Op>upcalls.operations[<int>which], a)


cdef object inplace_operator(OpSlot which, object a, object b):
    cdef Op op = <Op>upcalls.operations[<int>which]
    if not op.elementwise:
        return NotImplemented              # x @= y becomes x = x @ y
    cdef PyObject* args[2]
    cdef Tensor x = operand(op, b, a)
    if x is None:
        if is_taken(b):
            to_write(op.name, "", b)      # refuses
        return NotImplemented
    args[0], args[1] = <PyObject*>a, <PyObject*>x
    return bind_inplace(op, args)


# ---- compiled functions --------------------------------------------------------------------------

# An error for a wrong number of arguments says what is wanted.

cdef int check_count(str name, int wanted, tuple more, object last) except -1:
    """Raises unless `last`, the last of the wanted arguments, was given and no more."""
    if more or last is ...:
        raise TypeError(f"{name}: takes {wanted} {'argument' if wanted == 1 else 'arguments'}, got "
                        + (f"{wanted + len(more)}" if more else "fewer"))
    return 0


cdef object call_out(Op op, tuple args, object out):
    """An element-wise operation into `out`."""
    for x in args:
        if may_override(x):
            done = overridden(op.function, args, {"out": out})
            if done is not NotImplemented:
                return done
    if watched:
        as_tensors(op, args)                   # refuses what no form that writes takes
        return interpreted(op, op.name, args, {"out": out}, plain_out, op)
    return apply_out(op, args, out)


cdef object plain_out(object what, tuple args, dict kwargs):
    return apply_out(<Op>what, args, kwargs["out"])


def make_elementwise(Op op):
    """The function of an element-wise operation, whose arguments go by the names of its record."""
    if op.arguments == ("input",):
        return make_unary(op)
    if op.arguments in (("input", "other"), ("input", "exponent")):
        return make_binary(op)
    return make_nary(op)


def make_unary(Op op):
    def function(input=..., *more, out=None):
        if more or input is ...:
            check_count(op.name, 1, more, input)
        if out is None:
            return apply_unary(op, input)
        return call_out(op, (input,), out)
    return name_errors(function)


def make_binary(Op op):
    if op.arguments[1] == "exponent":
        def function(input=..., exponent=..., *more, out=None):
            return call_binary(op, input, exponent, more, out)
    else:
        def function(input=..., other=..., *more, out=None):
            return call_binary(op, input, other, more, out)
    return name_errors(function)


cdef object call_binary(Op op, object a, object b, tuple more, object out):
    if more or b is ...:
        check_count(op.name, 2, more, b)
    if out is not None:
        return call_out(op, (a, b), out)
    result = apply_binary(op, a, b)
    return refused(op, (a, b), None) if result is NotImplemented else result


def make_nary(Op op):
    """For element-wise operations of three and more tensors, or with names of their own."""
    def function(*args, out=None, **kwargs):
        cdef PyObject* given[MAX_INPUTS]
        cdef list tensors
        cdef int i
        if len(args) < op.n_args:
            args = by_position(op, args, kwargs)
        if len(args) != op.n_args or kwargs:
            raise TypeError(wrong_arguments(op.name, op, args, kwargs))
        if out is not None:
            return call_out(op, args, out)
        if all_tensors(args):
            for i in range(op.n_args):
                given[i] = <PyObject*>args[i]
            return bind_elementwise(op, given)
        tensors = operands_of(op, args)
        if tensors is None:
            return refused(op, args, None)
        for i in range(op.n_args):
            given[i] = <PyObject*><object>tensors[i]
        return bind_elementwise(op, given)
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
    if op.arguments == ("input",):
        def function(input=..., *more):
            if more or input is ...:
                check_count(op.name + "_", 1, more, input)
            return write_in_place(op, (input,))
    elif op.arguments == ("input", "exponent"):
        def function(input=..., exponent=..., *more):
            return call_inplace(op, input, exponent, more)
    elif op.arguments == ("input", "other"):
        def function(input=..., other=..., *more):
            return call_inplace(op, input, other, more)
    else:
        def function(*args, **kwargs):
            if kwargs and len(args) < op.n_args:
                args = by_position(op, args, kwargs)
            if len(args) != op.n_args or kwargs:
                raise TypeError(wrong_arguments(op.name + "_", op, args, kwargs))
            return write_in_place(op, args)
    return name_errors(function)


cdef object call_inplace(Op op, object x, object other, tuple more):
    cdef PyObject* args[2]
    if more or other is ...:
        check_count(op.name + "_", 2, more, other)
    if not (isinstance(x, Tensor) and isinstance(other, Tensor)):
        return write_in_place(op, (x, other))
    args[0], args[1] = <PyObject*>x, <PyObject*>other
    return bind_inplace(op, args)


cdef object write_in_place(Op op, tuple given):
    """The tensor that is first, after the operation on it and the other arguments is in it."""
    cdef PyObject* args[MAX_INPUTS]
    cdef list tensors
    cdef int i
    if not isinstance(given[0], Tensor):
        raise TypeError(f"{op.name}_: input must be a Tensor, not {type(given[0]).__name__}")
    for x in given:
        if may_override(x):
            done = overridden(getattr(Tensor, op.name + "_"), given, None)
            if done is not NotImplemented:
                return done
    tensors = as_tensors(op, given)
    for i in range(op.n_args):
        args[i] = <PyObject*><object>tensors[i]
    return bind_inplace(op, args)


cdef str wrong_arguments(str name, Op op, tuple args, dict kwargs):
    """The error for other arguments than those of an element-wise operation."""
    cdef str more = f" and {list(kwargs)}" if kwargs else ""
    return (f"{name}: takes {op.n_args} argument{'' if op.n_args == 1 else 's'} "
            f"({', '.join(op.arguments)}), got {len(args)}{more}")


def make_product(int a_ndim=0, int b_ndim=0, str second="other"):
    """The maker of a product's function, which takes tensors of these numbers of dims (0: any).

    `second` is what PyTorch calls the second tensor.
    """
    def maker(Op op):
        def function(input=None, other=None, *, out=None, **named):
            if other is None and second in named:
                other = named.pop(second)
            if named:
                raise TypeError(f"{op.name}: takes input, {second} and out; got {list(named)}")
            if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
                return refused(op, (input, other), None if out is None else {"out": out})
            if a_ndim:
                check_dims(op.name, input, other, a_ndim, b_ndim)
            if out is None:
                return bind_product(op, input, other)
            if watched:
                return interpreted(op, op.name, (input, other), {"out": out}, plain_product_into,
                                   op)
            return product_into(op.name, input, other, out)
        return name_errors(function)
    return maker


cdef int check_dims(str name, Tensor a, Tensor b, int a_ndim, int b_ndim) except -1:
    if a.ndim_ != a_ndim or b.ndim_ != b_ndim:
        raise RuntimeError(f"{name}: expects tensors of {a_ndim} and {b_ndim} dims, got shapes "
                           f"{tuple(a.shape)} and {tuple(b.shape)}")
    if a_ndim == 3 and a.dims[0] != b.dims[0]:
        raise RuntimeError(
            f"{name}: batch sizes differ: {tuple(a.shape)} @ {tuple(b.shape)}")
    return 0


cdef object plain_product_into(object what, tuple args, dict kwargs):
    return product_into((<Op>what).name, args[0], args[1], kwargs["out"])


cdef object product_into(str name, Tensor a, Tensor b, object out):
    cdef Tensor result
    if a.type != b.type:
        a, b = promoted(a, b)
    result = product(name, a, b)
    if isinstance(out, Tensor) and (<Tensor>out).type != result.type:
        raise RuntimeError(f"{name}: out has dtype {out.dtype} but the result has {result.dtype}")
    return store_out(name, (a, b), result, out)


cdef dict WHOLE = {"dim": None, "keepdim": False}


def make_reduction(Op op):
    """The function of a reduction over any dims whose forward is compiled."""
    cdef object forward = op.forward
    cdef bint takes_dtype = "dtype" in op.attributes
    def function(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None):
        if axis is not None:               # NumPy's names, which PyTorch takes too
            dim = axis
        if keepdims is not None:
            keepdim = keepdims
        if not isinstance(input, Tensor):
            return refused(op, (input,), {
                "dim": dim, "keepdim": keepdim, **({"dtype": dtype} if dtype else {}),
                **({} if out is None else {"out": out})})
        if keepdim is not False and keepdim is not True:
            raise TypeError(f"{op.name}: keepdim must be a bool, got {keepdim!r}")
        if dtype is not None and not takes_dtype:
            raise TypeError(f"{op.name}: takes no dtype")
        if watched:
            return bind(op, (input, dim, keepdim), {
                key: x for key, x in (("dtype", dtype), ("out", out)) if x is not None})
        return run_reduction(op, forward, takes_dtype, input, dim, keepdim, dtype, out)
    return name_errors(function)


cdef inline object run_reduction(Op op, object forward, bint takes_dtype, object input, object dim,
                                 object keepdim, object dtype, object out):
    cdef PyObject* args[1]
    if takes_dtype:
        result = forward(input, dim, keepdim, dtype)
    else:
        result = forward(input, dim, keepdim)
    if out is not None:
        return store_out(op.name, (input,), result, out)
    if mode().grad and requires_grad(<Tensor>input):
        args[0] = <PyObject*>input
        record(op, args, 1, result, WHOLE if dim is None and not keepdim
               else {"dim": dim, "keepdim": keepdim})
    return result


def make_sized(Op op):
    """For operations on one tensor and sizes (or dims), one by one or as a sequence."""
    cdef object forward = op.forward
    cdef str named = op.attributes[0]
    def function(input=None, *sizes, **keyword):
        if keyword:
            if op.name == "view" and not sizes and list(keyword) == ["dtype"]:
                return registry["view_dtype"].function(input, **keyword)
            if sizes or list(keyword) not in ([named], ["size"]):     # PyTorch's name for sizes
                raise TypeError(f"{op.name}: takes {named}, got {list(keyword)}")
            sizes = tuple(keyword.values())
        if len(sizes) == 1 and not PyIndex_Check(sizes[0]):
            if op.name == "view" and isinstance(sizes[0], dtype_type):
                return registry["view_dtype"].function(input, sizes[0])
            sizes = as_sizes(op, sizes[0])
        if not isinstance(input, Tensor):
            return refused(op, (input, sizes), None)
        if watched:
            return bind(op, (input, sizes), None)
        return run_sized(op, forward, input, sizes)
    return function


cdef inline object run_sized(Op op, object forward, object input, object sizes):
    cdef PyObject* args[1]
    cdef Tensor x = forward(input, sizes)
    if mode().grad and requires_grad(<Tensor>input):
        args[0] = <PyObject*>input
        record(op, args, 1, x, {op.attributes[0]: sizes} if (
            op.kept_attributes or mode().forward_mode) else None)
    return x


cdef tuple as_sizes(Op op, object sizes):
    try:
        return items(sizes, MAX_NDIM)
    except TypeError:
        raise TypeError(f"{op.name}: {op.attributes[0]} must be ints, got {sizes!r}") from None


def make_general(Op op):
    """For operations that are not element-wise: checks the tensors, runs `forward`, records."""
    if op.variadic:
        def function(first=..., /, *args, **kwargs):
            if first is ...:
                first = by_position(op, (), kwargs)[0]
            tensors = tuple_of(op, first)
            args = (tensors, *args) if args else (tensors,)
            if not all_tensors(<tuple>tensors):
                return refused(op, args, kwargs)
            return bind(op, args, kwargs)
    else:
        def function(*args, **kwargs):
            cdef int i
            if len(args) < op.n_args:
                args = by_position(op, args, kwargs)
            for i in range(op.n_args):
                if not isinstance(args[i], Tensor):
                    return bind_others(op, args, kwargs)
            return bind(op, args, kwargs)
    return function


cdef object bind_others(Op op, tuple args, dict kwargs):
    """As `bind`, where not all are tensors: numbers and arrays become some."""
    done = stand_in(op, args, kwargs)
    return bind(op, convert_arguments(op, args), kwargs) if done is NotImplemented else done


cdef object bind(Op op, tuple args, dict kwargs):
    """Does an operation on canonical arguments: the door for all that is not element-wise."""
    if watched:
        return interpreted(op, op.name, args, kwargs, plain_general, op)
    return run_general(op, args, kwargs)


cdef object plain_general(object what, tuple args, dict kwargs):
    return run_general(<Op>what, args, kwargs)


cdef object run_general(Op op, tuple args, dict kwargs):
    """Runs and records an operation, or stores what it gives in `out`."""
    cdef object out
    if kwargs and "out" in kwargs:
        if not op.takes_out:
            raise TypeError(f"{op.name}: takes no out")
        out = kwargs.pop("out")
        if out is not None:
            return store_results(op.name, <tuple>args[0] if op.variadic else args,
                                 op.forward(*args, **kwargs), out)
    try:
        return apply_general(op, args, kwargs)
    except BaseException as error:
        raise shown(error, op.function, kwargs)


cdef object store_results(str name, tuple inputs, object result, object out):
    """Puts the result of an operation, or each of its results, into `out`."""
    if isinstance(result, Tensor):
        return store_out(name, inputs, result, out)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{name}: out must be a tuple of {len(result)} Tensors")
    store_outs(name, inputs, tuple(result), tuple(out))
    return type(result)(*out) if hasattr(result, "_fields") else tuple(out)
