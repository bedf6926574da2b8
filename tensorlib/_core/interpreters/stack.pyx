"""Interpreters: each thread has a stack of objects that can handle its calls of operations.

A call is offered to the innermost one, which handles it or passes it on to those below; while it
does so it is off the stack. If the stack is empty, the call is executed.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from tensorlib._core.base cimport watch
from tensorlib._core.base.dtypes cimport BOOL
from tensorlib._core.base.locks cimport Lock, add_bits, drop, hold, take_bits
from tensorlib._core.base.settings cimport Setting
from tensorlib._core.tensor.numbers cimport element
from tensorlib._core.tensor.tensor cimport Tensor

from tensorlib._core.graph.op import registry

cdef extern from * nogil:
    """
    static __thread void* thread_layers = 0;             /* owned; 0: the stack is empty */
    static void* innermost_layer(void) { return thread_layers; }
    static void store_layer(void* layer) { thread_layers = layer; }
    """
    void* innermost_layer()
    void store_layer(void* layer)

cdef int n_stacks = 0                # threads whose stack is not empty
cdef int n_takers = 0                # interpreters in `with` that are given functions
cdef Lock counting                   # of these


@cython.final
@cython.binding(False)
cdef class Layer:
    """An interpreter on a stack, and the layer below it."""


cpdef Layer current_layer():
    """The innermost layer of this thread's stack, or None."""
    cdef PyObject* held = <PyObject*>innermost_layer()
    return None if held == NULL else <Layer>held


cdef Layer put_stack(Layer layers):
    """Makes `layers` (None: nothing) the stack of this thread; returns what it was before."""
    global n_stacks
    cdef PyObject* held = <PyObject*>innermost_layer()
    before = None if held == NULL else <Layer>held
    if (layers is None) != (before is None):
        hold(&counting)
        n_stacks += 1 if before is None else -1
        if n_stacks:
            add_bits(&watch.watched, watch.INTERPRETERS)
        else:
            take_bits(&watch.watched, watch.INTERPRETERS)
        drop(&counting)
    if layers is not None:
        Py_INCREF(layers)
    store_layer(NULL if layers is None else <PyObject*>layers)
    Py_XDECREF(held)
    return before


cdef int count_takers(int change) except -1:
    """Counts the interpreters that handle functions; calls are observed while there are any."""
    global n_takers
    hold(&counting)
    n_takers += change
    if n_takers:
        add_bits(&watch.watched, watch.FUNCTIONS)
    else:
        take_bits(&watch.watched, watch.FUNCTIONS)
    drop(&counting)
    return 0


cpdef Layer stack_with(innermost):
    """The stack of this thread with one more interpreter, for `set_stack`."""
    cdef Layer layer = Layer.__new__(Layer)
    layer.interpreter, layer.below = innermost, current_layer()
    return layer


def set_stack(Layer layers or None):
    """Makes `layers` the stack of this thread; returns the stack before, for another such call."""
    return put_stack(layers)


@cython.binding(False)            # methods check their `self`
cdef class Interpreter:
    """Handles the calls of operations inside a `with`; subclasses override the methods they need.

    Each method but `call` and `write` may return NotImplemented: then the call runs as usual, with
    this interpreter on the stack for the operations that it is composed of. These two may do so
    for composed operations only.
    """

    takes_functions = False            # whether `called` is given public functions before they run

    def __enter__(self):
        cdef Setting held = self.settings()
        cdef bint entered = False
        cdef list before = self.held
        self.held = [held, before]
        try:
            if held is not None:
                held.enter()
                entered = True
            put_stack(stack_with(self))
            if self.takes_functions:
                count_takers(1)
        except BaseException:
            self.held = before
            if entered:
                held.leave()
            raise
        return self

    def __exit__(self, kind=None, error=None, trace=None):
        cdef Layer layer = current_layer()
        while layer is not None and layer.interpreter is not self:
            layer = layer.below
        if layer is not None:
            put_stack(layer.below)
        if self.takes_functions:
            count_takers(-1)
        cdef Setting held = self.held[0]
        self.held = self.held[1]
        if held is not None:
            held.leave()
        self.ended()

    def settings(self):
        """A `Setting` to enter together with the interpreter, or None. It may raise."""

    def ended(self):
        """Called when the interpreter has been taken from the stack."""

    def again(self):
        """An interpreter for running a part of the calls again later, or None.

        So values that a checkpoint dropped are recomputed in the same dtypes.
        """

    def below(self, op, tuple args, dict kwargs, str name=None):
        """The result of a call by the interpreters below this one or, without any, by execution.

        name: of the in-place form, as `write` gets it.
        """
        return performed(op, op.name if name is None else name, args, kwargs)

    # ---- calls

    def call(self, op, args, kwargs):
        """The result of an operation. `args` are its tensors, then its attributes; `kwargs` the
        attributes that were given by keyword, and `out`."""
        return performed(op, op.name, args, kwargs)

    def write(self, op, name, args, kwargs):
        """The result of a call that writes to its first tensor, such as `add_` or `setitem`.

        op: None for writes that are no form of an operation, such as `uniform_`.
        """
        return performed(op, name, args, kwargs)

    def called(self, function, args, kwargs):
        """The result of a public function, with the arguments as they were passed."""
        return NotImplemented

    def composed(self, op, function, args, kwargs):
        """The result of a composed operation, which `function` runs."""
        return NotImplemented

    def function(self, cls, args):
        """The result of an `autograd.Function`."""
        return NotImplemented

    def sweep(self, roots, grads, **options):
        """Runs a backward sweep with the options of `sweep.sweep`."""
        return NotImplemented

    # ---- notifications

    def leaving(self, name, x):
        """Called when the function `name` converts elements of a tensor to Python numbers or shares
        them with another library. It may raise."""

    def made(self, x):
        """Called when a tensor was made of numbers: a constant."""

    def effect(self, name, x):
        """Called for changes of a tensor, a generator or a graph that are no operations."""

    def hooked(self, name, x, hook, handle):
        """A hook was put on a tensor, of which `handle` takes it off again."""
        self.effect(name, x)

    def in_steps(self, value, of, linked):
        """A gradient got its place in the graph, which depends in steps on what `of` stands for."""

    def parsed(self, index, key):
        """Called when an `Index` was made of a key."""

    def checked(self, name, values, facts):
        """Called for a check of values, by its name in ops/value_checks.py."""


cpdef object performed(object op, str name, tuple args, dict kwargs):
    """The result of a call in canonical form by the stack of this thread."""
    if name == "setitem":
        args[0][args[2]] = args[1]
        return args[0]
    if op is None:
        return getattr(Tensor, name)(*args, **kwargs)
    function = op.function
    if name == op.name + "_":
        function = getattr(function, "inplace", None) or getattr(Tensor, name)
    elif op.name == "getitem" and type(args[1]).__name__ != "Index":
        return args[0][args[1]]
    elif op.linearity == "composite":
        return function(*args, **kwargs)
    return getattr(function, "canonical", function)(*args, **kwargs)


cdef tuple numbers_as_such(object op, tuple args):
    """The arguments of a call, with numbers that an element-wise operation made tensors of as
    numbers again, if there are other tensors, from which its result has its dtype: conditions are
    no such."""
    cdef tuple given
    if op is None or not op.elementwise:
        return args
    given = tuple([element(<Tensor>x) if isinstance(x, Tensor) and (<Tensor>x).is_scalar else x
                   for x in args])
    for x in given:
        if isinstance(x, Tensor):
            if (<Tensor>x).type != BOOL:
                return given
        elif not isinstance(x, (bool, int, float, complex)):
            return given
    return args


cdef object called(object function, tuple args, dict kwargs):
    """The result of a public function by the innermost interpreter of this thread, before the
    arguments are checked; NotImplemented if there is none."""
    cdef Layer layer = current_layer()
    if layer is None or not layer.interpreter.takes_functions:
        return NotImplemented
    name = function.__name__
    if not (hasattr(function, "op") or hasattr(function, "__wrapped__")) and (
            name.startswith("_") or getattr(Tensor, name, None) is not function):
        return NotImplemented          # neither an operation nor composed of any: a setting, say
    put_stack(layer.below)
    try:
        return layer.interpreter.called(function, args, kwargs)
    finally:
        put_stack(layer)


cdef object offered(object op, str name, tuple args, dict kwargs):
    """The result of a call by the innermost interpreter of this thread, or NotImplemented.

    `args` are canonical: the operation's tensors, then its attributes. `name` is the operation's
    own, or that of the in-place form. op: None to look it up by the name.
    """
    cdef Layer layer = current_layer()
    if layer is None:
        return NotImplemented
    if kwargs is None:
        kwargs = {}
    if op is None and not (name == "backward" or name.endswith("_")):
        op = registry[name]
    args = numbers_as_such(op, args)
    put_stack(layer.below)
    try:
        if name == "backward":
            return layer.interpreter.sweep(*args, **kwargs)
        if name == "setitem" or name.endswith("_"):
            return layer.interpreter.write(op, name, args, kwargs)
        return layer.interpreter.call(op, args, kwargs)
    finally:
        put_stack(layer)


def offered_as(str method, *args):
    """The result of a method of the innermost interpreter, or NotImplemented."""
    cdef Layer layer = current_layer()
    if layer is None:
        return NotImplemented
    put_stack(layer.below)
    try:
        return getattr(layer.interpreter, method)(*args)
    finally:
        put_stack(layer)


# ---- notifications -------------------------------------------------------------------------------

def tell(str method, *args):
    """Calls a method of each interpreter of this thread, the innermost first."""
    cdef Layer first = current_layer(), layer = first
    try:
        while layer is not None:
            put_stack(layer.below)
            getattr(layer.interpreter, method)(*args)
            layer = layer.below
    finally:
        put_stack(first)


cdef int made(object x) except -1:
    """Notifies interpreters of a tensor that was made of numbers."""
    if innermost_layer() != NULL:
        tell("made", x)
    return 0


cdef int leaving(str name, object x) except -1:
    """Notifies interpreters that elements of a tensor leave the library."""
    if innermost_layer() != NULL:
        tell("leaving", name, x)
    return 0


cdef int effect(str name, object x) except -1:
    """Notifies interpreters of a change of `x` that is no operation."""
    if innermost_layer() != NULL:
        tell("effect", name, x)
    return 0
