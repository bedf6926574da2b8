"""Dispatch of calls that something intercepts or observes, with parsed arguments.

Each way to call an operation (operator, method, function, in place, `out=`) parses its arguments
and tests `watched`, one integer. If that is 0 the call runs directly; otherwise it comes here.
"""

from tensorlib._core.base cimport watch
from tensorlib._core.base.region cimport makes_meta
from tensorlib._core.base.watch cimport watched
from tensorlib._core.interpreters.foreign cimport overridden, overridden_form
from tensorlib._core.interpreters.on_meta cimport is_for_meta, with_elements, without_elements
from tensorlib._core.interpreters.profile cimport begin_event, end_event, note_result, observing
from tensorlib._core.interpreters.stack cimport called, offered, plain_call
from tensorlib._core.tensor.tensor cimport Tensor


cdef object interpreted(object op, str name, tuple args, dict kwargs, plain_call run, object what,
                        int n=-1):
    """The result of a call that may be intercepted: by interpreters, the device `meta`, a profile.

    op: the record; None for what is not offered to interpreters as a whole. name: of the form that
    was called. `args` are canonical: tensors, then attributes. If nothing intercepts the call,
    `run(what, args, kwargs)` executes it. n: how many arguments decide the device; -1: all.
    """
    if watched & watch.OVERRIDES and op is not None:
        done = overridden_form(op, name, args, kwargs)
        if done is not NotImplemented:
            return done
    if watched & watch.INTERPRETERS and (op is not None or name == "backward"):
        done = offered(op, name, args, kwargs)
        if done is not NotImplemented:
            return done
    return executed(op, name, args, kwargs, run, what, n)


cdef object offered_method(object op, str name, tuple args, dict kwargs):
    """The result of a method of Tensor without a record, such as `detach`, by a subclass or an
    interpreter; NotImplemented if neither handles it."""
    if watched & watch.OVERRIDES:
        done = overridden(getattr(Tensor, name), args, kwargs)
        if done is not NotImplemented:
            return done
    return offered(op, name, args, kwargs)


cdef object called_whole(object function, tuple args, dict kwargs):
    """The result of a public function by an interpreter or an overriding class, before the
    arguments are checked; NotImplemented if none handles it."""
    done = called(function, args, kwargs) if watched & watch.FUNCTIONS else NotImplemented
    return overridden(function, args, kwargs) if done is NotImplemented else done


cdef object executed(object op, str name, tuple args, dict kwargs, plain_call run, object what,
                     int n=-1):
    """The result of a call that no interpreter handles: profiled, and on `meta` if that applies."""
    cdef list event = None
    if observing:
        event = begin_event(form_of(op, name, kwargs), tensors_of(op, args))
    try:
        if watched & watch.META and is_for_meta(args, kwargs, n):
            result = without_elements(run, what, args, kwargs)
        elif makes_meta() and (op is None or op.arguments):
            result = with_elements(run, what, args, kwargs)
        else:
            result = run(what, args, kwargs)
        note_result(event, result)
        return result
    finally:
        end_event(event)


cdef str form_of(object op, str name, dict kwargs):
    """The name of a call in a profile: element-wise ones with `out=` count as in-place ones."""
    return name + "_" if kwargs and "out" in kwargs and op is not None and op.elementwise else name


cdef object tensors_of(object op, tuple args):
    """The arguments whose shapes a profile records: the tensors of the operation."""
    if op is None or op.linearity == "composite":
        return ()
    return args[0] if op.variadic else args[:len(op.arguments)]
