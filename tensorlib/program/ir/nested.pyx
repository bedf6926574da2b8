"""Values nested in dicts, tuples, lists and slices, such as the arguments of calls.

It is compiled, since programs ask each call many times which variables it reads. Too deep a nesting
raises RecursionError, as in Python's own functions.
"""

from tensorlib._core.base.recursion cimport enter, leave
from tensorlib._core.tensor.tensor cimport Tensor

from tensorlib._core.base.dtypes import dtype as DType
from tensorlib._core.index.keys import Index

cdef object VARIABLE = None          # the class Variable
cdef frozenset CONTAINERS = frozenset((tuple, list, dict, slice))
cdef char* WHERE = b" in nested arguments"


def look_for(type variable):
    """Sets the class of variables, which model.py, a higher module, defines."""
    global VARIABLE
    VARIABLE = variable


def gather(value, list found):
    """Adds the variables in nested dicts, tuples, lists and slices to a list."""
    add(value, found)


def gather_values(dict values, list found):
    """Adds the variables in the values of a dict to a list."""
    for value in values.values():
        add(value, found)


cdef int add(value, list found) except -1:
    if type(value) is VARIABLE:
        found.append(value)
    elif type(value) in CONTAINERS:
        enter(WHERE)
        try:
            add_parts_of(value, found)
        finally:
            leave()
    return 0


cdef int add_parts_of(value, list found) except -1:
    cdef object kind = type(value)
    if kind is tuple:
        for part in <tuple>value:
            add(part, found)
    elif kind is list:
        for part in <list>value:
            add(part, found)
    elif kind is dict:
        for part in (<dict>value).values():
            add(part, found)
    else:
        add(value.start, found)
        add(value.stop, found)
        add(value.step, found)
    return 0


def mapped(value, change):
    """Nested dicts, tuples, lists and slices with `change` of each variable in its place."""
    return with_change(value, change)


cdef object with_change(value, change):
    if type(value) is VARIABLE:
        return change(value)
    if type(value) not in CONTAINERS:
        return value
    enter(WHERE)
    try:
        return parts_with_change(value, change)
    finally:
        leave()


cdef object parts_with_change(value, change):
    cdef object kind = type(value)
    if kind is tuple:
        return tuple([with_change(part, change) for part in <tuple>value])
    if kind is list:
        return [with_change(part, change) for part in <list>value]
    if kind is dict:
        return {key: with_change(part, change) for key, part in (<dict>value).items()}
    return slice(with_change(value.start, change), with_change(value.stop, change),
                 with_change(value.step, change))


def tensors_in(value):
    """The tensors in nested tuples, lists, dicts, slices and index expressions, as a tuple."""
    cdef list found = []
    add_tensors(value, found)
    return tuple(found)


cdef int add_tensors(value, list found) except -1:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list, dict, slice, Index)):
        enter(WHERE)
        try:
            add_tensors_of(value, found)
        finally:
            leave()
    return 0


cdef int add_tensors_of(value, list found) except -1:
    if isinstance(value, (tuple, list)):
        for part in value:
            add_tensors(part, found)
    elif isinstance(value, dict):
        for part in value.values():
            add_tensors(part, found)
    elif isinstance(value, slice):
        add_tensors((value.start, value.stop, value.step), found)
    else:
        add_tensors(tuple(value.places), found)
    return 0


def parts_of(list calls):
    """The calls and all objects in their arguments as a flat list, with the attributes of
    variables.

    While these are the same objects, the calls are the same, and what was made for them is valid.
    """
    cdef list found = []
    for call in calls:
        found.append(call)
        found.append(call.type)
        add_parts(call.inputs, found)
        add_parts(call.attributes, found)
        found.extend(call.outputs)
    return found


cdef int add_parts(value, list found) except -1:
    cdef object kind = type(value)
    if kind is not dict and kind is not tuple and kind is not list:
        found.append(value)
        if kind is VARIABLE:
            found.append(value.value)
            found.append(value.shape)
        return 0
    enter(WHERE)
    try:
        if kind is dict:
            for name, part in (<dict>value).items():
                found.append(name)
                add_parts(part, found)
        else:
            for part in value:
                add_parts(part, found)
    finally:
        leave()
    return 0


def are_same(list a, list b):
    """Whether two lists hold the same objects. (`==` of variables is an operation.)"""
    cdef Py_ssize_t i
    if len(a) != len(b):
        return False
    for i in range(len(a)):
        if a[i] is not b[i]:
            return False
    return True


def has_type(dict values, type kind):
    """Whether one of the values of a dict is of a type, and not of a subclass."""
    for value in values.values():
        if type(value) is kind:
            return True
    return False


def frozen(value):
    """A key that is equal for arguments that are the same to the bit.

    Raises: TypeError for values that have no such key.
    """
    return key(value)


cdef object key(value):
    enter(WHERE)
    try:
        return key_of(value)
    finally:
        leave()


cdef object key_of(value):
    cdef object kind = type(value)
    if kind is VARIABLE:
        return VARIABLE, id(value)
    if kind is float:
        return float, value.hex()                    # -0.0 is not 0.0
    if value is None or value is ... or kind is int or kind is bool or kind is str:
        return kind, value
    if isinstance(value, DType):
        return DType, value.name
    if isinstance(value, tuple):
        return kind.__name__, tuple([key(part) for part in <tuple>value])
    if isinstance(value, list):
        return kind.__name__, tuple([key(part) for part in <list>value])
    if kind is dict:
        return dict, tuple([(name, key((<dict>value)[name])) for name in sorted(value)])
    if kind is slice:
        return slice, key(value.start), key(value.stop), key(value.step)
    raise TypeError(f"no key for {kind.__name__}")
