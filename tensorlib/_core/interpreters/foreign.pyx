"""Classes that implement operations themselves: proxies of tensors, and subclasses of Tensor.

A proxy is used in place of a Tensor: an example of a batch, a variable of a program. Its class has
`__tensor_call__`. Other libraries' classes have `__torch_function__`, PyTorch's protocol.
"""

from tensorlib._core.base cimport watch
from tensorlib._core.base.dtypes cimport dtype as DType
from tensorlib._core.base.locks cimport add_bits
from tensorlib._core.base.recursion cimport enter, leave
from tensorlib._core.base.region cimport computes_nothing
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.op cimport Op
from tensorlib._core.interpreters.stack cimport effect, numbers_as_such
from tensorlib._core.tensor.meta cimport is_meta
from tensorlib._core.tensor.tensor cimport Tensor, alias, become, requires_grad

from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import attach

cdef extern from * nogil:
    """
    static __thread int tensors_are_plain = 0;     /* whether subclasses of Tensor are not asked */
    static int* plain_flag(void) { return &tensors_are_plain; }
    """
    int* plain_flag()

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    static int class_has(PyObject* value, PyObject* name) {
        PyObject* found = _PyType_LookupRef(Py_TYPE(value), name);
        Py_XDECREF(found);
        return found != NULL;
    }
    #else
    static int class_has(PyObject* value, PyObject* name) {
        return _PyType_Lookup(Py_TYPE(value), name) != NULL;
    }
    #endif
    """
    bint class_has(object value, str name)    # `hasattr` would raise and catch an error


# The class method `__tensor_call__(op, args, kwargs)` of a proxy runs an operation that has proxies
# among its arguments. It is looked up only where an operation would otherwise reject the argument,
# so calls with Tensors do not pay for it. For a composed operation it gets the arguments of the
# call; if it returns NotImplemented, the operation's formula or function runs.
# `x.proxied()` is the tensor behind a proxy (of an example, the whole batch), `x.like()` a tensor
# of the proxy's own shape and dtype, and `x.proxy_of(y)` a proxy of another tensor `y`.

cpdef bint is_proxy(object value):
    """Whether a value is a proxy."""
    return not isinstance(value, Tensor) and class_has(value, "__tensor_call__")


def is_tensor(value):
    """Whether a value is a Tensor or a proxy."""
    return is_tensor_like(value)


def runs_in_parts(values):
    """Whether a composed operation on `values` must run as the operations that it is composed of.

    Only these have the rules that forward mode and proxies need.
    """
    return mode().forward_mode or any([is_proxy(x) for x in values])


def needs_formula(values):
    """Whether a fused operation must run on `values` by its formula: as `runs_in_parts`, except
    that a program records the fused call, as on tensors."""
    return mode().forward_mode or any([
        is_proxy(x) and not getattr(x, "is_noted", False) for x in values])


def elements_known(*values):
    """Whether the elements of all values can be read: none is on `meta` or a proxy."""
    if computes_nothing():
        return False
    for value in values:
        if not isinstance(value, Tensor) or is_meta(<Tensor>value):
            return False
    return True


cdef bint is_read_alone(object value) noexcept:
    """Whether a value is a Tensor whose elements are known, and nothing observes operations."""
    if watch.watched and (watch.watched & ~(watch.OVERRIDES | watch.META)
                          or type(value) is not Tensor):
        return False
    return isinstance(value, Tensor) and not (computes_nothing() or is_meta(<Tensor>value))


def is_looked_at_alone(value):
    """Whether a value is a Tensor outside of a graph whose elements are known, and nothing
    observes operations."""
    return is_read_alone(value) and not requires_grad(<Tensor>value)


cpdef object proxied(object value):
    """The tensor behind a proxy; a Tensor itself."""
    return value.proxied() if is_proxy(value) else value


cpdef object as_proxy(object like, object whole):
    """A proxy of the tensor `whole`, of the kind of `like`; `whole` itself if that is a Tensor."""
    return whole if isinstance(like, Tensor) else like.proxy_of(whole)


cdef Tensor representative(str name, object value, bint whole):
    """A Tensor itself; for a proxy a tensor of its shape or, with `whole`, of the one behind it.

    Raises: TypeError for other values.
    """
    if isinstance(value, Tensor):
        return <Tensor>value
    if not is_proxy(value):
        raise TypeError(f"{name}: input must be a Tensor, not {type_name(value)}")
    found = value.proxied() if whole else value.like()
    return <Tensor?>(found.like() if is_proxy(found) else found)


cdef object call_proxy(Op op, tuple args, dict kwargs):
    """The result of an operation by a proxy among its arguments; NotImplemented without one."""
    for value in args:
        for part in (value if isinstance(value, (tuple, list)) else (value,)):
            if is_proxy(part):
                return type(part).__tensor_call__(op, args, kwargs or {})
    return overridden(op.function, args, kwargs)


cdef object call_composite_proxy(object function, tuple args, dict kwargs):
    """The result of a composed public function for a proxy, by a rule of the proxy's class or the
    formula of the function; NotImplemented without either."""
    cdef Op op = getattr(function, "op", None)
    if op is None or op.linearity != "composite":
        return NotImplemented
    for value in (*args, *kwargs.values()):
        if is_proxy(value):
            done = type(value).__tensor_call__(op, args, kwargs)
            if done is NotImplemented and op.formula is not None:
                done = op.formula(*args, **kwargs)
            return done
    return NotImplemented


cdef object call_proxy_in_place(str name, function, tuple args, dict kwargs):
    """The first argument, a proxy, after the result of a function was written to it.

    Raises: TypeError if it cannot be written to.
    """
    write = getattr(type(args[0]), "overwritten_by", None)
    if write is None:
        raise TypeError(f"{name}: input must be a Tensor, not {type_name(args[0])}")
    return write(args[0], function, args[1:], kwargs)


cdef Tensor to_write(str name, str argument, object value):
    """A value that must be a Tensor, since its elements are to be written to another one.

    Raises: RuntimeError for a proxy, TypeError for other values.
    """
    if isinstance(value, Tensor):
        return <Tensor>value
    if not is_proxy(value):
        raise TypeError(f"{name}: {argument}, not {type_name(value)}")
    why = getattr(type(value), "no_write", "vmap: a tensor that all examples of a batch share "
                  "can't be written in place or by out= with a value that differs between them")
    raise RuntimeError(f"{name}: {why}; use the form that returns a new tensor")


# ---- PyTorch's protocol --------------------------------------------------------------------------

cpdef bint overrides(object value):
    """Whether the class of a value overrides operations by `__torch_function__`.

    That of PyTorch's own Tensor does not count: it would call our function again, endlessly.
    """
    if type(value) is Tensor or isinstance(value, Tensor) and plain_flag()[0]:
        return False
    if not class_has(value, "__torch_function__"):
        return False
    found = type(value).__torch_function__
    return found is not None and found is not refuse_override and not is_of_pytorch(value)


cdef bint any_overrides(tuple values) except -1:
    """Whether the class of a value, or of one in a sequence, overrides operations."""
    for value in values:
        if type(value) is Tensor:
            continue
        if isinstance(value, (tuple, list)):
            for part in value:
                if type(part) is not Tensor and overrides(part):
                    return True
        elif overrides(value):
            return True
    return False


cdef bint any_asks(PyObject* const* args, Py_ssize_t n) noexcept:
    """Whether a value, or one in a sequence among the values, is not a Tensor and has a
    `__torch_function__`."""
    cdef Py_ssize_t i
    for i in range(n):
        value = <object>args[i]
        if type(value) is Tensor:
            continue
        if isinstance(value, (tuple, list)):
            for part in value:
                if not isinstance(part, Tensor) and class_has(part, "__torch_function__"):
                    return True
        elif not isinstance(value, Tensor) and class_has(value, "__torch_function__"):
            return True
    return False


cdef bint is_of_pytorch(object value) except -1:
    """Whether a value is a Tensor of PyTorch, without importing that.

    Our Tensor is named `torch.Tensor` where the library is imported under PyTorch's name.
    """
    if isinstance(value, Tensor):
        return False
    for kind in type(value).__mro__:
        if kind.__module__ == "torch" and kind.__name__ == "Tensor":
            return True
    return False


def overriding(values):
    """The values, also in sequences, whose classes override: one per class, subclasses first."""
    cdef list found = []
    for value in values:
        for part in (value if isinstance(value, (tuple, list)) else (value,)):
            if not overrides(part) or type(part) in [type(x) for x in found]:
                continue
            place = 0
            while place < len(found) and not issubclass(type(part), type(found[place])):
                place += 1
            found.insert(place, part)
    return found


cpdef object overridden(object function, tuple args, dict kwargs):
    """The result of a public function by the `__torch_function__` of an argument.

    NotImplemented if no class overrides. Raises: TypeError if all of them decline.
    """
    cdef tuple given = (*args, *kwargs.values()) if kwargs else args
    if not any_overrides(given):
        return NotImplemented
    return dispatched(function, overriding(given), args, kwargs or {})


cdef object overridden_like(function, tuple args, object dtype, object layout, object device,
                            object pin_memory, object requires_grad, object memory_format,
                            object generator=None):
    """The result of a function such as `zeros_like` by a class with `__torch_function__`, which
    gets the options that were given; NotImplemented without such a class."""
    options = {"dtype": dtype, "layout": layout, "device": device, "pin_memory": pin_memory or None,
               "requires_grad": requires_grad or None, "memory_format": memory_format,
               "generator": generator}
    return overridden(function, args, {
        name: value for name, value in options.items() if value is not None})


# Functions that may be called in several forms, each with a function of the arguments that gives
# those of the form that PyTorch hands to `__torch_function__`.
forms = {}


def in_one_form(function, args):
    """The arguments of a call as `__torch_function__` gets them."""
    form = forms.get(function)
    return args if form is None else form(*args)


def dispatched(function, relevant, args, kwargs):
    """The result of a call by the first of the values `relevant` that does not decline."""
    args = in_one_form(function, args)
    types = tuple([type(x) for x in relevant])
    for value in relevant:
        result = type(value).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(f"no implementation found for '{function.__module__}.{function.__name__}' on "
                    f"types that implement __torch_function__: {list(types)}")


cdef object overridden_form(object op, str name, tuple args, dict kwargs):
    """`overridden` for a call in canonical form."""
    cdef list given
    if not any_overrides(args):
        return NotImplemented
    if name == "setitem":
        return overridden(Tensor.__setitem__, (args[0], args[2], args[1]), kwargs)
    given = list(numbers_as_such(op, args))
    while len(given) > len(op.arguments) and name != "getitem" and (     # None is a key
            given[-1] is op.defaults[len(given) - len(op.arguments) - 1]):
        given.pop()                              # defaults that the parser added
    function = Tensor.__getitem__ if name == "getitem" else op.function
    if name == op.name + "_":
        function = getattr(Tensor, name)
    return overridden(function, tuple(given), kwargs)


as_they_are = set()          # functions whose results are not converted to the subclass


def refuse_override(*args, **kwargs):
    """NotImplemented: the `__torch_function__` of a class that does not override."""
    return NotImplemented


def default_override(cls, func, types, args=(), kwargs=None):
    """What `func` gives for these arguments as plain Tensors, as a tensor of this class.

    Asked once more on the way it declines: that is a function of PyTorch's, which asks our class.
    """
    if plain_flag()[0] or not all([issubclass(cls, each) for each in types]):
        return NotImplemented
    plain_flag()[0] = True
    try:
        result = func(*args, **(kwargs or {}))
        return result if func in as_they_are else of_class(result, cls)
    finally:
        plain_flag()[0] = False


cdef object of_class(object result, cls):
    """A result with its tensors converted to a class."""
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return of_subclass(<Tensor>result, cls)
    if not isinstance(result, (tuple, list)):
        return result
    enter(b" in the results of a function")
    try:
        found = [of_class(x, cls) for x in result]
        return type(result)(*found) if hasattr(result, "_fields") else type(result)(found)
    finally:
        leave()


cdef int check_subclass(str name, cls) except -1:
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"{name}: cls must be Tensor or a subclass of it, got {cls!r}")
    return 0


def as_subclass(Tensor self, cls):
    """A view of the tensor, with its place in the graph, of a subclass of Tensor.

    Raises: TypeError for another class.
    """
    check_subclass("as_subclass", cls)
    effect("as_subclass", self)
    return of_subclass(plain_view(self), cls)


cdef Tensor of_subclass(Tensor x, cls):
    """What `x` is, as a tensor of a subclass; `x` itself should not be used again."""
    cdef Tensor shown = <Tensor?>Tensor.__new__(cls)
    become(shown, plain_view(x) if x.wants_grad else x)
    return shown


cdef Tensor plain_view(Tensor x):
    """A view of all elements, which no subclass is asked for."""
    cdef bint before = set_plain(True)
    try:
        return Tensor.view_as(x, x)
    finally:
        set_plain(before)


def outside_graph(Tensor x, cls):
    """The elements of `x` as a leaf of a subclass of Tensor. Raises: as `as_subclass`."""
    check_subclass("_make_subclass", cls)
    effect("_make_subclass", x)
    return of_subclass(alias(x), cls)


def set_plain(bint enabled):
    """Sets whether this thread treats subclasses as plain Tensors; returns the value before."""
    cdef bint before = plain_flag()[0]
    plain_flag()[0] = enabled
    return before


def note_override():
    """Records that there is an overriding subclass: from now on calls are observed."""
    add_bits(&watch.watched, watch.OVERRIDES)


cdef bint call_runs_plain(tuple args, dict kwargs) except -1:
    """Whether `runs_plain` holds for all tensors of a call: its arguments, and those in sequences
    among them; False if there may be others, nested deeper."""
    if watched & ~(watch.OVERRIDES | watch.META) or makes_meta():
        return False
    for x in args if not kwargs else (*args, *kwargs.values()):
        if type(x) is tuple or type(x) is list:
            for y in x:                      # deeper nesting is not searched
                if not is_plain(y):
                    return False
        elif not is_plain(x):
            return False
    return True


cdef inline bint is_plain(object x) except -1:
    return runs_plain(x) if isinstance(x, Tensor) else x is None or type(x) in PLAIN_TYPES


cdef frozenset PLAIN_TYPES = frozenset((int, float, bool, str, DType))
cdef object kept_subclass = None


def note_plain_subclass(cls):
    """Records a subclass that does not override; the first one is Parameter."""
    global kept_subclass, usual_subclass
    if kept_subclass is None:
        kept_subclass = cls
        usual_subclass = <PyTypeObject*>cls


attach("as_subclass", as_subclass)
attach("__torch_function__", classmethod(default_override))
