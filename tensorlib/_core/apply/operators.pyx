"""Calls of operations: operator slots, and the compiled function of each `Op`.

Each function is made once, as a closure over its record; hot operations run no Python frame.
"""

from numbers import Number

from cpython.number cimport PyIndex_Check
from cpython.object cimport PyObject

from tensorlib._core.apply.elementwise cimport apply_binary, bind_elementwise, apply_unary
from tensorlib._core.apply.inplace cimport bind_inplace
from tensorlib._core.apply.out_argument cimport apply_out
from tensorlib._core.arrays.operands cimport (
    all_tensors, as_tensors, convert_arguments, operand, operands_of, refused, require_factor,
    tuple_of,
)
from tensorlib._core.base.dtypes cimport (
    COMPLEX_KIND, FLOAT_KIND, INTEGER_KIND, KIND, dtype_object,
)
from tensorlib._core.base.shape cimport MAX_NDIM, items
from tensorlib._core.base.upcalls cimport MATMUL, OpSlot, upcalls
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.op cimport Op
from tensorlib._core.interpreters.interception cimport interpreted
from tensorlib._core.interpreters.foreign cimport (
    call_proxy, call_proxy_in_place, call_runs_plain, is_tensor_like, may_override, overridden,
    runs_plain, to_write,
)
from tensorlib._core.interpreters.recording cimport apply_general, record, refuse_complex
from tensorlib._core.products.product cimport bind_product, product, promoted
from tensorlib._core.tensor.tensor cimport Tensor, requires_grad
from tensorlib._core.tiles.program cimport MAX_INPUTS

from tensorlib._core.apply.out_argument import store_out, store_outs
from tensorlib._core.base.dtypes import dtype as dtype_type
from tensorlib._core.base.call_wrappers import name_errors
from tensorlib._core.base.error_names import renamed, shown, with_remedy
from tensorlib._core.base.warned import warn_of
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
    cdef Tensor x = operand(op, 1, b, a)
    if x is None:
        if is_tensor_like(b):
            to_write(op.name, "", b)      # refuses
        return NotImplemented
    args[0], args[1] = <PyObject*>a, <PyObject*>x
    return bind_inplace(op, args)


# ---- compiled functions --------------------------------------------------------------------------

# Errors for a wrong number of arguments say which are expected.

cdef int check_count(str name, int wanted, tuple more, object last) except -1:
    """Raises unless the arguments up to `last`, and no more, were given."""
    if more or last is ...:
        raise TypeError(f"{name}: takes {wanted} {'argument' if wanted == 1 else 'arguments'}, got "
                        + (f"{wanted + len(more)}" if more else "fewer"))
    return 0


cdef object call_out(Op op, tuple args, object out):
    """An element-wise operation with `out=`."""
    for x in args:
        if may_override(x):
            done = overridden(op.function, args, {"out": out})
            if done is not NotImplemented:
                return done
    if watched:
        as_tensors(op, args)                   # raises for invalid operands
        return interpreted(op, op.name, args, {"out": out}, plain_out, op)
    return apply_out(op, args, out)


cdef object plain_out(object what, tuple args, dict kwargs):
    return apply_out(<Op>what, args, kwargs["out"])


def make_elementwise(Op op, bint in_place=False, str option=None, convert=None):
    """The function of an element-wise operation or, `in_place`, its method `NAME_`.

    Its arguments have the names in the record. option: a keyword of a binary operation, one of
    `OPTIONS`; calls with it are converted by `convert`, see `call_optioned`.
    """
    if op.arguments == ("input",):
        def function(input=..., *more, out=None):
            if more or input is ...:
                check_count(form_name(op, in_place), 1, more, input)
            if in_place:
                return write_in_place(op, (input,), out)
            return apply_unary(op, input) if out is None else call_out(op, (input,), out)
    elif op.arguments == ("input", "exponent"):
        def function(input=..., exponent=..., *more, out=None):
            return call_binary(op, in_place, input, exponent, more, out)
    elif op.arguments != ("input", "other"):
        def function(*args, out=None, **kwargs):
            return call_nary(op, in_place, args, kwargs, out)
        return function
    elif option == "alpha":
        def function(input=..., other=..., *more, alpha=..., out=None):
            return call_optioned(op, public, convert, in_place, input, other, more, out, option,
                                 alpha)
    elif option == "rounding_mode":
        def function(input=..., other=..., *more, rounding_mode=..., out=None):
            return call_optioned(op, public, convert, in_place, input, other, more, out, option,
                                 rounding_mode)
    else:
        def function(input=..., other=..., *more, out=None):
            return call_binary(op, in_place, input, other, more, out)
    public = name_errors(function)
    return public


OPTIONS = ("alpha", "rounding_mode")


cdef str form_name(Op op, bint in_place):
    return op.name + "_" if in_place else op.name


cdef object call_binary(Op op, bint in_place, object a, object b, tuple more, object out):
    cdef PyObject* args[2]
    if more or b is ...:
        check_count(form_name(op, in_place), 2, more, b)
    if in_place:
        if out is not None or not (isinstance(a, Tensor) and isinstance(b, Tensor)):
            return write_in_place(op, (a, b), out)
        args[0], args[1] = <PyObject*>a, <PyObject*>b
        return bind_inplace(op, args)
    if out is not None:
        return call_out(op, (a, b), out)
    result = apply_binary(op, a, b)
    return refused(op, (a, b), None) if result is NotImplemented else result


cdef object call_nary(Op op, bint in_place, tuple args, dict kwargs, object out):
    """A call with three or more tensors, or with names other than `input` and `other`."""
    cdef PyObject* given[MAX_INPUTS]
    cdef list tensors
    cdef int i
    if kwargs and len(args) < op.n_args:
        args = by_position(op, args, kwargs)
    if len(args) != op.n_args or kwargs:
        raise TypeError(wrong_arguments(form_name(op, in_place), op, args, kwargs))
    if in_place:
        return write_in_place(op, args, out)
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


cdef tuple by_position(Op op, tuple args, dict kwargs):
    """Moves tensor arguments that were given by keyword to their positions."""
    cdef list placed = list(args)
    for name in op.arguments[len(args):]:
        if name not in kwargs:
            raise TypeError(f"{op.name}: missing argument {name!r}")
        placed.append(kwargs.pop(name))
    return tuple(placed)


cdef object call_optioned(Op op, object public, object convert, bint in_place, object a, object b,
                          tuple more, object out, str option, object value):
    """A call of a binary operation; with the option, converted by `convert`."""
    cdef object given
    if option == "alpha" and value is ... and len(more) == 1 and is_number(b) and (
            is_tensor_like(more[0])):
        warn_of_place(form_name(op, in_place), "alpha")
        value, b, more = b, more[0], ()
    if value is not ...:
        if more or b is ...:
            check_count(form_name(op, in_place), 2, more, b)
        if may_override(a) or may_override(b):
            given = overridden(public, (a, b), {option: value, **({} if out is None else {
                "out": out})})
            if given is not NotImplemented:
                return given
        if (option == "alpha" and out is None and value != 1 and type(value) in (float, int)
                and isinstance(a, Tensor) and isinstance(b, Tensor)
                and (not watched or runs_plain(a) and runs_plain(b))
                and (<Tensor>a).type == (<Tensor>b).type
                and KIND[(<Tensor>a).type] >= (INTEGER_KIND if type(value) is int else FLOAT_KIND)
                and hasattr(convert, "by_factor")):        # which operations from outside may lack
            return add_times(form_name(op, in_place), convert.by_factor, in_place, a, b, value)
        if not in_place and isinstance(a, Number):        # `div(7, 2, rounding_mode="floor")`
            a = operand(op, 0, a, <Tensor>b if isinstance(b, Tensor) else None)
        given = convert(a, b, **{option: value})
        if type(given) is list:
            return run_instead(op.name, <list>given, in_place, out)
        a, b = <tuple>given
    return call_binary(op, in_place, a, b, more, out)


cdef object add_times(str name, tuple by_factor, bint in_place, object a, object b, object alpha):
    """A fast path for `convert`: a + alpha * b, or a - alpha * b, in one pass.

    by_factor: the record of the operation, and whether alpha is negated.
    """
    require_factor(name, "alpha", alpha, dtype_object((<Tensor>a).type))
    cdef Op op = <Op>by_factor[0]
    cdef Tensor factor = operand(op, 2, -alpha if by_factor[1] else alpha, a)
    cdef PyObject* args[3]
    args[0], args[1], args[2] = <PyObject*>a, <PyObject*>b, <PyObject*>factor
    try:
        return bind_inplace(op, args) if in_place else bind_elementwise(op, args)
    except Exception as error:
        raise renamed(renamed(error, form_name(op, in_place), name), op.name, name)


cdef bint is_number(object x) except -1:
    """Whether something can be a factor: a number, or a tensor without dims."""
    return (<Tensor>x).ndim_ == 0 if isinstance(x, Tensor) else isinstance(x, Number)


cdef int warn_of_place(str name, str option) except -1:
    """Warns of a number next to the first tensor, where older versions of PyTorch took it."""
    warn_of(f"{name}: a number between the tensors is deprecated, give it as {option}=")
    return 0


cdef object run_instead(str name, list given, bint in_place, object out):
    """Runs another operation on a tensor, in the form that was called: plain, in place or with
    `out=`."""
    if not is_tensor_like(given[1]):
        raise TypeError(f"{name}: input must be a Tensor, not {with_remedy(given[1])}")
    function = getattr(given[0], "inplace", None) if in_place else given[0]
    if function is None:
        raise TypeError(f"{name}_: takes no arguments that ask for another operation")
    try:
        return function(*given[1:]) if out is None else function(*given[1:], out=out)
    except Exception as error:
        raise renamed(renamed(error, function.__name__, name), given[0].__name__, name)


cdef object write_in_place(Op op, tuple given, object out):
    """The first tensor, after the result of the operation was written to it."""
    cdef PyObject* args[MAX_INPUTS]
    cdef list tensors
    cdef int i
    if out is not None:
        raise TypeError(f"{op.name}_: takes no out: the result goes into the tensor itself")
    if not isinstance(given[0], Tensor):
        return call_proxy_in_place(f"{op.name}_", op.function, given, {})
    for x in given:
        if may_override(x):
            public = getattr(Tensor, op.name + "_", None)
            if public is None:      # of a call with an option, which was dispatched already
                break
            done = overridden(public, given, None)
            if done is not NotImplemented:
                return done
    tensors = as_tensors(op, given)
    for i in range(op.n_args):
        args[i] = <PyObject*><object>tensors[i]
    return bind_inplace(op, args)


cdef str wrong_arguments(str name, Op op, tuple args, dict kwargs):
    """The error for wrong arguments of an element-wise operation."""
    cdef str more = f" and {list(kwargs)}" if kwargs else ""
    return (f"{name}: takes {op.n_args} argument{'' if op.n_args == 1 else 's'} "
            f"({', '.join(op.arguments)}), got {len(args)}{more}")


def make_product(int a_ndim=0, int b_ndim=0, str second="other"):
    """The maker of a product's function, for tensors with these numbers of dims (0: any).

    `second` is PyTorch's name of the second tensor.
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
    """The function of a reduction over any dims with a compiled forward function."""
    cdef object forward = op.forward
    cdef bint takes_dtype = "dtype" in op.attributes
    def function(input, dim=None, keepdim=False, *, dtype=None, out=None):
        if not isinstance(input, Tensor):
            return refused(op, (input,), {                 # the given arguments only
                key: x for key, x, usual in (("dim", dim, None), ("keepdim", keepdim, False),
                                             ("dtype", dtype, None), ("out", out, None))
                if x is not usual})
        if keepdim is not False and keepdim is not True:
            raise TypeError(f"{op.name}: keepdim must be a bool, got {keepdim!r}")
        if dtype is not None and not takes_dtype:
            raise TypeError(f"{op.name}: takes no dtype")
        if watched and not call_runs_plain((input, dim), None):
            return bind(op, (input, dim, keepdim), {
                key: x for key, x in (("dtype", dtype), ("out", out)) if x is not None})
        return run_reduction(op, forward, takes_dtype, input, dim, keepdim, dtype, out)
    return name_errors(function)


cdef inline object run_reduction(Op op, object forward, bint takes_dtype, object input, object dim,
                                 object keepdim, object dtype, object out):
    cdef PyObject* args[1]
    if not op.takes_complex and KIND[(<Tensor?>input).type] == COMPLEX_KIND:
        refuse_complex(op, (input,))
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
        elif not sizes:
            raise TypeError(f"{op.name}: takes {named}, got none")
        if len(sizes) == 1 and not PyIndex_Check(sizes[0]):
            if op.name == "view" and isinstance(sizes[0], dtype_type):
                return registry["view_dtype"].function(input, sizes[0])
            sizes = as_sizes(op, sizes[0])
        if not isinstance(input, Tensor):
            return refused(op, (input, sizes), None)
        if watched and not call_runs_plain((input, sizes), None):
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
    done = call_proxy(op, args, kwargs)
    return bind(op, convert_arguments(op, args), kwargs) if done is NotImplemented else done


cdef object bind(Op op, tuple args, dict kwargs):
    """The entry point of operations that are not element-wise, with canonical arguments."""
    if watched and not call_runs_plain(args, kwargs):
        return interpreted(op, op.name, args, kwargs, plain_general, op)
    return run_general(op, args, kwargs)


cdef object plain_general(object what, tuple args, dict kwargs):
    return run_general(<Op>what, args, kwargs)


cdef object run_general(Op op, tuple args, dict kwargs):
    """Runs and records an operation, or stores its result in `out`."""
    cdef object out = None
    if kwargs and "out" in kwargs:
        if not op.takes_out:
            raise TypeError(f"{op.name}: takes no out")
        out = kwargs.pop("out")
        if not op.takes_complex:
            refuse_complex(op, tuple(args[0]) if op.variadic else args)
    try:
        if out is not None:
            return store_results(op.name, <tuple>args[0] if op.variadic else args,
                                 op.forward(*args, **kwargs), out)
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
