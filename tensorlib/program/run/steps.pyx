"""The steps of a machine, and the memory of the values that they work on."""

cimport cython
from cpython.object cimport PyObject, PyObject_Call

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.storage cimport LINE, Storage, allocate
from tensorlib._core.products.product cimport product_to, rows_product_to
from tensorlib._core.reduce.arrange cimport fold_to
from tensorlib._core.reduce.schedule cimport SUM as FOLD_SUM
from tensorlib._core.reduce.squares cimport divide
from tensorlib._core.sweep.accumulate cimport copied_for
from tensorlib._core.tensor.tensor cimport Tensor, alias, over_storage, same_shape, set_gradient
from tensorlib._core.tiles.copies cimport copy_into
from tensorlib._core.tiles.flat cimport run_loop
from tensorlib._core.tiles.program cimport TileProgram
from tensorlib._core.tiles.run cimport run_program
from tensorlib.program.guards.signatures cimport laid_out_as

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* value)


@cython.final
cdef class Root:
    """The memory of a value: `members` are the tensors over it."""

    cdef int add(self, Tensor x) except -1:
        for member in self.members:
            if member is x:
                return 0
        self.members.append(x)
        self.offsets.append(x.data_pointer - self.meta.data)
        self.origin = <Py_ssize_t>self.offsets[0]
        return 0

    cdef int take_over(self, Root other) except -1:
        """Lies where it is when `other` is written, of the same size, over it."""
        self.members += other.members
        self.offsets += other.offsets
        self.last = other.last
        if self.source == CALLED:
            self.written_over = True
        else:
            self.source = other.source
        other.source = GONE
        return 0

    cdef int open(self) except -1:
        """Gives new memory to a value and to its guests."""
        cdef Storage storage = allocate(self.meta.nbytes)
        cdef Root guest
        self.give(storage.data, storage)
        if self.guests is not None:
            for guest in self.guests:
                guest.give(storage.data + guest.place, storage)
        return 0

    cdef int give(self, char* data, Storage storage) except -1:
        """Puts the members over memory of which the first byte is at `data`."""
        cdef Py_ssize_t i
        cdef Tensor x
        if data == self.data and (<Tensor>self.members[0]).storage is storage:
            return 0
        for i in range(len(self.members)):
            x = <Tensor>self.members[i]
            x.data_pointer = data + <Py_ssize_t>self.offsets[i]
            x.storage = storage
        self.data = data
        return 0

    cdef int take_back(self) except -1:
        return self.give(self.meta.data, self.meta)


@cython.final
cdef class Step:
    """One thing to do. What it works on is held by `tensors`, `held` and `args`."""


cdef int set_tiles(Step step, TileProgram tiles, int dtype) except -1:
    """Makes a step that of a tile program for inputs of a dtype: of its one loop, where the
    operands are runs of that dtype; a `where` also takes a mask, whose runs are shorter."""
    cdef const TileLoops* program = tiles.at(dtype)
    cdef Tensor out = step.out, x
    cdef bint simple = program.n_steps == 1 and program.n_constants == 0 and out.packed
    cdef int i
    for i, x in enumerate(step.tensors):
        step.inputs[i] = <PyObject*>x
        simple = simple and i < 3 and program.steps[0].inputs[i] == i and x.packed and (
            x.type == program.steps[0].loop.input_dtype and (x.ndim_ == 0 or same_shape(x, out)))
        step.is_scalar[i] = x.ndim_ == 0 and out.numel_ != 1 and not (
            x.is_scalar and out.numel_ * ITEMSIZE[x.type] <= LINE)
    step.n, step.tiles, step.dtype = len(step.tensors), tiles, dtype
    step.program, step.loop = program, &program.steps[0].loop
    step.kind = LOOP if simple and out.type == step.loop.result else PROGRAM
    return 0


cdef int perform(Step step) except -1:
    cdef char* pointers[3]
    cdef int i
    cdef Tensor left, right
    if step.kind == LOOP:
        for i in range(step.n):
            pointers[i] = (<Tensor>step.inputs[i]).data_pointer
        return run_loop(step.loop, pointers, step.is_scalar, step.out.data_pointer, step.out.numel_)
    if step.kind == PROGRAM:
        return run_program(step.program, step.inputs, step.out)
    if step.kind == PRODUCT:
        left, right = <Tensor>step.inputs[0], <Tensor>step.inputs[1]
        if left.ndim_ == 2 and right.ndim_ == 2:
            return product_to(left, right, step.out)
        return rows_product_to(left, right, step.out)
    if step.kind == COPY:
        return copy_into(step.out, <Tensor>step.inputs[0])
    if step.kind == SUM:
        fold_to(FOLD_SUM, <Tensor>step.inputs[0], NULL, step.sizes, step.out)
        return divide(step.out, step.divisor) if step.divisor else 0
    if step.kind == PUT_GRAD:
        set_gradient(<Tensor>step.held, (
            None if step.out is None
            else copied_for(step.out, step.like) if step.copies else alias(step.out)))
        return 0
    found = PyObject_Call(step.function, step.args, step.kwargs)
    return take_results(step, found) if step.roots else 0


cdef int take_results(Step step, object found) except -1:
    """Gives the memory of what a function returned to the tensors of the rehearsal."""
    cdef Tensor x, wanted
    cdef Root root
    cdef Py_ssize_t i
    cdef tuple results = as_tuple(found)
    for i in range(len(step.roots)):
        root = <Root>step.roots[i]
        if root is None:
            continue
        x = <Tensor?>results[i]
        wanted = <Tensor>step.results[i]
        if not laid_out_as(x, wanted) or (root.written_over or step.unseen) and is_shared(x):
            x = relaid(x, wanted)
        root.give(x.data_pointer - root.origin, x.storage)
    return 0


cdef bint is_shared(Tensor x) noexcept:
    """Whether another one has the memory of a tensor, which a function returned."""
    return (x.storage.owner is not None or not x.storage.writable
            or Py_REFCNT(<PyObject*>x.storage) > 1)


cdef tuple as_tuple(object found):
    """What a function returned, as a tuple of results; a tuple in a tuple is taken out of it."""
    if found is None:
        return ()
    if isinstance(found, Tensor):
        return (found,)
    if type(found) is tuple and len(<tuple>found) == 1 and type((<tuple>found)[0]) is tuple:
        return (<tuple>found)[0]
    return tuple(found)


cdef Tensor relaid(Tensor x, Tensor wanted):
    """The elements of `x` laid out as those of `wanted`."""
    cdef Storage storage = allocate(wanted.storage.nbytes)
    cdef Tensor y
    if x.type != wanted.type or not same_shape(x, wanted):
        raise RuntimeError(f"program: a result of shape {tuple(x.shape)} and {x.dtype}, where "
                           f"{tuple(wanted.shape)} and {wanted.dtype} were inferred")
    y = over_storage(storage, storage.data + (wanted.data_pointer - wanted.storage.data),
                     wanted.type, wanted.ndim_, wanted.dims, wanted.steps)
    copy_into(y, x)
    return y
