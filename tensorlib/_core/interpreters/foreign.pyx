"""Classes that do operations themselves: some that are no Tensor, and some that inherit from it.

Such a class has `__torch_function__`, PyTorch's protocol, or within the library `__tensor_call__`.
"""

from tensorlib._core.base cimport watch
from tensorlib._core.base.recursion cimport enter, leave
from tensorlib._core.graph.node cimport Node
from tensorlib._core.graph.op cimport Op
from tensorlib._core.interpreters.stack cimport numbers_as_such
from tensorlib._core.tensor.tensor cimport Tensor, replace, track_tensor

from tensorlib._core.tensor.tensor import attach

cdef extern from * nogil:
    """
    static __thread int tensors_are_plain = 0;     /* whether subclasses of Tensor are not asked */
    static int* plain_flag(void) { return &tensors_are_plain; }
    """
    int* plain_flag()


# A class that is no Tensor, but whose instances go where Tensors go (one example of a batch, say),
# has a class method `__tensor_call__(op, args, kwargs)` that does an operation given any of them.
# It is looked for where an operation would otherwise refuse its arguments, so Tensors never pay.
# `__tensor_function__(name, args)` does a function that is no operation, where that asks for it.
# `x.like()` is a tensor of its shape and dtype, `x.behind()` the tensor of all that it stands for,
# and `x.before(y)` stands for `y` as `x` does for that.

cpdef bint stands_in(object value):
    """Whether the value is no Tensor but has its own way to do operations."""
    return not isinstance(value, Tensor) and hasattr(type(value), "__tensor_call__")


cpdef object behind(object value):
    """The tensor of all values that a value stands for; a Tensor itself."""
    return value.behind() if stands_in(value) else value


cdef object stand_in(Op op, tuple args, dict kwargs):
    """The operation as done by a value among its arguments; NotImplemented where none does it."""
    for value in args:
        for part in (value if isinstance(value, (tuple, list)) else (value,)):
            if stands_in(part):
                return type(part).__tensor_call__(op, args, kwargs or {})
    return overridden(op.function, args, kwargs)


def refuse_batch(str name, object value):
    """Raises RuntimeError for a value that stands for many tensors: results differ in shape."""
    if stands_in(value):
        raise RuntimeError(f"{name}: vmap: the shape of the result would differ between the "
                           "examples of a batch; use where and masks")


def in_batch(str name, tuple args):
    """What a function of operations gives, done by a value among its arguments that stands in."""
    for value in args:
        if stands_in(value):
            return type(value).__tensor_function__(name, args)


cdef int refuse_shared_write(str name, tuple args) except -1:
    """Raises RuntimeError if a value that stands for others is to be written to a tensor."""
    for value in args:
        if stands_in(value):
            why = getattr(type(value), "no_write", "vmap: a tensor that all examples of a batch "
                          "share can't be written in place or by out= with a value that differs "
                          "between them")
            raise RuntimeError(f"{name}: {why}; use the form that returns a new tensor")
    return 0


# ---- PyTorch's protocol --------------------------------------------------------------------------

cpdef bint overrides(object value):
    """Whether the class of a value has a `__torch_function__` of its own."""
    if type(value) is Tensor or isinstance(value, Tensor) and plain_flag()[0]:
        return False
    found = getattr(type(value), "__torch_function__", None)
    return found is not None and found is not refuse_override and (
        getattr(found, "__func__", None) is not default_override)


def overriding(values):
    """The values, also in sequences, whose classes override: one of each, subclasses first."""
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
    """What `__torch_function__` of an argument makes of a call of a public function.

    NotImplemented where no class overrides. Raises: TypeError where those that do decline.
    """
    cdef list relevant = overriding((*args, *kwargs.values()) if kwargs else args)
    return dispatched(function, relevant, args, kwargs or {}) if relevant else NotImplemented


def dispatched(function, relevant, args, kwargs):
    """What the first of the values `relevant` that does not decline makes of a call."""
    types = tuple([type(x) for x in relevant])
    for value in relevant:
        result = type(value).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(f"no implementation found for '{function.__module__}.{function.__name__}' on "
                    f"types that implement __torch_function__: {list(types)}")


cdef object overridden_form(object op, str name, tuple args, dict kwargs):
    """As `overridden`, for a call in its canonical form."""
    cdef list given
    if not any([overrides(x) for part in args for x in (
            part if isinstance(part, (tuple, list)) else (part,))]):
        return NotImplemented
    if name == "setitem":
        return overridden(Tensor.__setitem__, (args[0], args[2], args[1]), kwargs)
    given = list(numbers_as_such(op, args))
    while len(given) > len(op.arguments) and (
            given[-1] is op.defaults[len(given) - len(op.arguments) - 1]):
        given.pop()                              # what the parser of the arguments added
    function = Tensor.__getitem__ if name == "getitem" else op.function
    if name == op.name + "_":
        function = getattr(Tensor, name)
    return overridden(function, tuple(given), kwargs)


def refuse_override(*args, **kwargs):
    """NotImplemented: the `__torch_function__` of a class that does not take part."""
    return NotImplemented


def default_override(cls, func, types, args=(), kwargs=None):
    """What `func` gives for these arguments as plain Tensors, as a tensor of this class."""
    if not all([issubclass(cls, each) for each in types]):
        return NotImplemented
    before = plain_flag()[0]
    plain_flag()[0] = True
    try:
        return of_class(func(*args, **(kwargs or {})), cls)
    finally:
        plain_flag()[0] = before


cdef object of_class(object result, cls):
    """The tensors of a result as tensors of a class."""
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return as_subclass(<Tensor>result, cls)
    if type(result) is not tuple and type(result) is not list:
        return result
    enter(b" in the results of a function")
    try:
        return type(result)([of_class(x, cls) for x in result])
    finally:
        leave()


cdef Tensor as_subclass(Tensor x, cls):
    """The elements of `x`, with its place in the graph, as a tensor of a class."""
    cdef Tensor shown = <Tensor?>Tensor.__new__(cls)
    replace(shown, x)
    shown.grad_node, shown.slot = x.grad_node, x.slot
    if x.grad_node is not None and (<Node>x.grad_node).tracked:
        track_tensor(shown)
    return shown


def set_plain(bint enabled):
    """Sets whether this thread takes subclasses of Tensor as plain; returns what held before."""
    cdef bint before = plain_flag()[0]
    plain_flag()[0] = enabled
    return before


def note_subclass(cls, **kwargs):
    """Notes a new subclass of Tensor: from the first that overrides on, calls are looked at."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    found = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    if found is not default_override and found is not refuse_override:
        watch.watched |= watch.OVERRIDES


attach("__torch_function__", classmethod(default_override))
attach("__init_subclass__", classmethod(note_subclass))
