"""Chains of element-wise steps as one tile program: each value stays in the L1 cache.

A step joins the one before it where it alone reads that one's result, and both work element by
element in one dtype. The loops are the same, in the same order, so the bits stay.

What fits in the L1 cache is left as it is, since a step writes over its operand (arena.pyx), and
has no tile to begin. Of 16,384 float32 a chain of five steps took 4.3 us as a tile program and 5.2
one after the other, of 200,000 60 and 97.
"""

from cpython.object cimport PyObject
from libc.string cimport memcmp

from tensorlib._core.base.dtypes cimport COMPLEX_KIND, ITEMSIZE, KIND
from tensorlib._core.tensor.tensor cimport Tensor, same_shape
from tensorlib._core.tiles.program cimport (
    MAX_CONSTANTS, MAX_INPUTS, MAX_STEPS, TileLoops, TileProgram,
)
from tensorlib.program.run.steps cimport ARENA, FUSED, GONE, LOOP, PROGRAM, Root, Step, set_tiles

from tensorlib._core.tensor.numbers import item


cdef enum:
    FEW = 512                # elements of one tile
    MANY = 1 << 15           # bytes that do not stay in the L1 cache beside others


cdef int fuse(list steps, dict root_of) except -1:
    """Joins steps that follow each other. A step that another one does becomes FUSED."""
    cdef Step before = None, step
    cdef Py_ssize_t i, at = 0
    for i, step in enumerate(steps):
        if not is_plain(step):
            before = None
            continue
        if before is not None and may_join(before, step, i, root_of):
            join(before, step, at, i, root_of)
        before, at = step, i
    for step in steps:                   # a program is made once, for all that were joined
        if step.joined is not None and step.kind != FUSED:
            set_tiles(step, TileProgram(len(step.tensors), step.joined, step.numbers), step.dtype)
        step.joined = step.numbers = None
    return 0


cdef object loops_of(Step step):
    """The loops of a step and of those that were joined to it."""
    return step.tiles.steps if step.joined is None else step.joined


cdef object constants_of(Step step):
    """The constants of a step and of those that were joined to it."""
    return step.tiles.constants if step.joined is None else step.numbers


cdef bint is_plain(Step step) noexcept:
    """Whether a step works element by element in one floating dtype, which its result has."""
    cdef const TileLoops* program
    cdef Tensor x
    cdef int i
    if step.kind != LOOP and step.kind != PROGRAM or not step.out.packed:
        return False
    if KIND[step.dtype] == COMPLEX_KIND:      # whose numbers are no constants of a program
        return False
    program = step.program
    for i in range(program.n_inputs + program.n_constants + program.n_steps):
        if program.dtypes[i] != step.dtype:
            return False
    for x in step.tensors:
        if x.type != step.dtype:
            return False
    return step.out.type == step.dtype and program.n_steps > 0


cdef bint may_join(Step before, Step step, Py_ssize_t i, dict root_of) except -1:
    """Whether a step may do what the one before it does, of which it alone reads the result."""
    cdef Root root = root_of[<size_t><PyObject*>before.out.storage]
    cdef Tensor x
    cdef bint reads = False
    for x in step.tensors:
        reads = reads or x is before.out
        if x.storage is before.out.storage and x is not before.out:
            return False
    if FEW < step.out.numel_ and step.out.numel_ * ITEMSIZE[step.out.type] < MANY:
        return False
    return (reads and root.source == ARENA and root.last == i and before.dtype == step.dtype
            and same_shape(before.out, step.out)
            and (step.out.storage is not before.out.storage or len(root.members) == 1)
            and len(loops_of(before)) + len(loops_of(step)) <= MAX_STEPS)


cdef tuple parts_of(Step before, Step step):
    """The steps, inputs and constants of the program that does two steps, one after the other.

    Numbers become constants.
    """
    cdef list inputs = [], constants = [], found = []
    cdef dict slot_of = {}               # ("i", place) or ("c", place) or ("s", place) of a slot
    cdef Step one
    cdef Tensor x
    result = None
    for one in (before, step):
        slots = []
        for x in one.tensors:
            if one is step and x is before.out:
                slots.append(result)
            elif x.is_scalar:
                slots.append(("c", place_in(constants, item(x))))
            else:
                slots.append(("i", place_of(inputs, x)))
        for value in constants_of(one):
            slots.append(("c", place_in(constants, value)))
        for name, taken in loops_of(one):
            found.append((name, [slots[k] for k in taken]))
            slots.append(("s", len(found) - 1))
        result = slots[len(slots) - 1]
    begins = {"i": 0, "c": len(inputs), "s": len(inputs) + len(constants)}
    return ([(name, tuple([begins[kind] + place for kind, place in taken]))
             for name, taken in found], inputs, constants)


cdef Py_ssize_t place_of(list tensors, Tensor x) except -1:
    """The place of a tensor in a list, to which it is added if it is not there."""
    cdef Py_ssize_t i
    for i in range(len(tensors)):
        if tensors[i] is x:
            return i
    tensors.append(x)
    return len(tensors) - 1


cdef Py_ssize_t place_in(list constants, value) except -1:
    """The place of a number in a list, to which it is added if it is not there, bit by bit."""
    cdef Py_ssize_t i
    cdef double number = value, other
    for i in range(len(constants)):
        other = constants[i]
        if memcmp(&number, &other, sizeof(double)) == 0:
            return i
    constants.append(number)
    return len(constants) - 1


cdef int join(Step before, Step step, Py_ssize_t at, Py_ssize_t i, dict root_of) except -1:
    """Makes a step do what the one before it, `at`, does as well, if both fit in one program."""
    cdef Tensor x
    cdef Root root
    parts, inputs, constants = parts_of(before, step)
    if len(inputs) > MAX_INPUTS or len(constants) > MAX_CONSTANTS:
        return 0
    step.tensors = inputs
    for x in inputs:
        root = root_of.get(<size_t><PyObject*>x.storage)
        if root is not None:
            root.last = max(root.last, i)
    step.joined, step.numbers = parts, constants
    before.kind = FUSED
    root = root_of[<size_t><PyObject*>before.out.storage]
    if root.first == at and before.out.storage is not step.out.storage:
        root.source = GONE                # its elements are in tiles alone
    return 0
