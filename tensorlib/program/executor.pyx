"""Running a planned program: steps on tensors that were made once, in one arena.

A `Machine` is made by a rehearsal: the calls of a program run one after the other on tensors
without memory, and each leaves a step behind. The tensors of the rehearsal are those that the steps
work on. When the machine runs, they are given memory: what is fed and what lasts has its own, what
a step computes lies in the arena, in which those share a place that are not needed at one time, and
what the program gives is new. A view of a value is a tensor over its memory, and takes no step.

Steps of the common operations (a loop over elements, a tile program, a matrix product) know their
kernel, and run it where the tensors lie: the same kernel on the same layouts as an eager run, hence
the same bits. All others call the operation's function.
"""

from cpython.object cimport PyObject, PyObject_Call

from tensorlib._core.apply.elementwise cimport program_for, result_dtype
from tensorlib._core.arrays.operands cimport operands_of
from tensorlib._core.base.dtypes cimport BOOL, FLOAT_KIND, ITEMSIZE, KIND, compute_dtype
from tensorlib._core.base.region cimport without_memory
from tensorlib._core.base.storage cimport LINE, Storage, allocate
from tensorlib._core.graph.op cimport (
    GRADIENT, NOTHING, Op, PASS, Rule, TILES as FORMULA, ZERO,
)
from tensorlib._core.layout.views cimport new_arranged_as
from tensorlib._core.products.product cimport is_plain_product, product_to
from tensorlib._core.sweep.rules cimport arguments
from tensorlib._core.tensor.tensor cimport (
    Tensor, alias, new_like, new_tensor, over_storage, same_shape,
)
from tensorlib._core.tiles.copies cimport copy_into
from tensorlib._core.tiles.loops cimport Loop, find_loop
from tensorlib._core.tiles.program cimport MAX_INPUTS, Program, TileProgram
from tensorlib._core.tiles.run cimport run_loop, run_program

from tensorlib._core.base.region import set_without_memory

cdef TileProgram addition = TileProgram(2, [("add", (0, 1))])


class Mismatch(RuntimeError):
    """A machine was fed a tensor that is laid out in another way than in its rehearsal."""

    __module__ = "tensorlib.program"


# ---- memory --------------------------------------------------------------------------------------

# Where the memory of a value comes from when a machine runs.
cdef enum Source:
    FED                     # from a tensor that is given
    ARENA                   # a place in the arena
    CALLED                  # from what a function returned
    NEW                     # allocated for each run

cdef class Root:
    """The memory of a value: `members` are the tensors over it."""

    cdef Source source
    cdef Storage meta                # the storage of the rehearsal, to which the members return
    cdef readonly list members
    cdef list offsets                # bytes from the start of the storage
    cdef Py_ssize_t first, last      # the steps at which it is first written and last read
    cdef Py_ssize_t place            # in the arena, in bytes

    cdef int add(self, Tensor x) except -1:
        for member in self.members:
            if member is x:
                return 0
        self.members.append(x)
        self.offsets.append(x.data_pointer - self.meta.data)
        return 0

    cdef int give(self, char* data, Storage storage) except -1:
        """Puts the members over memory of which the first byte is at `data`."""
        cdef Py_ssize_t i
        cdef Tensor x
        for i in range(len(self.members)):
            x = <Tensor>self.members[i]
            x.data_pointer = data + <Py_ssize_t>self.offsets[i]
            x.storage = storage
        return 0

    cdef int take_back(self) except -1:
        return self.give(self.meta.data, self.meta)


# ---- steps ---------------------------------------------------------------------------------------

cdef enum Kind:
    LOOP
    PROGRAM
    PRODUCT
    CALL
    PUT_GRAD

cdef class Step:
    """One thing to do. What it works on is held by `held`."""

    cdef Kind kind
    cdef int n
    cdef PyObject* inputs[MAX_INPUTS]
    cdef bint is_scalar[MAX_INPUTS]
    cdef Tensor out
    cdef Loop* loop
    cdef const Program* program
    cdef object held, function
    cdef tuple args
    cdef dict kwargs
    cdef list roots                  # of a call: the Root of each result, None for what has none
    cdef list results                # of a call: the tensors of the rehearsal
    cdef list dead                   # roots that nobody needs after it


cdef int perform(Step step) except -1:
    cdef char* pointers[3]
    cdef int i
    cdef Tensor x
    if step.kind == LOOP:
        for i in range(step.n):
            pointers[i] = (<Tensor>step.inputs[i]).data_pointer
        return run_loop(step.loop, pointers, step.is_scalar, step.out.data_pointer, step.out.numel_)
    if step.kind == PROGRAM:
        return run_program(step.program, step.inputs, step.out)
    if step.kind == PRODUCT:
        return product_to(<Tensor>step.inputs[0], <Tensor>step.inputs[1], step.out)
    if step.kind == PUT_GRAD:
        (<Tensor>step.held).gradient = alias(step.out)
        return 0
    return take_results(step, PyObject_Call(step.function, step.args, step.kwargs))


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
        if not laid_out_as(x, wanted):
            x = relaid(x, wanted)
        root.give(x.data_pointer - (<Py_ssize_t>root.offsets[0]), x.storage)
    return 0


cdef tuple as_tuple(object found):
    """What a function returned, as a tuple of results; a tuple in a tuple is taken out of it."""
    if found is None:
        return ()
    if isinstance(found, Tensor):
        return (found,)
    if type(found) is tuple and len(<tuple>found) == 1 and type((<tuple>found)[0]) is tuple:
        return (<tuple>found)[0]
    return tuple(found)


cdef bint laid_out_as(Tensor x, Tensor y) noexcept:
    cdef int d
    if x.type != y.type or not same_shape(x, y):
        return False
    for d in range(x.ndim_):
        if x.dims[d] != 1 and x.steps[d] != y.steps[d]:
            return x.numel_ == 0
    return True


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


# ---- the machine ---------------------------------------------------------------------------------

cdef class Machine:
    """Steps and the memory that they work in. Made by a rehearsal, under `with machine:`."""

    cdef list steps, roots, fed, fed_roots, outputs, gradients
    cdef dict root_of                # by the id of the storage of the rehearsal
    cdef Storage arena
    cdef readonly Py_ssize_t arena_bytes, unshared_bytes
    cdef bint busy, before

    def __cinit__(self):
        self.steps, self.roots, self.fed, self.fed_roots = [], [], [], []
        self.outputs, self.gradients, self.root_of = [], [], {}

    def __enter__(self):
        self.before = set_without_memory(True)
        return self

    def __exit__(self, *error):
        set_without_memory(self.before)

    # ---- the rehearsal

    cdef Root root(self, Tensor x):
        """The root of a tensor of the rehearsal; a new one is of what a function returned."""
        cdef Root root = self.root_of.get(<size_t><PyObject*>x.storage)
        if root is None:
            root = Root.__new__(Root)
            root.source, root.meta, root.members, root.offsets = CALLED, x.storage, [], []
            root.first, root.last = len(self.steps), len(self.steps)
            self.root_of[<size_t><PyObject*>x.storage] = root
            self.roots.append(root)
        root.add(x)
        return root

    def feed(self, Tensor like):
        """A tensor of the rehearsal for one that is given to each run, laid out as `like`."""
        cdef Storage storage = allocate(like.storage.nbytes)
        cdef Tensor x = over_storage(
            storage, storage.data + (like.data_pointer - like.storage.data), like.type, like.ndim_,
            like.dims, like.steps)
        cdef Root root = self.root(x)
        root.source = FED
        self.fed.append(x)
        self.fed_roots.append(root)
        return x

    cdef Step step(self, Kind kind, list inputs, Tensor out, object held):
        cdef Step step = Step.__new__(Step)
        cdef Root root
        cdef Tensor x
        cdef int i
        step.kind, step.n, step.out, step.held = kind, len(inputs), out, (inputs, held)
        step.dead = []
        for i, x in enumerate(inputs):
            step.inputs[i] = <PyObject*>x
            self.reads(x)
        if out is not None:
            root = self.root(out)
            if root.source == CALLED:
                root.source = ARENA
        self.steps.append(step)
        return step

    cdef int reads(self, Tensor x) except -1:
        cdef Root root
        if not x.is_scalar:                   # a number has memory of its own
            root = self.root(x)
            root.last = max(root.last, <Py_ssize_t>len(self.steps))
        return 0

    def elementwise(self, Op op, tuple args):
        """The result of an element-wise operation of the rehearsal; None where a call must do it.
        """
        cdef list tensors = operands_of(op, args)
        cdef PyObject* given[MAX_INPUTS]
        cdef Tensor x, out
        cdef int i, promoted
        if tensors is None:
            return None
        for i, x in enumerate(tensors):
            given[i] = <PyObject*>x
        promoted = result_dtype(op, given)
        if op.guard != NOTHING and KIND[promoted] != FLOAT_KIND:
            return None
        result = op.function(*args)
        if not isinstance(result, Tensor):
            return None
        out = result
        self.element_step(op, tensors, out, program_for(op, given, promoted), None)
        return out

    cdef int element_step(self, Op op, list tensors, Tensor out, const Program* program,
                          TileProgram tiles) except -1:
        """A step of a tile program; of its one loop, where the operands are runs of one dtype."""
        cdef bint simple = program.n_steps == 1 and program.n_constants == 0 and out.packed
        cdef Tensor x
        cdef Step step
        cdef int i
        for i, x in enumerate(tensors):
            simple = simple and i < 3 and program.steps[0].inputs[i] == i and x.packed and (
                x.type == program.dtypes[i] and (x.ndim_ == 0 or same_shape(x, out)))
        simple = simple and out.type == program.steps[0].loop.result
        step = self.step(LOOP if simple else PROGRAM, tensors, out, (op, tiles))
        step.program = program
        step.loop = <Loop*>&program.steps[0].loop
        for i, x in enumerate(tensors):
            step.is_scalar[i] = x.ndim_ == 0 and out.numel_ != 1 and not (
                x.is_scalar and out.numel_ * ITEMSIZE[x.type] <= LINE)
        return 0

    def tiles(self, TileProgram tiles, list tensors, int dtype, Tensor out):
        """A step of a tile program for inputs of a dtype."""
        self.element_step(None, tensors, out, tiles.at(dtype), tiles)

    def gradient(self, source, Op op, int i, Tensor g):
        """The gradient of input `i` of a call, before it is fitted to that; or the function that
        gives it, with its arguments; None where a call of the backward operation must do it."""
        cdef Rule rule = <Rule>op.rules[i]
        cdef tuple values
        if rule is None or rule.joint or rule.kind == ZERO:
            return None
        if rule.kind == PASS:
            return g
        values = arguments(rule, op, source, g, False)
        if rule.kind == FORMULA:
            return self.formula(rule, values, g)
        return rule.function, values

    cdef Tensor formula(self, Rule rule, tuple values, Tensor g):
        """The gradient by an element-wise rule, of which `values` are what it names."""
        cdef Tensor out = new_like(g, g.type) if g.packed else new_arranged_as(g, g.type)
        cdef list tensors = [g]
        cdef int i
        for i in range(rule.n_wants):
            if rule.wants[i] != GRADIENT:
                tensors.append(values[i])
        self.tiles(rule.program, tensors, compute_dtype(g.type), out)
        return out

    def product(self, Tensor a, Tensor b):
        """The product of two matrices; None where a call must do it."""
        cdef Py_ssize_t dims[2]
        cdef Tensor out
        if not is_plain_product(a, b):
            return None
        dims[0], dims[1] = a.dims[0], b.dims[1]
        out = new_tensor(a.type, 2, dims)
        self.step(PRODUCT, [a, b], out, None)
        return out

    def linear(self, Tensor x, Tensor weight, Tensor bias):
        """x @ weight.T + bias of matrices and a vector; None where a call must do it."""
        cdef Tensor turned, out
        if x.ndim_ != 2 or weight.ndim_ != 2 or bias.ndim_ != 1 or bias.type != x.type or (
                bias.dims[0] != weight.dims[0]):
            return None
        turned = weight.t()
        if not is_plain_product(x, turned):
            return None
        self.root(turned)
        out = self.product(x, turned)
        self.tiles(addition, [out, bias], compute_dtype(out.type), out)
        return out

    def mark(self):
        """A point of the rehearsal, to which `back_to` returns."""
        return len(self.steps), len(self.roots)

    def back_to(self, tuple mark):
        """Forgets the steps since a point, and their results."""
        cdef Root root
        del self.steps[<Py_ssize_t>mark[0]:]
        for root in self.roots[<Py_ssize_t>mark[1]:]:
            del self.root_of[<size_t><PyObject*>root.meta]
        del self.roots[<Py_ssize_t>mark[1]:]

    def is_known(self, Tensor x):
        """Whether the memory of a tensor of the rehearsal is that of a value."""
        return <size_t><PyObject*>x.storage in self.root_of

    def call(self, function, tuple args, dict kwargs, tuple read, bint effect):
        """What a function gives in the rehearsal, as a tuple. `read`: the tensors that it is given.

        Where all of it is views of what is there, and the function has no `effect`, no step is
        needed.
        """
        cdef tuple results = as_tuple(PyObject_Call(function, args, kwargs))
        cdef list roots = []
        cdef Step step
        cdef bint fresh = False
        cdef Tensor x
        for value in results:
            if not isinstance(value, Tensor):
                roots.append(None)
                continue
            x = <Tensor>value
            if self.root_of.get(<size_t><PyObject*>x.storage) is None:
                roots.append(self.root(x))
                fresh = True
            else:
                self.root(x)
                roots.append(None)
        if not (fresh or effect):
            return results
        step = Step.__new__(Step)
        step.kind, step.function, step.args, step.kwargs = CALL, function, args, kwargs
        step.roots, step.results, step.dead = roots, list(results), []
        for x in read:
            self.reads(x)
        self.steps.append(step)
        return results

    def effect(self, function, tuple args):
        """A function that each run calls for what it does; the rehearsal does not."""
        cdef Step step = Step.__new__(Step)
        step.kind, step.function, step.args, step.kwargs = CALL, function, args, {}
        step.roots, step.results, step.dead = [], [], []
        self.steps.append(step)

    def put_grad(self, Tensor param, Tensor grad):
        """Makes a value of the rehearsal the `.grad` of a parameter when the machine runs."""
        cdef Step step = self.step(PUT_GRAD, [grad], None, None)
        step.held, step.out = param, grad
        self.gradients.append(grad)

    # ---- planning

    def finish(self, tuple outputs):
        """Ends the rehearsal. `outputs`: what a run returns."""
        cdef Root root
        cdef Tensor x
        cdef Step step
        cdef Py_ssize_t i
        self.outputs = list(outputs)
        for x in (*outputs, *self.gradients):
            root = self.root(x)
            root.last = len(self.steps)
            if root.source == ARENA:
                root.source = NEW
        for root in self.roots:
            if root.source == CALLED and root.last < len(self.steps):
                (<Step>self.steps[root.last]).dead.append(root)
        self.arrange()

    cdef int arrange(self) except -1:
        """Places in the arena, the first that is free while a value is needed."""
        cdef list placed = [], free
        cdef Root root, other
        cdef Py_ssize_t size, place, total = 0
        for root in self.roots:
            if root.source != ARENA:
                continue
            size = (root.meta.nbytes + LINE - 1) // LINE * LINE or LINE
            self.unshared_bytes += size
            placed = [other for other in placed if other.last >= root.first]
            place = 0
            for other in sorted(placed, key=lambda other: (<Root>other).place):
                if place + size <= other.place:
                    break
                place = max(place, other.place
                            + (other.meta.nbytes + LINE - 1) // LINE * LINE or LINE)
            root.place = place
            placed.append(root)
            total = max(total, place + size)
        self.arena_bytes = total
        return 0

    cdef int open_arena(self) except -1:
        """Allocates the arena, and puts its values there."""
        cdef Root root
        self.arena = allocate(self.arena_bytes)
        for root in self.roots:
            if root.source == ARENA:
                root.give(self.arena.data + root.place, self.arena)
        return 0

    # ---- running

    @property
    def is_running(self):
        """Whether a run is under way, on this or another thread."""
        return self.busy

    def describe(self):
        """What each step is: "loop", "tiles", "product", "put_grad", or the function it calls."""
        cdef Step step
        cdef list found = []
        for step in self.steps:
            found.append(("loop", "tiles", "product", "", "put_grad")[<int>step.kind] or (
                getattr(step.function, "__qualname__", repr(step.function))))
        return found

    def measure(self, tuple given, clock):
        cdef Root root
        cdef Step step
        cdef Storage storage
        times = []
        for i in range(len(given)):
            root = <Root>self.fed_roots[i]
            root.give((<Tensor>given[i]).data_pointer - <Py_ssize_t>root.offsets[0], (<Tensor>given[i]).storage)
        for root in self.roots:
            if root.source == NEW:
                storage = allocate(root.meta.nbytes)
                root.give(storage.data, storage)
        for step in self.steps:
            best = 1e9
            for i in range(200):
                begin = clock()
                perform(step)
                best = min(best, clock() - begin)
            times.append(best)
        return times

    def __len__(self):
        return len(self.steps)

    def fits(self, tuple given):
        """Whether tensors are laid out as those of the rehearsal."""
        cdef Py_ssize_t i
        if len(given) != len(self.fed):
            return False
        for i in range(len(given)):
            if not laid_out_as(<Tensor?>given[i], <Tensor>self.fed[i]):
                return False
        return True

    def __call__(self, tuple given):
        """The outputs, as a list, for the tensors that are fed. Raises: Mismatch."""
        cdef Root root
        cdef Step step
        cdef Tensor x, y
        cdef Storage storage
        cdef Py_ssize_t i
        cdef list found
        if self.busy:
            raise RuntimeError("program: this machine is running")
        if not self.fits(given):
            raise Mismatch("program: a tensor is laid out in another way than in the rehearsal")
        if self.arena is None:
            self.open_arena()
        self.busy = True
        try:
            for i in range(len(given)):
                x = <Tensor>given[i]
                root = <Root>self.fed_roots[i]
                root.give(x.data_pointer - <Py_ssize_t>root.offsets[0], x.storage)
            for root in self.roots:
                if root.source == NEW:
                    storage = allocate(root.meta.nbytes)
                    root.give(storage.data, storage)
            for step in self.steps:
                perform(step)
                for root in step.dead:
                    root.take_back()
            return [self.output(y, given) for y in self.outputs]
        finally:
            self.busy = False
            for root in self.roots:
                if root.source != ARENA:
                    root.take_back()

    cdef Tensor output(self, Tensor x, tuple given):
        """What is returned for an output: what was fed, or a tensor over the memory of a value."""
        cdef Py_ssize_t i
        for i in range(len(self.fed)):
            if self.fed[i] is x:
                return <Tensor>given[i]
        return alias(x)
