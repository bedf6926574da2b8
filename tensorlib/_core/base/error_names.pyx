"""Errors in terms of the public function that was called.

Errors about arguments begin with the name of the function and say what it takes. The traceback
shows only the first of consecutive frames of the library; Cython adds only one for compiled
functions (setup.py). TENSORLIB_TRACEBACK=full shows all.

The functions of all operations of one kind are closures of one function named `function`, which is
the name in Cython's own errors.
"""

from cpython.object cimport PyObject

import inspect
import os
import re

from tensorlib import _kernels
from tensorlib._core.base.storage import OutOfMemoryError

cdef extern from "Python.h":
    struct CallableType "_typeobject":
        const char* tp_name

# The paths of our code: Cython's frames have the path of the source at build time.
cdef tuple OWN = (os.path.dirname(_kernels.__path__[0]) + os.sep, *(
    f"tensorlib/{room}/" for room in ("_core", "autograd", "program")))
cdef bint ALL_FRAMES = os.environ.get("TENSORLIB_TRACEBACK") == "full"


class IndexOutOfRange(IndexError, RuntimeError):
    """An index is out of range: an IndexError, and a RuntimeError as in PyTorch's `gather`."""

    __module__ = "tensorlib"


class OutOfRangeError(OverflowError, RuntimeError, ValueError):
    """A number that its dtype can't hold. Python and NumPy raise OverflowError here, PyTorch
    RuntimeError or ValueError, depending on where it notices."""

    __module__ = "tensorlib"


# Messages of Python and Cython about arguments.
cdef object UNKNOWN = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'$")
cdef str TOO_LARGE = "Python int too large to convert to C"
cdef object TOO_FEW = re.compile(
    r"(\w+)\(\) (takes (exactly|at least) \d+ positional argument|missing \d+ required)")


# ---- names that are near -------------------------------------------------------------------------

def nearest(name, names):
    """Up to three names similar to `name`, the most similar first."""
    near = sorted(((likeness(name, other), other) for other in names), reverse=True)[:3]
    return [other for ratio, other in near if ratio >= 0.6]


def likeness(str a, str b):
    """Twice the length of the longest common subsequence, over both lengths: 1 for equal words.

    difflib has a similar measure, but importing it takes a twentieth of our whole import.
    """
    row = [0] * (len(b) + 1)                 # of the table: for prefixes of b and one prefix of a
    for x in a:
        diagonal = 0
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], diagonal + 1 if x == y else max(row[j], row[j - 1])
    return 2 * row[-1] / (len(a) + len(b))


# ---- names of types ------------------------------------------------------------------------------

def type_name(value):
    """The name of a value's type for errors, with the package unless that is Python, ours or the
    script itself, since PyTorch has a Tensor too."""
    kind = type(value)
    package = str(kind.__module__).partition(".")[0]
    return kind.__name__ if package in ("builtins", "tensorlib", "__main__") else (
        f"{package}.{kind.__name__}")


def with_remedy(value):
    """The type of a value that should be a Tensor, and how to convert it to one."""
    kind = type_name(value)
    return kind + ("; tensorlib.as_tensor makes one" if kind in ("list", "numpy.ndarray") else "")


def print_as(kind, str name):
    """Sets the public name of a compiled class, such as tensorlib.Tensor, for repr and pickles."""
    cdef bytes text = name.encode()
    KEPT.append(text)
    (<CallableType*><PyObject*>kind).tp_name = text


cdef list KEPT = []        # keeps alive the names that types point to


# ---- errors --------------------------------------------------------------------------------------

def shown(error, function, given=()):
    """An error as the caller of `function` should see it; `given` are keywords of the call.

    An error about the arguments becomes one that says what the function takes.
    """
    if isinstance(error, MemoryError):
        return of_this_machine(error, function)
    if type(error) is OverflowError and str(error).startswith(TOO_LARGE):
        return with_trace_of(error, OutOfRangeError(
            f"{function.__name__}: an argument is an int of more than 64 bits"))
    if type(error) is TypeError:
        explain(error, function, given)
    if not ALL_FRAMES:
        error.__traceback__ = shortened(error.__traceback__)
    return error


def renamed(error, str before, str after):
    """An error of an operation that implements another one, with the name of that one."""
    cdef str text = str(error)
    if error.args and text.startswith(f"{before}:"):
        error.args = (after + text[len(before):], *error.args[1:])
    return error


cdef object of_this_machine(error, function):
    """A MemoryError of Python or NumPy as an OutOfMemoryError."""
    if isinstance(error, OutOfMemoryError):
        return error
    made = OutOfMemoryError(f"{function.__name__}: {error}" if error.args else
                            f"{function.__name__}: out of memory")
    return with_trace_of(error, made)


cdef object with_trace_of(error, made):
    """An error in the place of another one."""
    made.__traceback__ = error.__traceback__ if ALL_FRAMES else shortened(error.__traceback__)
    return made


cdef int explain(error, function, given) except -1:
    """Rewrites an error about arguments to say what the function takes."""
    cdef str text = str(error), name = function.__name__
    found = UNKNOWN.match(text)
    if found and found[1] in ("function", name):
        names = [p for p, one in parameters(function).items()
                 if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
                 and p not in ("self", *given)]
        error.args = (unknown_keyword(name, found[2], names),)
        return 0
    found = TOO_FEW.match(text)
    if found and found[1] in ("function", name):
        missing = [p for p, one in parameters(function).items()
                   if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
        count = re.search(r"\((\d+) given\)", text)
        if count and missing:
            missing = [p for p in missing[int(count[1]):] if p not in given]
            if missing:
                error.args = (f"{name}() missing the argument "
                              f"{' and '.join(map(repr, missing))}",)
                return 0
    if text.startswith("function() "):
        error.args = (name + text[len("function"):],)
    return 0


cpdef str unknown_keyword(str name, str keyword, names):
    """The message for an unknown keyword of a function that takes these names."""
    cdef list near = nearest(keyword, names)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else (
        f"; it takes {', '.join(names)}" if names else "")
    return f"{name}() got an unexpected keyword argument {keyword!r}{hint}"


def parameters(function):
    """The parameters of a public function by name; empty if they are not known."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


cdef object shortened(trace):
    """A traceback in which consecutive frames of the library are reduced to the first one."""
    cdef list kept = []
    cdef bint inside = False, before
    while trace is not None:
        before, inside = inside, trace.tb_frame.f_code.co_filename.startswith(OWN)
        if not (before and inside):
            kept.append(trace)
        trace = trace.tb_next
    for i, one in enumerate(kept):
        one.tb_next = kept[i + 1] if i + 1 < len(kept) else None
    return kept[0] if kept else None


def from_the_users_line(error):
    """An error whose traceback begins with the first frame that is not the library's, for one of
    the library's functions that calls those of users, and raises it again."""
    if not ALL_FRAMES:
        trace = shortened(error.__traceback__)
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OWN):
            trace = trace.tb_next
        error.__traceback__ = trace
    return error
