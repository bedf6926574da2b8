"""How compiled public functions are entered: with other names of arguments under the function's
own, and with errors as `error_names` shows them.

A function is entered through `call_named`, which does nothing more unless a keyword is one of
these names, or the call has failed.
"""

from cpython.exc cimport (
    PyErr_Fetch, PyErr_NormalizeException, PyErr_Occurred, PyErr_SetObject,
)
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from tensorlib._core.base cimport watch
from tensorlib._core.base.locks cimport Lock, drop, hold, set_pointer
from tensorlib._core.base.upcalls cimport called_function, upcalls
from tensorlib._core.base.watch cimport watched

from tensorlib._core.base.error_names import parameters, shown
from tensorlib._core.base.storage import OutOfMemoryError

cdef extern from "Python.h":
    ctypedef PyObject* (*vectorcallfunc)(PyObject*, PyObject* const*, size_t, PyObject*) noexcept
    vectorcallfunc PyVectorcall_Function(object function)
    struct CallableType "_typeobject":
        Py_ssize_t tp_vectorcall_offset
    CallableType* Py_TYPE(object value)
    PyObject* PyObject_Vectorcall(PyObject* function, PyObject* const* args, size_t n,
                                  PyObject* names)
    Py_ssize_t PyVectorcall_NARGS(size_t n)
    ctypedef struct MethodDef "PyMethodDef":
        void* ml_meth
    ctypedef struct FunctionFields "PyCFunctionObject":
        MethodDef* m_ml
        PyObject* m_self
    PyObject* PyTuple_New(Py_ssize_t n)
    void PyTuple_SET_ITEM(PyObject* items, Py_ssize_t i, PyObject* item)
    PyObject* PyTuple_GET_ITEM(PyObject* items, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(PyObject* items)
    PyObject* PyDict_New()
    int PyDict_SetItem(PyObject* made, PyObject* key, PyObject* value)

ctypedef PyObject* (*with_keywords)(PyObject* self, PyObject* args, PyObject* kwargs) noexcept


# ---- other names of arguments --------------------------------------------------------------------

# NumPy's, which PyTorch's parser takes wherever there is the parameter they stand for, and those
# that its functions have where its documentation, and so this library, calls them otherwise.
cdef dict STANDS_FOR = {
    "axis": ("dim",), "keepdims": ("keepdim",), "x": ("input", "A", "tensor"),
    "a": ("input", "A", "tensor"), "x1": ("input", "A", "tensor"), "x2": ("other",),
    "input": ("A", "tensor"), "b": ("B",), "other": ("B", "tensor")}


cdef inline PyObject* own_names(PyObject* function, PyObject* names) noexcept:
    """The names of keywords with the function's own in the place of others: the tuple itself where
    there are none of these, else a new one; NULL for NULL, and with an error set."""
    cdef Py_ssize_t i
    if names != NULL:
        for i in range(PyTuple_GET_SIZE(names)):
            if len(<str>PyTuple_GET_ITEM(names, i)) in (1, 2, 4, 5, 8) and (     # most are not
                    <object>PyTuple_GET_ITEM(names, i) in STANDS_FOR):
                return translated(function, names)
    return names


cdef PyObject* translated(PyObject* function, PyObject* names) noexcept:
    try:
        found = tuple_in_own_names(<object>function, <tuple>names)
        Py_INCREF(found)
        return <PyObject*>found
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return NULL


cdef tuple tuple_in_own_names(function, tuple names):
    cdef dict known = getattr(function, "own_names", None)      # for keywords as they were given
    if known is None:
        known = function.own_names = {}
    found = known.get(names)
    if found is None:
        taken = parameters(function)
        found = tuple([x if x in taken else own_name(x, taken, names) for x in names])
        if len(known) < 64:          # callers may think of any others
            known[names] = found
    return found


cdef object own_name(name, taken, tuple names):
    """The parameter that a name stands for, unless it was given itself; else the name."""
    for own in STANDS_FOR.get(name, ()):
        if own in taken:
            return name if own in names else own
    return name


# ---- functions -----------------------------------------------------------------------------------

cdef vectorcallfunc enter = NULL   # how Cython enters the functions of operations

# How the library's other functions are entered: each module has its own way. They live for ever.
cdef enum:
    MAX_LISTED = 2048              # a power of 2, at least twice the number of functions

cdef PyObject* listed[MAX_LISTED]
cdef vectorcallfunc entrances[MAX_LISTED]
# Of one that `make_offered` made: the function in Python behind it, and the one that a call with
# one argument comes to, or NULL.
cdef PyObject* python_of[MAX_LISTED]
cdef PyObject* of_one[MAX_LISTED]
cdef int n_listed = 0
cdef Lock listing               # for who adds to these


cdef inline int place_of(PyObject* function) noexcept:
    """Where a function is listed, or would be."""
    cdef int i = <int>((<size_t>function >> 4) * <size_t>0x9E3779B1 >> 8 & (MAX_LISTED - 1))
    while listed[i] != NULL and listed[i] != function:
        i = (i + 1) & (MAX_LISTED - 1)
    return i


cdef PyObject* call_named(PyObject* function, PyObject* const* args, size_t n,
                          PyObject* names) noexcept:
    return call_by(enter, function, args, n, names)


cdef PyObject* call_listed(PyObject* function, PyObject* const* args, size_t n,
                           PyObject* names) noexcept:
    return call_by(entrances[place_of(function)], function, args, n, names)


cdef inline PyObject* call_by(vectorcallfunc entrance, PyObject* function, PyObject* const* args,
                              size_t n, PyObject* names) noexcept:
    cdef PyObject* result = NULL
    cdef PyObject* own = own_names(function, names)
    if own != NULL or names == NULL:
        if watched & watch.FUNCTIONS and is_offered(
                upcalls.called, function, args, n, own, &result):
            if own != names:
                Py_XDECREF(own)
            return result
        result = entrance(function, args, n, own)
    if result == NULL:
        replace_error(function, own)
    if own != names:
        Py_XDECREF(own)
    return result


cdef bint is_offered(called_function offer, PyObject* function, PyObject* const* args, size_t n,
                     PyObject* names, PyObject** result) noexcept:
    """Whether `offer` did a call as a whole: `result` is what that gave, NULL for an error."""
    cdef Py_ssize_t i, count = PyVectorcall_NARGS(n)
    try:
        done = offer(
            <object>function, tuple([<object>args[i] for i in range(count)]),
            {} if names == NULL else {name: <object>args[count + i]
                                      for i, name in enumerate(<tuple>names)})
        if done is NotImplemented:
            return False
        Py_INCREF(done)
        result[0] = <PyObject*>done
    except BaseException as error:
        result[0] = NULL
        PyErr_SetObject(type(error), error)
    return True


cdef PyObject* call_offered(PyObject* function, PyObject* const* args, size_t n,
                            PyObject* names) noexcept:
    """How what `make_offered` made is entered: the function behind it is, unless someone does it.
    """
    cdef PyObject* result = NULL
    cdef int i
    if (watched or upcalls.asks != NULL and upcalls.asks(args, PyVectorcall_NARGS(n))) and (
            is_offered(upcalls.whole, function, args, n, names, &result)):
        return result
    i = place_of(function)
    if of_one[i] != NULL and names == NULL and PyVectorcall_NARGS(n) == 1:
        return PyObject_Vectorcall(of_one[i], args, n, NULL)
    return entrances[i](python_of[i], args, n, names)


cdef PyObject* call_by_tuple(PyObject* function, PyObject* const* args, size_t n,
                             PyObject* names) noexcept:
    """How functions that begin with `*sizes` are entered: Cython gives them no other way than by a
    tuple and a dict. By pointers: where there is no memory for a traceback no error can be caught.
    """
    cdef Py_ssize_t count = PyVectorcall_NARGS(n)
    cdef PyObject* result = NULL
    if watched & watch.FUNCTIONS and is_offered(
            upcalls.called, function, args, n, names, &result):
        return result
    cdef PyObject* given = new_tuple(args, count)
    cdef PyObject* own = own_names(function, names)
    cdef PyObject* named = NULL if own == NULL else new_dict(own, args + count)
    cdef FunctionFields* fields = <FunctionFields*>function     # as Cython's functions begin
    if given != NULL and (names == NULL or named != NULL):
        result = (<with_keywords>fields.m_ml.ml_meth)(fields.m_self, given, named)
    Py_XDECREF(given)
    Py_XDECREF(named)
    if result == NULL:
        replace_error(function, own)
    if own != names:
        Py_XDECREF(own)
    return result


cdef PyObject* new_tuple(PyObject* const* items, Py_ssize_t n) noexcept:
    """A new tuple, or NULL with an error set."""
    cdef PyObject* made = PyTuple_New(n)
    cdef Py_ssize_t i
    if made != NULL:
        for i in range(n):
            Py_INCREF(<object>items[i])
            PyTuple_SET_ITEM(made, i, items[i])
    return made


cdef PyObject* new_dict(PyObject* names, PyObject* const* values) noexcept:
    """A new dict of the names in a tuple, or NULL with an error set."""
    cdef PyObject* made = PyDict_New()
    cdef Py_ssize_t i
    if made != NULL:
        for i in range(PyTuple_GET_SIZE(names)):
            if PyDict_SetItem(made, PyTuple_GET_ITEM(names, i), values[i]) < 0:
                Py_XDECREF(made)
                return NULL
    return made


cdef void replace_error(PyObject* function, PyObject* names) noexcept:
    """Makes the error that is set what `shown` makes of it, unless there is no memory for that."""
    if PyErr_Occurred() == <PyObject*>OutOfMemoryError:
        return
    cdef PyObject* kind = NULL
    cdef PyObject* value = NULL
    cdef PyObject* trace = NULL
    PyErr_Fetch(&kind, &value, &trace)
    PyErr_NormalizeException(&kind, &value, &trace)
    error = <object>value
    if trace != NULL:
        error.__traceback__ = <object>trace
    try:
        error = shown(error, <object>function, () if names == NULL else <object>names)
    except BaseException:                    # of no memory, say: then the error stays as it was
        pass
    PyErr_SetObject(type(error), error)      # with its own traceback
    Py_XDECREF(kind)
    Py_XDECREF(value)
    Py_XDECREF(trace)


def name_errors(function, bint for_ever=False):
    """The compiled function itself, whose errors are `shown` from now on.

    for_ever: it is the library's, and no function of an operation.
    """
    global enter
    if function.__class__.__name__ != "cython_function_or_method":
        return function
    cdef vectorcallfunc found = PyVectorcall_Function(function)
    cdef vectorcallfunc* slot = <vectorcallfunc*>(
        <char*><PyObject*>function + Py_TYPE(function).tp_vectorcall_offset)
    if found in (call_named, call_listed, call_offered, call_by_tuple):
        return function
    if found == NULL:
        slot[0] = call_by_tuple
    elif not for_ever and (enter == NULL or found == enter):
        enter = found
        slot[0] = call_named
    elif for_ever and put_in_list(function, found, None):
        slot[0] = call_listed
    return function


cdef bint put_in_list(function, vectorcallfunc found, of, alone=None) except -1:
    """Lists how a function is entered, and `of` and `alone`, what is behind it, for ever; False if
    the list is full."""
    global n_listed
    cdef int i
    if n_listed >= MAX_LISTED // 2:             # a full table would be searched for ever
        return False
    Py_INCREF(function)
    Py_INCREF(of)
    Py_INCREF(alone)
    hold(&listing)
    n_listed += 1
    i = place_of(<PyObject*>function)
    entrances[i], python_of[i] = found, <PyObject*>of
    of_one[i] = NULL if alone is None else <PyObject*>alone
    set_pointer(&listed[i], <PyObject*>function)       # from here on others may find it
    drop(&listing)
    return True


def make_offered(function, of_one=None):
    """What does as a function in Python does, which interpreters and classes that take part in
    operations are offered as it is called.

    of_one: the compiled function that it calls where it is called with one argument.
    """
    def offered(*args, **kwargs):
        return function(*args, **kwargs)
    if put_in_list(offered, PyVectorcall_Function(function), function, of_one):
        (<vectorcallfunc*>(<char*><PyObject*>offered
                           + Py_TYPE(offered).tp_vectorcall_offset))[0] = call_offered
    return offered


def one_frame(function):
    """A function that does what `function`, one in Python, does; its errors are `shown`."""
    def entered(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            raise shown(error, function, kwargs)
    return entered
