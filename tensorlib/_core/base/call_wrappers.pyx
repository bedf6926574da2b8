"""Wrappers around calls of compiled public functions: they translate aliases of parameters, and
rewrite errors by `error_names`.

The vectorcall slot of a function is replaced by one of the functions here, which only inspect the
keywords and the result, which is NULL after an error.
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

ctypedef PyObject* (*tuple_function)(PyObject* self, PyObject* args, PyObject* kwargs) noexcept


# ---- aliases of parameters -----------------------------------------------------------------------

# The parameters that a keyword may stand for: NumPy's names, which PyTorch takes for all functions
# that have the parameter, and names of PyTorch's functions that differ from its documentation.
cdef dict ALIASES = {
    "axis": ("dim",), "keepdims": ("keepdim",), "x": ("input", "A", "tensor"),
    "a": ("input", "A", "tensor"), "x1": ("input", "A", "tensor"), "x2": ("other",),
    "input": ("A", "tensor"), "b": ("B",), "other": ("B", "tensor")}


cdef inline PyObject* names_of_parameters(PyObject* function, PyObject* names) noexcept:
    """Keywords with the names of parameters in place of aliases: the tuple itself if there is none,
    else a new one; NULL for NULL, and with an error set."""
    cdef Py_ssize_t i
    if names != NULL:
        for i in range(PyTuple_GET_SIZE(names)):
            if len(<str>PyTuple_GET_ITEM(names, i)) in (1, 2, 4, 5, 8) and (     # the common case
                    <object>PyTuple_GET_ITEM(names, i) in ALIASES):
                return translated_names(function, names)
    return names


cdef PyObject* translated_names(PyObject* function, PyObject* names) noexcept:
    """`translated_tuple` as a new reference, or NULL with an error set."""
    try:
        found = translated_tuple(<object>function, <tuple>names)
        Py_INCREF(found)
        return <PyObject*>found
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return NULL


cdef tuple translated_tuple(function, tuple names):
    """Keywords with the names of parameters in place of aliases; the function has a cache of them.
    """
    cdef dict known = getattr(function, "translated_names", None)
    if known is None:
        known = function.translated_names = {}
    found = known.get(names)
    if found is None:
        taken = parameters(function)
        found = tuple([x if x in taken else parameter_for(x, taken, names) for x in names])
        if len(known) < 64:          # keywords are arbitrary, so the cache is bounded
            known[names] = found
    return found


cdef object parameter_for(name, taken, tuple names):
    """The parameter of an alias, unless that is given as well; else the name itself."""
    for own in ALIASES.get(name, ()):
        if own in taken:
            return name if own in names else own
    return name


# ---- functions -----------------------------------------------------------------------------------

cdef vectorcallfunc enter_operation = NULL   # Cython's vectorcall of operations

# A hash table of the library's other functions with their original vectorcalls. They are never
# freed.
cdef enum:
    TABLE_SIZE = 2048              # a power of 2, at least twice the number of functions

cdef PyObject* table[TABLE_SIZE]
cdef vectorcallfunc entrances[TABLE_SIZE]
# Of a function of `make_offered`: the Python function that it wraps, and the one for calls with one
# argument, or NULL.
cdef PyObject* python_of[TABLE_SIZE]
cdef PyObject* of_one[TABLE_SIZE]
cdef int n_in_table = 0
cdef Lock table_lock               # held while functions are added


cdef inline int slot_of(PyObject* function) noexcept:
    """The slot of a function in the table, or the free one where it would be."""
    cdef int i = <int>((<size_t>function >> 4) * <size_t>0x9E3779B1 >> 8 & (TABLE_SIZE - 1))
    while table[i] != NULL and table[i] != function:
        i = (i + 1) & (TABLE_SIZE - 1)
    return i


cdef PyObject* call_operation(PyObject* function, PyObject* const* args, size_t n,
                              PyObject* names) noexcept:
    """The vectorcall of functions of operations."""
    return call_through(enter_operation, function, args, n, names)


cdef PyObject* call_in_table(PyObject* function, PyObject* const* args, size_t n,
                             PyObject* names) noexcept:
    """The vectorcall of functions in the table."""
    return call_through(entrances[slot_of(function)], function, args, n, names)


cdef inline PyObject* call_through(vectorcallfunc entrance, PyObject* function,
                                   PyObject* const* args, size_t n, PyObject* names) noexcept:
    """Translates the keywords and calls Cython's own vectorcall."""
    cdef PyObject* result = NULL
    cdef PyObject* own = names_of_parameters(function, names)
    if own != NULL or names == NULL:
        if watched & watch.FUNCTIONS and is_done_by(
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


cdef bint is_done_by(called_function offer, PyObject* function, PyObject* const* args, size_t n,
                     PyObject* names, PyObject** result) noexcept:
    """Whether an interpreter or class handled the call; sets its result, NULL for an error."""
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
    """The vectorcall of functions of `make_offered`: calls the wrapped function, unless an
    interpreter or a class handles the call."""
    cdef PyObject* result = NULL
    cdef int i
    if (watched or upcalls.asks != NULL and upcalls.asks(args, PyVectorcall_NARGS(n))) and (
            is_done_by(upcalls.whole, function, args, n, names, &result)):
        return result
    i = slot_of(function)
    if of_one[i] != NULL and names == NULL and PyVectorcall_NARGS(n) == 1:
        return PyObject_Vectorcall(of_one[i], args, n, NULL)
    return entrances[i](python_of[i], args, n, names)


cdef PyObject* call_with_tuple(PyObject* function, PyObject* const* args, size_t n,
                               PyObject* names) noexcept:
    """The call of functions with `*sizes`, which Cython calls with a tuple and a dict. It uses
    pointers, since an error cannot be caught without memory for its traceback."""
    cdef Py_ssize_t count = PyVectorcall_NARGS(n)
    cdef PyObject* result = NULL
    if watched & watch.FUNCTIONS and is_done_by(
            upcalls.called, function, args, n, names, &result):
        return result
    cdef PyObject* given = new_tuple(args, count)
    cdef PyObject* own = names_of_parameters(function, names)
    cdef PyObject* named = NULL if own == NULL else new_dict(own, args + count)
    cdef FunctionFields* fields = <FunctionFields*>function     # as Cython's functions begin
    if given != NULL and (names == NULL or named != NULL):
        result = (<tuple_function>fields.m_ml.ml_meth)(fields.m_self, given, named)
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
    """Replaces the current error by what `shown` makes of it, unless memory is short."""
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
    except BaseException:                    # out of memory, say: the original error stays
        pass
    PyErr_SetObject(type(error), error)      # with its own traceback
    Py_XDECREF(kind)
    Py_XDECREF(value)
    Py_XDECREF(trace)


def name_errors(function, bint for_ever=False):
    """The function itself; if it is compiled, its aliases and errors are handled from now on.

    for_ever: it is a function of the library that lives for ever, and not one of an operation.
    """
    global enter_operation
    if function.__class__.__name__ != "cython_function_or_method":
        return function
    cdef vectorcallfunc found = PyVectorcall_Function(function)
    cdef vectorcallfunc* slot = <vectorcallfunc*>(
        <char*><PyObject*>function + Py_TYPE(function).tp_vectorcall_offset)
    if found in (call_operation, call_in_table, call_offered, call_with_tuple):
        return function
    if found == NULL:
        slot[0] = call_with_tuple
    elif not for_ever and (enter_operation == NULL or found == enter_operation):
        enter_operation = found
        slot[0] = call_operation
    elif for_ever and add_to_table(function, found, None):
        slot[0] = call_in_table
    return function


cdef bint add_to_table(function, vectorcallfunc found, of, alone=None) except -1:
    """Adds a function to the table, with its vectorcall and the functions for `python_of` and
    `of_one`; False if the table is full."""
    global n_in_table
    cdef int i
    if n_in_table >= TABLE_SIZE // 2:             # which keeps searches short
        return False
    Py_INCREF(function)
    Py_INCREF(of)
    Py_INCREF(alone)
    hold(&table_lock)
    n_in_table += 1
    i = slot_of(<PyObject*>function)
    entrances[i], python_of[i] = found, <PyObject*>of
    of_one[i] = NULL if alone is None else <PyObject*>alone
    set_pointer(&table[i], <PyObject*>function)       # from here on others may find it
    drop(&table_lock)
    return True


def make_offered(function, of_one=None):
    """A wrapper of a Python function, whose calls are first offered to interpreters and to classes
    with `__torch_function__`.

    of_one: the compiled function for calls with one argument.
    """
    def offered(*args, **kwargs):
        return function(*args, **kwargs)
    if add_to_table(offered, PyVectorcall_Function(function), function, of_one):
        (<vectorcallfunc*>(<char*><PyObject*>offered
                           + Py_TYPE(offered).tp_vectorcall_offset))[0] = call_offered
    return offered


def one_frame(function):
    """A wrapper of a Python function, with errors rewritten by `shown`."""
    def entered(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            raise shown(error, function, kwargs)
    return entered
