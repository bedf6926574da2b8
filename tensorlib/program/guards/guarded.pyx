"""Guards: what a captured function read of its environment, and whether that still holds.

A guard refers to the object that was read: since each link from the function to that object is
guarded too, the path need not be followed again.
"""

from gc import get_objects
from warnings import warn

cimport cython
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next, PyDict_Size
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.stdlib cimport calloc, free, realloc
from tensorlib._core.base.locks cimport FREE_THREADED
from tensorlib._core.tensor.tensor cimport Tensor, requires_grad
from tensorlib.program.guards.values cimport functions_in, in_class, is_same, names_in, owned_object
from tensorlib.program.guards.versions cimport forget, version_of

from tensorlib.program.guards.values import MISSING, Missing, is_mutable_value

cdef extern from *:
    """
    /* What a change of a class, or of one above it, takes away; 0 for none. */
    #ifdef Py_TPFLAGS_VALID_VERSION_TAG
    #define TAG_OF(t) (((t)->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) ? (t)->tp_version_tag : 0)
    #else
    #define TAG_OF(t) ((t)->tp_version_tag)
    #endif
    #if PY_VERSION_HEX < 0x030D0000
    static int HAS_DICT(PyObject* x, PyObject* d) {
        PyObject** found = _PyObject_GetDictPtr(x);
        return found != NULL && *found == d;
    }
    #else
    static int HAS_DICT(PyObject* x, PyObject* d) {
        PyObject* found = PyObject_GenericGetDict(x, NULL);
        if (found == NULL) { PyErr_Clear(); return 0; }
        Py_DECREF(found);
        return found == d;
    }
    #endif
    /* A `class` statement takes the name of the type object from its name for Python; what
     * PyType_FromSpec makes has the name of the specification. */
    static int HAS_NAME_OF_STATEMENT(PyTypeObject* t) {
        return (t->tp_flags & Py_TPFLAGS_HEAPTYPE)
            && t->tp_name == PyUnicode_AsUTF8(((PyHeapTypeObject*)t)->ht_name);
    }
    #define HAS_GENERIC_LOOKUP(t) ((t)->tp_getattro == PyObject_GenericGetAttr)
    """
    unsigned int TAG_OF(PyTypeObject* t)
    bint HAS_GENERIC_LOOKUP(PyTypeObject* t)
    bint HAS_NAME_OF_STATEMENT(PyTypeObject* t)
    bint HAS_DICT(PyObject* x, PyObject* d)

cdef extern from "Python.h":
    PyObject* PyCell_GET(PyObject* cell)
    PyObject* PyCell_Get(PyObject* cell)
    PyTypeObject* Py_TYPE(PyObject* x)
    PyObject* PyFunction_GET_CODE(PyObject* f)
    PyObject* PyFunction_GET_DEFAULTS(PyObject* f)
    PyObject* PyFunction_GET_KW_DEFAULTS(PyObject* f)


def is_written_in_python(kind):
    """Whether a class was made by a `class` statement, and not by an extension module."""
    return (<PyTypeObject*>kind).tp_dealloc == (<PyTypeObject*>Missing).tp_dealloc and (
        HAS_NAME_OF_STATEMENT(<PyTypeObject*>kind))


def is_generic(kind):
    """Whether a class looks attributes up in Python's own way."""
    return HAS_GENERIC_LOOKUP(<PyTypeObject*>kind)


def in_cell(cell):
    """What is in a cell of a closure; MISSING for nothing."""
    cdef PyObject* content = PyCell_Get(<PyObject*>cell)
    return MISSING if content == NULL else owned_object(content)


cdef bint is_still(before, now) except -1:
    """Whether a value may stand for the one that was read. What is mutable has to be the very
    object: its own guard compares that one, and no other that was equal for a while."""
    return before is now or is_same(before, now) and not may_change(now)


cdef bint may_change(x) except -1:
    """Whether a value is mutable, or a tuple with one in it."""
    if isinstance(x, tuple):
        for part in <tuple>x:
            if may_change(part):
                return True
        return False
    return is_mutable_value(x)


# A tuple that another thread is making breaks where somebody else holds it. So none is held, and
# compiled code, in which no thread gives way to another, goes through what there is.

def youngest():
    """The objects of the youngest generation of the garbage collector, without tuples."""
    return [x for x in get_objects(0) if type(x) is not tuple]


@cython.final
cdef class Youngest:
    """The set of the objects that are in the youngest generation now. It keeps none alive: a
    capture of thousands of operations makes tens of thousands, so their addresses are hashed."""

    cdef size_t* places
    cdef size_t mask

    def __cinit__(self):
        cdef list found = get_objects(0)
        cdef size_t room = 64
        while room < 2 * <size_t>len(found):
            room *= 2
        self.mask = room - 1
        self.places = <size_t*>calloc(room, sizeof(size_t))
        if self.places == NULL:
            raise MemoryError
        for x in found:
            self.places[self.place_of(x)] = <size_t><PyObject*>x

    cdef size_t place_of(self, x) noexcept:
        """Where the address of an object is, or would be."""
        cdef size_t address = <size_t><PyObject*>x, i = (address >> 4) & self.mask
        while self.places[i] != 0 and self.places[i] != address:
            i = (i + 1) & self.mask
        return i

    def __contains__(self, x):
        return self.places[self.place_of(x)] != 0

    def __dealloc__(self):
        free(self.places)


@cython.binding(False)            # methods check their `self`
cdef class Guard:
    """What was read of `holder`."""

    cdef bint holds(self) except -1:
        return False

    def check(self):
        """Whether all is as it was."""
        return self.holds()


cdef class DictGuard(Guard):
    """Some names of a dict, or the whole dict in order.

    owner: the object whose attributes they are, if they are that: it may be given another dict.
    now: where the version of the dict lies. version: of the dict when it was last compared, so that
    one that nobody wrote to since takes a nanosecond.
    """

    def __init__(self, holder, dict read, items, str line, owner=None):
        self.holder, self.read, self.line, self.owner = holder, read, line, owner
        if items is not None:
            self.keys, self.values = tuple([k for k, _ in items]), tuple([x for _, x in items])
        forget(self.now)
        self.now, self.version = NULL, 0
        self.now = version_of(<dict>holder)

    def __dealloc__(self):
        forget(self.now)

    cdef bint holds(self) except -1:
        cdef uint64_t version = 0 if self.now == NULL else self.now[0]
        if self.owner is not None and not HAS_DICT(
                <PyObject*>self.owner, <PyObject*>self.holder):
            return False
        if version and version == self.version:
            return True
        if not self.are_same():
            return False
        self.version = version
        return True

    cdef bint are_same(self) except -1:
        cdef Py_ssize_t place = 0, i = 0
        cdef PyObject* key
        cdef PyObject* value
        cdef dict now = <dict>self.holder
        if FREE_THREADED:                    # a copy, to which no other thread writes
            now = now.copy()
        for name, before in self.read.items():
            value = PyDict_GetItemWithError(now, name)
            if not is_still(before, MISSING if value == NULL else <object>value):
                return False
        if self.keys is None:
            return True
        if PyDict_Size(now) != len(self.keys):
            return False
        while PyDict_Next(now, &place, &key, &value):
            if not (is_still(self.keys[i], <object>key) and
                    is_still(self.values[i], <object>value)):
                return False
            i += 1
        return True


cdef class TypeGuard(Guard):
    """Names that were looked up in a class and those above it; under None, which names it has."""

    def __init__(self, holder, dict read, str line):
        self.holder, self.read, self.line = holder, read, line
        self.classes = type.__getattribute__(holder, "__mro__")
        self.wrapped = [] if issubclass(holder, Tensor) else [
            (x, functions_in(x)) for x in read.values() if functions_in(x)]
        self.tag = 0

    cdef bint holds(self) except -1:
        cdef PyTypeObject* kind = <PyTypeObject*>self.holder
        for x, before in self.wrapped:         # which may be given other functions
            if not is_same(before, functions_in(x)):
                return False
        if self.tag and self.tag == TAG_OF(kind):
            return True
        if not self.are_same():
            return False
        self.tag = TAG_OF(kind)
        return True

    cdef bint are_same(self) except -1:
        if not is_still(self.classes, type.__getattribute__(self.holder, "__mro__")):
            return False
        for name, before in self.read.items():
            now = names_in(self.holder) if name is None else in_class(self.holder, name)
            if not is_still(before, now):
                return False
        return True


cdef class ListGuard(Guard):
    """Some elements of a list, or all of it."""

    def __init__(self, holder, dict read, whole, str line):
        self.holder, self.read, self.whole, self.line = holder, read, whole, line

    cdef bint holds(self) except -1:
        cdef list now = <list>self.holder
        cdef Py_ssize_t i, n = PyList_GET_SIZE(now)
        if self.whole is not None:
            if n != len(self.whole):
                return False
            for i in range(n):
                if not is_still(self.whole[i], now[i]):
                    return False
            return True
        for place, before in self.read.items():
            i = place
            if i < 0:
                i += n
            if not (0 <= i < n and is_still(before, now[i])):
                return False
        return True


cdef class CellGuard(Guard):
    """What is in a cell of a closure."""

    def __init__(self, holder, read, str line):
        self.holder, self.read, self.line = holder, read, line

    cdef bint holds(self) except -1:
        if PyCell_GET(<PyObject*>self.holder) == <PyObject*>self.read:
            return True
        return is_still(self.read, in_cell(self.holder))


cdef class FunctionGuard(Guard):
    """The code and the defaults of a function that ran.

    own: gives the code that it has where no other thread captures what it reads.
    """

    def __init__(self, holder, code, own, str line):
        self.holder, self.line = holder, line
        self.code, self.own = code, own
        self.defaults, self.named = holder.__defaults__, holder.__kwdefaults__

    cdef bint holds(self) except -1:
        cdef PyObject* f = <PyObject*>self.holder
        cdef PyObject* defaults = PyFunction_GET_DEFAULTS(f)
        if PyFunction_GET_CODE(f) != <PyObject*>self.code and (
                self.own(self.holder) is not self.code):
            return False
        if PyFunction_GET_KW_DEFAULTS(f) != (
                NULL if self.named is None else <PyObject*>self.named):
            return False
        return defaults == (NULL if self.defaults is None else <PyObject*>self.defaults)


cdef class KindGuard(Guard):
    """The class of an object, which somebody may set."""

    def __init__(self, holder, kind, str line):
        self.holder, self.kind, self.line = holder, kind, line

    cdef bint holds(self) except -1:
        return type(self.holder) is self.kind


cdef class ValueGuard(Guard):
    """What an accessor gives for a holder and a key."""

    def __init__(self, holder, accessor, key, read, str line):
        self.holder, self.accessor, self.key = holder, accessor, key
        self.read, self.line = read, line

    cdef bint holds(self) except -1:
        try:
            now = self.accessor(self.holder, self.key)
        except Exception:
            return False
        return is_still(self.read, now)


def layout_of(x, key):
    """The layout of a tensor and its place in a graph, which its methods may read."""
    return tuple(x.shape), x.stride(), x.dtype, x.requires_grad, x.is_leaf


cdef class LayoutGuard(ValueGuard):
    """What `layout_of` gives for a tensor, whose class has the attributes of Tensor itself. There
    may be hundreds: it is compared without a call."""

    cdef bint holds(self) except -1:
        cdef Tensor x = <Tensor?>self.holder
        cdef tuple sizes, strides, read = <tuple>self.read
        cdef int d
        sizes, strides = read[0], read[1]
        if x.ndim_ != len(sizes) or x.dtype is not read[2]:
            return False
        for d in range(x.ndim_):
            if x.dims[d] != <Py_ssize_t>sizes[d] or x.steps[d] != <Py_ssize_t>strides[d]:
                return False
        return requires_grad(x) == <bint>read[3] and (x.grad_node is None) == <bint>read[4]


@cython.binding(False)            # methods check their `self`
cdef class Guards:
    """All guards of a capture. hooks: dicts of hooks by kind, of the modules that ran and of all
    modules.

    A model has a thousand guards. So what shows of most of them that they hold lies side by side in
    `fast_checks`, and only the other guards are called.
    """

    def __init__(self, list all, list hooks):
        self.all = all
        self.hooks = [(kinds, keys_in(kinds)) for kinds in map(list, map(dict.values, hooks))]

    def __dealloc__(self):
        free(self.fast_checks)

    cdef int fill_fast_checks(self) except -1:
        """Makes a fast check of each guard."""
        cdef Py_ssize_t i, n = PyList_GET_SIZE(self.all)
        cdef FastCheck* checks = <FastCheck*>realloc(
            self.fast_checks, max(n, 1) * sizeof(FastCheck))
        if checks == NULL:
            raise MemoryError
        self.fast_checks, self.n_fast_checks = checks, n
        for i in range(n):
            guard = <Guard>self.all[i]
            checks[i] = FastCheck(<PyObject*>guard.holder, NULL, NULL, 0, SLOW)
            if type(guard) is DictGuard and (<DictGuard>guard).now != NULL:
                checks[i].kind, checks[i].now = BY_VERSION, (<DictGuard>guard).now
                if (<DictGuard>guard).owner is not None:
                    checks[i].owner = <PyObject*>(<DictGuard>guard).owner
            elif type(guard) is KindGuard:
                checks[i].kind = BY_CLASS
                checks[i].state = <size_t><PyObject*>(<KindGuard>guard).kind
        return 0

    cdef bint hold(self) except -1:
        cdef Py_ssize_t i
        cdef FastCheck* check
        cdef Guard guard
        if self.n_fast_checks != PyList_GET_SIZE(self.all):
            self.fill_fast_checks()
        for i in range(self.n_fast_checks):
            check = &self.fast_checks[i]
            if check.kind == BY_VERSION:
                if check.state and check.now[0] == check.state and (
                        check.owner == NULL or HAS_DICT(check.owner, check.holder)):
                    continue
            elif check.kind == BY_CLASS and <size_t>Py_TYPE(check.holder) == check.state:
                continue
            guard = <Guard>self.all[i]
            if not guard.holds():
                return False
            if check.kind == BY_VERSION:
                check.state = (<DictGuard>guard).version
        for pair in self.hooks:
            if not has_keys(<list>pair[0], <tuple>pair[1]):
                return False
        return True

    def __len__(self):
        return len(self.all)

    def broken(self):
        """The first guard that does not hold, "hooks" where hooks differ, or None."""
        cdef Guard each
        for each in self.all:
            if not each.holds():
                return each
        return None if self.hold() else "hooks"


# ---- functions that run without instrumentation --------------------------------------------------

cdef extern from "Python.h":
    ctypedef struct PyFrameObject
    ctypedef struct PyThreadState:
        int (*c_profilefunc)(PyObject*, PyFrameObject*, int, PyObject*) except -1
        PyObject* c_profileobj
    PyThreadState* PyThreadState_Get()
    int PyTrace_CALL, PyTrace_C_CALL
    struct PyCodeObject
    PyCodeObject* PyFrame_GetCode(PyFrameObject* frame)
    void PyEval_SetProfile(int (*f)(PyObject*, PyFrameObject*, int, PyObject*) except -1,
                           PyObject* arg)


cdef object WARN = warn          # it stays while the library's code has it

cdef int on_event(PyObject* watch, PyFrameObject* frame, int what, PyObject* arg) except -1:
    if what == PyTrace_CALL:
        code = PyFrame_GetCode(frame)
        began = <object><PyObject*>code
        Py_XDECREF(<PyObject*>code)                  # which was new
        (<Watch>watch).began(began)
    elif what == PyTrace_C_CALL and arg == <PyObject*>WARN:
        (<Watch>watch).on_warning()
    return 0


@cython.binding(False)            # methods check their `self`
cdef class Watch:
    """Calls `on_begin` with the code of each Python function that this thread begins, under `with`,
    until that returns True for it, and `on_warning` at each warning. It takes the place of a
    profiler, which is suspended meanwhile."""

    cdef object on_begin, on_warning
    cdef dict seen
    cdef int suspended              # how many calls of `without` are under way
    cdef PyObject* before
    cdef int (*function)(PyObject*, PyFrameObject*, int, PyObject*) except -1

    def __init__(self, on_begin, on_warning):
        self.on_begin, self.on_warning, self.seen = on_begin, on_warning, {}

    cdef int began(self, code) except -1:
        if id(code) not in self.seen and self.on_begin(code):
            self.seen[id(code)] = code
        return 0

    def without(self, function, *args):
        """The result of a function of the library's, which runs unwatched."""
        if self.suspended == 0:
            PyEval_SetProfile(NULL, NULL)        # each event costs time
        self.suspended += 1
        try:
            return function(*args)
        finally:
            self.suspended -= 1
            if self.suspended == 0:
                PyEval_SetProfile(on_event, <PyObject*>self)

    def __enter__(self):
        cdef PyThreadState* thread = PyThreadState_Get()
        self.function, self.before = thread.c_profilefunc, thread.c_profileobj
        Py_XINCREF(self.before)
        PyEval_SetProfile(on_event, <PyObject*>self)

    def __exit__(self, *error):
        PyEval_SetProfile(self.function, self.before)
        Py_XDECREF(self.before)


cdef tuple keys_in(list kinds):
    """The keys of the hooks in some dicts."""
    return tuple([key for each in kinds for key in each])


cdef bint has_keys(list kinds, tuple keys) except -1:
    """Whether there are these hooks and no others; mostly there are none."""
    cdef Py_ssize_t count = 0
    for each in kinds:
        count += PyDict_Size(each)
    return count == len(keys) and (count == 0 or keys_in(kinds) == keys)
