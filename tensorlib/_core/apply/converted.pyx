"""Wrappers of the functions of operations: they check that arguments are tensors, and convert calls
with more arguments than the operation has.

As in operators.pyx each is made once, as a closure over the function that it calls.
"""

from numbers import Number

from cpython.object cimport PyObject_Call

from tensorlib._core.apply.halves cimport widened
from tensorlib._core.apply.operators cimport (
    is_number, run_instead, store_results, warn_of_place,
)
from tensorlib._core.base cimport watch
from tensorlib._core.base.dtypes cimport dtype as DType, dtype_object
from tensorlib._core.base.watch cimport watched
from tensorlib._core.interpreters.interception cimport interpreted
from tensorlib._core.interpreters.foreign cimport (
    call_composite_proxy, call_runs_plain, is_tensor_like, may_override, overridden,
)
from tensorlib._core.tensor.tensor cimport Tensor

from tensorlib._core.base.device import CPU, device as Device
from tensorlib._core.base.call_wrappers import name_errors
from tensorlib._core.base.error_names import renamed, shown, with_remedy
from tensorlib._core.graph.op import declared


def make_checked(str name, dict places, function, bint takes_out=False, op=None,
                 str between=None, bint widens=False, tuple factors=None):
    """A Python function behind a check that the arguments at these positions (by name) are Tensors.

    op: the record, if a capture is offered the function as a whole. between: the keyword of a
    number that may be passed after the first tensor, as in older versions of PyTorch. widens: half
    types are computed in float32. factors: the keywords of a number that may be passed before or
    after the first tensor, also as in older versions, and of one after both.
    """
    def checked(*args, **kwargs):
        cdef bint seen = watched and not call_runs_plain(args, kwargs)
        if between is not None and len(args) == len(places) + 1 and between not in kwargs and (
                is_number(args[1]) and isinstance(args[2], Tensor)):
            warn_of_place(name, between)
            kwargs[between] = args[1]
            args = (args[0], *args[2:])
        if seen:
            done = overridden(public, args, kwargs)
            if done is not NotImplemented:
                return done
        if not are_tensors(places, args, kwargs):
            if factors is not None and has_numbers_first(places, factors, args, kwargs):
                for keyword, x in zip(factors, [x for x in args if isinstance(x, Number)]):
                    warn_of_place(name, keyword)
                    kwargs[keyword] = x
                return public(*[x for x in args if not isinstance(x, Number)], **kwargs)
            done = instead_of_tensors(public, name, places, args, kwargs)
            if done is not NotImplemented:
                return done
        if seen:
            return interpreted(op, name, args, kwargs, plain_function,
                               (name, function, takes_out, widens))
        return run_function(name, function, takes_out, widens, args, kwargs)

    def checked_first(first=..., /, *args, **kwargs):
        if watched:
            return checked(*(() if first is ... else (first, *args)), **kwargs)
        if not isinstance(first, Tensor):
            done = instead_of_tensors(public, name, places,
                                      () if first is ... else (first, *args), kwargs)
            if done is not NotImplemented:
                return done
        try:
            if first is ...:
                return function(**kwargs)
            if widens:
                return widened(function, (first, *args), kwargs)
            if kwargs:
                return function(first, *args, **kwargs)
            return function(first, *args) if args else function(first)
        except BaseException as error:
            raise shown(of_the_whole(error, name), function, kwargs)

    public = name_errors(
        checked if takes_out or tuple(places.values()) != (0,) else checked_first)
    return public


cdef object plain_function(object what, tuple args, dict kwargs):
    name, function, takes_out, widens = what
    return run_function(name, function, takes_out, widens, args, {} if kwargs is None else kwargs)


cdef inline object run_function(str name, object function, bint takes_out, bint widens, tuple args,
                                dict kwargs):
    """The result of a function in Python, or its `out` with the result."""
    cdef object out = None
    if takes_out and "out" in kwargs:
        out = kwargs.pop("out")
    try:
        if widens:
            result = widened(function, args, kwargs)
        else:
            result = function(*args, **kwargs) if kwargs else function(*args)
    except BaseException as error:
        raise shown(of_the_whole(error, name), function, kwargs)
    if out is None:
        return result
    return store_results(name, (result,) if isinstance(result, Tensor) else tuple(result),
                         result, out)


cdef object of_the_whole(error, str name):
    """An error of an operation that a function calls, with the name of the function."""
    cdef str part = str(error).partition(":")[0]
    return renamed(error, part, name) if part.removesuffix("_") in declared else error


cdef bint has_numbers_first(dict places, tuple factors, tuple args, dict kwargs) except -1:
    """Whether numbers precede or follow the first tensor, as factors in older versions."""
    cdef list numbers = [i for i, x in enumerate(args) if isinstance(x, Number)]
    if len(args) - len(numbers) != len(places) or any(x in kwargs for x in factors):
        return False
    return numbers in ([0], [1], [0, 2], [1, 2])


cdef bint are_tensors(dict places, tuple args, dict kwargs) except -1:
    """Whether the arguments at these positions are Tensors, and no other argument overrides."""
    cdef Py_ssize_t place
    for argument, place in places.items():
        x = args[place] if place < len(args) else kwargs.get(argument)
        if not isinstance(x, Tensor):
            return False
    for x in args:
        if is_proxy_argument(x):
            return False
    for x in kwargs.values():
        if is_proxy_argument(x):
            return False
    return True


cdef inline bint is_proxy_argument(object x) except -1:
    """Whether an argument that need not be a Tensor is a proxy."""
    if x is None or isinstance(x, (Tensor, int, float, str, tuple, list)):
        return False
    return is_tensor_like(x)


cdef object instead_of_tensors(function, str name, dict places, tuple args, dict kwargs):
    """The result of a call with arguments other than Tensors by their class.

    NotImplemented if the function itself is to run. Raises: TypeError for an argument that should
    be a Tensor.
    """
    done = overridden(function, args, kwargs)
    if done is not NotImplemented:
        return done
    for argument, place in places.items():
        x = args[place] if place < len(args) else kwargs.get(argument)
        if not is_tensor_like(x):
            raise TypeError(f"{name}: {argument} must be a Tensor, not {with_remedy(x)}")
    return call_composite_proxy(function, args, kwargs)


def cast_at_once(call, tuple args, dict kwargs):
    """The result of `to` for a dtype, a tensor or the CPU; NotImplemented for other arguments.

    call: the function of a tensor and a dtype, and of whether it is copied.
    """
    cdef object x, asked, kind
    if len(args) == 2 and (not kwargs or len(kwargs) == 1 and "non_blocking" in kwargs):
        asked = args[1]
    elif len(args) == 1 and len(kwargs) == 1:
        asked = kwargs.get("dtype")
        if type(asked) is not DType:
            asked = kwargs.get("device")
            if isinstance(asked, (Tensor, DType)):
                return NotImplemented
    else:
        return NotImplemented
    x, kind = args[0], type(asked)
    if not isinstance(x, Tensor):
        return NotImplemented
    if kind is DType:
        pass
    elif kind is Tensor and asked.device is x.device:
        asked = dtype_object((<Tensor>asked).type)
    elif (asked == "cpu" if kind is str else kind is Device and asked.type == "cpu") and (
            x.device is CPU):
        return x
    else:
        return NotImplemented
    return x if dtype_object((<Tensor>x).type) is asked else call(x, asked, False)


def make_converted(str name, dict places, convert, call, int least, int most, bint in_place,
                   alone, at_once=None):
    """`call`, the function of an operation, with the arguments of a call converted by `convert`.

    `convert` takes from `least` to `most` arguments by position, of which those at `places` are
    Tensors. It is skipped for calls with `most` arguments, if it checks none of them; for one
    tensor, if there is a function `alone`; and for calls that `at_once(call, args, kwargs)`
    handles, which returns NotImplemented for others.
    """
    cdef bint checks = bool(places), first_alone = tuple(places.values()) == (0,)
    def function(*args, **kwargs):
        cdef object out = None, given
        cdef Py_ssize_t count = len(<tuple>args)
        if at_once is not None and (not watched or call_runs_plain(args, kwargs)):
            given = at_once(call, args, kwargs)
            if given is not NotImplemented:
                return given
        if count and may_override((<tuple>args)[0]):
            given = overridden(public, args, kwargs)
            if given is not NotImplemented:
                return given
        if not kwargs and count == most and not checks:
            return call(*args)
        if count > most or not kwargs and count < least:
            bound = "" if least == most else "at least " if count < least else "at most "
            raise TypeError(f"{name}: takes {bound}{least if count < least else most} arguments, "
                            f"got {count}")
        if checks and not (first_alone and count and isinstance((<tuple>args)[0], Tensor)):
            if not are_tensors(places, args, kwargs):
                given = instead_of_tensors(public, name, places, args, kwargs)
                if given is not NotImplemented:
                    return given
        if not in_place and "out" in kwargs:
            out = kwargs.pop("out")
        try:
            given = PyObject_Call(convert, args, kwargs)       # does not copy the keywords
        except BaseException as error:
            raise shown(error, convert, kwargs)
        if type(given) is list:
            return run_instead(name, <list>given, in_place, out)
        if in_place and args and given[0] is not args[0]:
            raise RuntimeError(f"{name}: its convert made another of the tensor to be written")
        return call(*given) if out is None else call(*given, out=out)

    def function_or_alone(first=..., /, *args, **kwargs):
        if first is ...:
            return function(**kwargs)
        if args or kwargs or watched & watch.OVERRIDES:
            return function(first, *args, **kwargs)
        return alone(first)

    public = function if alone is None else function_or_alone
    return public
