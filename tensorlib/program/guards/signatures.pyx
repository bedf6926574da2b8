"""Signatures of calls, the keys of the trace cache: types, shapes and layouts of the arguments."""

cimport cython
from libc.stdlib cimport free, realloc
import numpy as np

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MIN

from tensorlib._core.base.dtypes cimport default_float
from tensorlib._core.base.recursion cimport enter, leave
from tensorlib._core.base.storage cimport Storage, allocate, first_version, untracked
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.node cimport Node
from tensorlib._core.tensor.meta cimport is_meta
from tensorlib._core.tensor.tensor cimport Tensor, over_storage, requires_grad, same_shape
from tensorlib.program.guards.guarded cimport Guards
from tensorlib.program.guards.slots cimport Slot
from tensorlib.program.guards.values cimport fields_of, is_same, items_of, members_of, snapshot

from tensorlib._core.base.region import set_without_memory

# The kinds of arguments: a tensor, a container or an object with fields, an array of NumPy's, and
# any other value.
cdef object TENSOR = object()
cdef object PARTS = object()
cdef object ARRAY = object()
cdef object OTHER = object()


@cython.binding(False)            # methods check their `self`
cdef class Signature:
    """What calls have in common that do the same operations.

    The structure of the arguments, the layout and dtype of each tensor and whether it requires a
    gradient, which arguments are the same tensor, and the value of all else.
    others: the other arguments, which are no tensors and no containers. opaque: the name of the
    type of an argument whose value is not compared, or "". bare: the numbers of the tensors that
    must have no `.grad`. sources: leaves from outside, whose gradients a replay is given after the
    arguments, and slots.
    """

    def __init__(self, tuple args, dict kwargs):
        self.examples, self.requires, self.kinds, self.others, self.opaque = [], [], [], [], ""
        self.bare, self.sources, self.more = (), [], []
        self.grad, self.default_dtype = mode().grad, default_float()
        self.inference = first_version()[0]
        self.structure = self.structure_of((args, kwargs), [])
        self.flat = not kwargs and len(self.examples) == len(args)
        for x in args:
            self.flat = self.flat and isinstance(x, Tensor)

    cdef tuple structure_of(self, value, list seen):
        """Nested tuples that `matches` compares with another argument; it records the tensors.

        seen: the tensors so far.
        """
        cdef Py_ssize_t i
        if isinstance(value, Tensor):
            for i, x in enumerate(seen):
                if x is value:
                    return (TENSOR, i)
            seen.append(value)
            self.examples.append(like_on_meta(value))
            self.requires.append(place_of_argument(<Tensor>value))
            self.kinds.append(type(value))
            return (TENSOR, len(seen) - 1)
        if is_array(value):
            self.opaque = type(value).__name__
            return (ARRAY,)
        is_container = isinstance(value, (dict, tuple, list))
        fields = fields_of(value)
        if fields is None and not is_container:
            self.others.append(value)
            return (OTHER, snapshot(value))
        enter(b" in the arguments of a compiled function")
        try:
            return (PARTS, type(value),
                    self.structure_of_parts(value, seen) if is_container else None,
                    None if fields is None else self.structure_of_parts(fields, seen))
        finally:
            leave()

    cdef tuple structure_of_parts(self, container, list seen):
        """The keys of a dict, or None for other containers, and the structures of its members."""
        if isinstance(container, dict):
            container = items_of(container)
            return list(container), [self.structure_of(x, seen) for x in container.values()]
        return None, [self.structure_of(x, seen) for x in members_of(container)]

    cpdef tuple tensors_of(self, tuple args, dict kwargs):
        """The tensors of a call of this kind, each once; None for a call of another kind."""
        cdef list found = []
        if self.grad != mode().grad or self.default_dtype != default_float() or (
                self.inference != first_version()[0]):
            return None
        if self.flat and not kwargs:
            if not self.matches_tensors(args):
                return None
        elif self.matches(self.structure, (args, kwargs), found) and all_differ(tuple(found)):
            args = tuple(found)
        else:
            return None
        if not self.are_bare(args):
            return None
        return self.with_more(args) if self.sources else args

    def take_more(self, list given):
        """Has a replay be given the gradients that leaves have, and what is in slots: `given` has
        pairs of the two."""
        self.sources = [source for source, _ in given]
        self.more = [like_on_meta(x) for _, x in given]

    cdef tuple with_more(self, tuple tensors):
        """The tensors of a call, with the gradients of the leaves and those in the slots; None
        where one is of another kind, or what is in a slot is another one of these."""
        cdef list found = [*tensors]
        cdef Py_ssize_t i
        for i in range(len(self.sources)):
            source = self.sources[i]
            x = (<Slot>source).found() if type(source) is Slot else (<Tensor>source).gradient
            if type(x) is not Tensor or not is_like(<Tensor>x, <Tensor>self.more[i], 0):
                return None
            if type(source) is Slot:
                for y in found:
                    if y is x:
                        return None
            found.append(x)
        return tuple(found)

    cdef bint are_bare(self, tuple tensors) except -1:
        """Whether the tensors that must have no `.grad` have none."""
        for place in self.bare:
            if (<Tensor>tensors[<Py_ssize_t>place]).gradient is not None:
                return False
        return True

    def why(self, args, kwargs):
        """Why a call is of another kind, in words."""
        cdef Signature other = Signature(args, kwargs)
        if self.grad != other.grad or self.inference != other.inference:
            return "the grad mode is another"
        if self.default_dtype != other.default_dtype:
            return "the default dtype is another"
        for i, (x, y) in enumerate(zip(self.examples, other.examples)):
            if not has_layout(<Tensor>x, <Tensor>y):
                return (f"tensor {i} of the arguments is {y.dtype} of shape {tuple(y.shape)} and "
                        f"strides {y.stride()}, and was {x.dtype} of shape {tuple(x.shape)} and "
                        f"strides {x.stride()}")
            if self.kinds[i] is not other.kinds[i]:
                return f"tensor {i} of the arguments is of another class"
            if self.requires[i] != other.requires[i]:
                return f"tensor {i} of the arguments has another place in a graph"
        for x, y in zip(self.others, other.others):
            if not is_same(x, y):
                return f"an argument is another {type(y).__name__}"
        if self.bare or self.sources:
            return "a gradient was there before, or it or what is in a slot is of another kind"
        return "the arguments have another structure"

    cdef bint matches_tensors(self, tuple args) except -1:
        """Whether arguments are as many tensors, all different, each of which fits."""
        cdef Py_ssize_t i, n = len(args)
        if n != len(self.examples):
            return False
        for i in range(n):
            if type(args[i]) is not self.kinds[i] or not self.fits(<Tensor>args[i], i):
                return False
        return all_differ(args)

    cdef bint fits(self, Tensor x, Py_ssize_t i) except -1:
        """Whether a tensor has the layout and the place in a graph that tensor `i` had."""
        return can_be(x, <Tensor>self.examples[i]) and (
            place_of_argument(x) == <int>self.requires[i])

    cdef bint matches(self, tuple structure, value, list found) except -1:
        """Whether a value has a structure; its tensors are added to `found`, those that should
        differ as often as they occur."""
        cdef Py_ssize_t i, place
        cdef object kind = structure[0]
        if kind is TENSOR:
            place = structure[1]
            if type(value) is not self.kinds[place]:
                return False
            if place < len(found):
                return found[place] is value
            found.append(value)
            return self.fits(<Tensor>value, place)
        if kind is OTHER:
            return is_same(structure[1], value)
        if kind is ARRAY:
            return is_array(value)
        if type(value) is not structure[1]:
            return False
        if structure[2] is not None and not self.parts_match(<tuple>structure[2], value, found):
            return False
        return structure[3] is None or self.parts_match(
            <tuple>structure[3], fields_of(value), found)

    cdef bint parts_match(self, tuple structure, value, list found) except -1:
        """Whether the members of a container have a structure, as of `structure_of_parts`."""
        cdef Py_ssize_t i
        cdef list names = structure[0], parts = structure[1]
        value = members_of(value) if names is None else items_of(value)
        if len(parts) != len(value):
            return False
        if names is not None:
            for i, name in enumerate(value):
                if not is_same(names[i], name):
                    return False
            value = value.values()
        for i, part in enumerate(value):
            if not self.matches(<tuple>parts[i], part, found):
                return False
        return True


@cython.binding(False)            # methods check their `self`
cdef class Conditions:
    """What has to be as it was, beside the arguments, for a call to be replayed.

    values: tensors from outside that a replay reads, whose layouts and dtypes stay. inspected:
    others for which that holds, since the function has read something of them, such as a shape.
    leaves: tensors that have no hooks. bare: tensors that have no `.grad`. guards: None for none.
    pairs: how far apart those lie in memory that share it, by their numbers (`pairs_in`).
    addresses: of the elements of each, when the pairs were last compared.
    """

    def __init__(self, list values, list leaves, list bare, Guards guards=None,
                 list inspected=None):
        self.values, self.leaves, self.bare, self.guards = values, leaves, bare, guards
        self.inspected = [] if inspected is None else inspected
        self.examples = [like_on_meta(x) for x in values + self.inspected]
        self.requires = [place_in_graph(<Tensor?>x) for x in values + self.inspected]
        self.all = values + self.inspected
        self.pairs = pairs_in(self.all)
        self.addresses = <size_t*>realloc(self.addresses, max(len(self.all), 1) * sizeof(size_t))
        if self.addresses == NULL:
            raise MemoryError
        for i, x in enumerate(self.all):
            self.addresses[i] = <size_t>(<Tensor>x).data_pointer

    def __dealloc__(self):
        free(self.addresses)

    def why(self):
        """What is not as it was, in words, or the guard that does not hold; None for nothing."""
        for i, x in enumerate(self.all):
            if not self.is_as_inspected(<Tensor>x, i):
                return (f"a tensor from outside of shape {tuple(self.examples[i].shape)} is now of "
                        f"shape {tuple(x.shape)}, or has other strides, another dtype or another "
                        "place in a graph")
        if not self.lie_as_before():
            return "tensors from outside share memory in another way"
        if not are_without_grads(self.bare):
            return "a gradient was there before"
        if not are_without_hooks(self.leaves):
            return "a leaf has a hook"
        return None if self.guards is None else self.guards.broken()

    cdef bint is_as_inspected(self, Tensor x, Py_ssize_t i) noexcept:
        """Whether tensor `i` is laid out as it was, with the place in the graph that it had."""
        return has_layout(x, <Tensor>self.examples[i]) and (
            place_in_graph(x) == <int>self.requires[i])

    cdef bint lie_as_before(self) except -1:
        """Whether those tensors share memory that did, as far apart: `data` of each may be set."""
        cdef Py_ssize_t i, k, distance, n = len(self.all)
        cdef Tensor x
        for i in range(n):
            x = <Tensor>self.all[i]
            if <size_t>x.data_pointer == self.addresses[i]:
                continue
            for k in range(n):
                distance = APART if i == k else overlap(x, <Tensor>self.all[k])
                if distance == APART:
                    if self.pairs and i * n + k in self.pairs:
                        return False
                elif self.pairs.get(i * n + k) != distance:
                    return False
        for i in range(n):
            self.addresses[i] = <size_t>(<Tensor>self.all[i]).data_pointer
        return True

    cpdef bint hold(self) except -1:
        """Whether all is as it was."""
        cdef Py_ssize_t i, n = len(self.values)
        for i in range(n):
            if not is_like(<Tensor>self.values[i], <Tensor>self.examples[i],
                           <int>self.requires[i]):
                return False
        for i in range(len(self.inspected)):
            if not self.is_as_inspected(<Tensor>self.inspected[i], n + i):
                return False
        if not (self.lie_as_before() and are_without_grads(self.bare)
                and are_without_hooks(self.leaves)):
            return False
        return self.guards is None or self.guards.hold()


cdef bint is_array(value) except -1:
    """Whether a value is an array, or a record that is part of one, by its class alone."""
    return issubclass(type(value), (np.ndarray, np.void))


cdef bint all_differ(tuple tensors) except -1:
    """Whether no two of these are the same tensor."""
    cdef Py_ssize_t i, k, n = len(tensors)
    if n > 16:                                   # above which a set takes less time
        return len({id(x) for x in tensors}) == n
    for i in range(n):
        for k in range(i):
            if tensors[k] is tensors[i]:
                return False
    return True


cdef Py_ssize_t APART = PY_SSIZE_T_MIN       # no memory is as large

cdef Py_ssize_t overlap(Tensor x, Tensor y) noexcept:
    """How many bytes a tensor lies after another one; APART if their storages do not overlap."""
    if x.storage is not y.storage and (
            x.storage.data >= y.storage.data + y.storage.nbytes
            or y.storage.data >= x.storage.data + x.storage.nbytes):
        return APART
    return x.data_pointer - y.data_pointer


cdef dict pairs_in(list tensors):
    """Of each two that share memory, one of n and another, i * n + k, how far the first lies after
    the second."""
    cdef Py_ssize_t n = len(tensors)
    cdef dict found = {}
    order = sorted(range(n), key=lambda i: place_in_memory(tensors[i]))
    for start, i in enumerate(order):
        for place in range(start + 1, n):
            k = order[place]
            if not begins_before_the_end(tensors[k], tensors[i]):
                break
            distance = overlap(tensors[i], tensors[k])
            if distance != APART:
                found[i * n + k], found[k * n + i] = distance, -distance
    return found


cdef bint begins_before_the_end(Tensor x, Tensor y) noexcept:
    """Whether the storage of one tensor begins before that of another one ends."""
    return x.storage.data < y.storage.data + y.storage.nbytes


cdef bint is_like(Tensor x, Tensor example, int place) noexcept:
    """Whether a tensor is laid out as another one, has memory, and this place in the graph."""
    return can_be(x, example) and place_in_graph(x) == place


cdef inline bint can_be(Tensor x, Tensor example) noexcept:
    """Whether a tensor is laid out as another one, and has memory."""
    return has_layout(x, example) and not is_meta(x)


cdef int place_in_graph(Tensor x) noexcept:
    """0 for what requires no gradient, 1 for a leaf, 2 for what an operation made; 3 more for what
    was made in inference mode."""
    cdef int place = 0 if not requires_grad(x) else 1 if x.grad_node is None else 2
    return place + 3 if untracked(x.storage) else place


cdef inline int place_of_argument(Tensor x) noexcept:
    """`place_in_graph`, and 6 more where a hook waits for the gradient."""
    cdef int place = place_in_graph(x)
    return place + 6 if requires_grad(x) and has_hooks(x) else place


cdef inline bint has_hooks(Tensor x) noexcept:
    """Whether a hook waits for the gradient of a tensor."""
    if x.grad_node is not None:
        return (<Node>x.grad_node).hooks is not None and len(<dict>(<Node>x.grad_node).hooks) > 0
    return x.hooks is not None and len(<dict>x.hooks) > 0


cpdef bint are_without_hooks(list tensors) except -1:
    """Whether no hook of a user waits for the gradient of any of these."""
    cdef Tensor x
    for x in tensors:
        if has_hooks(x):
            return False
    return True


def memory_of(Tensor x):
    """The address, dtype, sizes and strides of a tensor, as a key."""
    cdef list sizes = []
    cdef int d
    for d in range(x.ndim_):
        sizes.append(x.dims[d])
        sizes.append(x.steps[d])
    return (<size_t>x.data_pointer, x.type, *sizes)


def is_number(Tensor x):
    """Whether a tensor stands for a Python number, such as the 2 of `x ** 2` in a graph."""
    return x.is_scalar


def storage_of(Tensor x):
    """The address of the storage of a tensor."""
    return <size_t>x.storage.data


def is_borrowed(Tensor x):
    """Whether the memory of a tensor is that of another library's object."""
    return x.storage.owner is not None


def place_in_memory(Tensor x):
    """The addresses of the storage of a tensor, and of its first element."""
    return <size_t>x.storage.data, <size_t>x.data_pointer


def can_be_given(x):
    """Whether replays can be given what is laid out as a value: a tensor that has memory, and no
    place in a graph."""
    return type(x) is Tensor and is_like(<Tensor>x, <Tensor>x, 0)


def gradient_of(Tensor x):
    """The `.grad` of a tensor, without a report of the read to a capture."""
    return x.gradient


cpdef bint are_without_grads(list leaves) except -1:
    """Whether none of these leaves has a `.grad`."""
    cdef Tensor x
    for x in leaves:
        if x.gradient is not None:
            return False
    return True


cdef bint has_layout(Tensor x, Tensor y) noexcept:
    """Whether dtype, shape and all strides are the same, also those of dimensions of size 1: views
    keep them, and `stride()` gives them."""
    cdef int d
    if x.type != y.type or not same_shape(x, y):
        return False
    for d in range(x.ndim_):
        if x.steps[d] != y.steps[d]:
            return False
    return True


cdef bint laid_out_as(Tensor x, Tensor y) noexcept:
    """Whether dtype, shape and the strides that kernels use are the same."""
    cdef int d
    if x.type != y.type or not same_shape(x, y):
        return False
    for d in range(x.ndim_):
        if x.dims[d] != 1 and x.steps[d] != y.steps[d]:
            return x.numel_ == 0
    return True


cdef Tensor like_on_meta(Tensor x):
    """A tensor without memory that is laid out as another one."""
    cdef Storage storage
    before = set_without_memory(True)
    try:
        storage = allocate(x.storage.nbytes)
    finally:
        set_without_memory(before)
    return over_storage(storage, storage.data + (x.data_pointer - x.storage.data), x.type, x.ndim_,
                        x.dims, x.steps)
