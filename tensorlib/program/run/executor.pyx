"""Running a planned program: steps on tensors that were made once, in one arena.

A `Machine` is made by a rehearsal: the calls of a program run one after the other on tensors
without memory, and each records a step. The steps work on the tensors of the rehearsal, which get
memory when the machine runs: inputs and persistable values have their own, results of steps are in
the arena, where values with disjoint lifetimes share a place, and results of the program get new
memory. A view is a tensor over the memory of its base, and needs no step.

Steps of common operations (a loop over elements, a tile program, a matrix product) call their
kernel directly: the same kernel on the same layouts as an eager run, hence the same bits. Other
steps call the operation's function.
"""

cimport cython
from cpython.object cimport PyObject, PyObject_Call

from tensorlib._core.apply.elementwise cimport has_own_loop, program_for, result_dtype
from tensorlib._core.arrays.operands cimport operands_of
from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT64, FLOAT_KIND, ITEMSIZE, KIND, compute_dtype, default_float,
)
from tensorlib._core.base.locks cimport claim, set_to
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.storage cimport allocate_whole
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.op cimport BOOLS, GRADIENT, Op, PASS, Rule, TILES as FORMULA, ZERO
from tensorlib._core.products.product cimport is_plain_product, is_rows_product
from tensorlib._core.reduce.arrange cimport arrange as laid_out_for_fold, reduced_dims
from tensorlib._core.reduce.schedule cimport SUM as OF_SUMS
from tensorlib._core.sweep.accumulate cimport lies_for
from tensorlib._core.sweep.rules cimport arguments, some_complex
from tensorlib._core.tensor.meta cimport is_meta
from tensorlib._core.tensor.tensor cimport Tensor, alias, new_like, new_tensor, set_gradient
from tensorlib._core.tiles.copies cimport new_arranged_as
from tensorlib._core.tiles.program cimport MAX_INPUTS, TileProgram
from tensorlib.program.guards.signatures cimport laid_out_as, like_on_meta
from tensorlib.program.run.arena cimport arrange, has_room, numbered, place_of, reaches, reuse
from tensorlib.program.run.fusion cimport fuse
from tensorlib.program.run.steps cimport (
    ARENA, CALL, CALLED, COPY, FED, FUSED, GONE, NEW, PRODUCT, PROGRAM, PUT_GRAD, SUM, Kind, Root,
    Step, as_tuple, perform, set_tiles,
)

from tensorlib._core.base.region import set_without_memory
from tensorlib.program.ir.errors import Busy

cdef tuple KINDS = ("loop", "tiles", "product", "copy", "sum", "", "put_grad", "fused")
cdef TileProgram addition = TileProgram(2, [("add", (0, 1))])


class Mismatch(RuntimeError):
    """A machine got an input with another layout than in its rehearsal."""

    __module__ = "tensorlib.program"


# ---- the machine ---------------------------------------------------------------------------------

@cython.binding(False)            # methods check their `self`
cdef class Machine:
    """Steps, and the memory that they work on. Made by a rehearsal, under `with machine:`."""

    def __cinit__(self, bint fuses=True, bint reuses=True):
        self.fuses, self.reuses, self.constants = fuses, reuses, []
        self.steps, self.roots, self.fed, self.fed_roots = [], [], [], []
        self.outputs, self.puts, self.dropped, self.root_of = [], [], [], {}

    def __enter__(self):
        self.before = set_without_memory(True)
        return self

    def __exit__(self, *error):
        set_without_memory(self.before)

    # ---- the rehearsal

    cdef Root root(self, Tensor x):
        """The root of a tensor of the rehearsal; a new one for a function's result."""
        cdef Root root = self.root_of.get(<size_t><PyObject*>x.storage)
        if root is None:
            root = Root.__new__(Root)
            root.source, root.meta, root.members, root.offsets = CALLED, x.storage, [], []
            root.data, root.first, root.last = x.storage.data, len(self.steps), len(self.steps)
            self.root_of[<size_t><PyObject*>x.storage] = root
            self.roots.append(root)
        root.add(x)
        return root

    def feed(self, Tensor like, bint lasts=False):
        """A tensor of the rehearsal for an input with the layout of `like`.

        lasts: it exists between the runs, too.
        """
        cdef Tensor x = like_on_meta(like)
        cdef Root root = self.root(x)
        root.source, root.lasts = FED, lasts
        self.fed.append(x)
        self.fed_roots.append(root)
        return x

    def constant(self, Tensor value):
        """A tensor of the rehearsal for one that is the same in all runs."""
        cdef Tensor x = like_on_meta(value)
        cdef Root root = self.root(x)
        root.source, root.lasts = FED, True
        self.constants.append((root, value))
        return x

    cdef Step step(self, Kind kind, list inputs, Tensor out):
        cdef Step step = Step.__new__(Step)
        cdef Root root
        cdef Tensor x
        cdef int i
        step.kind, step.n, step.out, step.tensors = kind, len(inputs), out, inputs
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
        cdef Root root = self.require(x)
        if root is not None:
            root.add(x)
            root.last = max(root.last, <Py_ssize_t>len(self.steps))
        return 0

    cdef Root require(self, Tensor x):
        """The root of an operand of a step; None for a constant, which has memory of its own."""
        cdef Root root = self.root_of.get(<size_t><PyObject*>x.storage)
        if root is None and is_meta(x):
            raise RuntimeError("no step of the rehearsal makes this tensor")
        return root

    def elementwise(self, Op op, tuple args):
        """The result of an element-wise operation; None where a call must do it."""
        cdef list tensors = operands_of(op, args)
        cdef PyObject* given[MAX_INPUTS]
        cdef Tensor x, out
        cdef int i, promoted
        if tensors is None:
            return None
        for i, x in enumerate(tensors):
            given[i] = <PyObject*>x
        promoted = result_dtype(op, given)
        if op.guard > BOOLS and KIND[promoted] < FLOAT_KIND:
            return None
        result = op.function(*args)
        if not isinstance(result, Tensor):
            return None
        out = result
        program_for(op, given, promoted)      # raises if there is no loop
        if op.to_float and KIND[promoted] < FLOAT_KIND:
            promoted = default_float()
        promoted = promoted if has_own_loop(op, given, promoted) else compute_dtype(promoted)
        self.tiles(op.program, tensors, promoted, out)
        return out

    cdef int tiles(self, TileProgram tiles, list tensors, int dtype, Tensor out) except -1:
        """Records a step that runs a tile program for inputs of a dtype."""
        return set_tiles(self.step(PROGRAM, tensors, out), tiles, dtype)

    def gradient(self, source, Op op, int i, Tensor g):
        """The gradient of input `i` of a call (-1: of all), not yet of its shape; or a function for
        it, with its arguments; None if the backward operation is needed."""
        cdef Rule rule = <Rule>op.rules[max(i, 0)]
        cdef tuple values
        if rule is None or rule.joint != (i < 0) or rule.kind == ZERO:
            return None
        if rule.kind == PASS:
            return g
        values = arguments(rule, op, source, g, False)
        if some_complex((g, *values)) or any([dtype.is_complex for _, dtype in (
                source.facts if i < 0 else source.facts[i:i + 1])]):
            return None                  # a sweep conjugates gradients before and after the rule
        if rule.kind == FORMULA:
            return self.formula(rule, values, g)
        return rule.function, values

    def has_joint_rule(self, Op op):
        """Whether one rule computes the gradients of all inputs."""
        return op.rules[0] is not None and (<Rule>op.rules[0]).joint

    cdef Tensor formula(self, Rule rule, tuple values, Tensor g):
        """The gradient by an element-wise rule; values: those that the rule names."""
        cdef Tensor out = new_like(g, g.type) if g.packed else new_arranged_as(g, g.type)
        cdef list tensors = [g]
        cdef int i
        for i in range(rule.n_wants):
            if rule.wants[i] != GRADIENT:
                tensors.append(values[i])
        self.tiles(rule.program, tensors, compute_dtype(g.type), out)
        return out

    def product(self, Tensor a, Tensor b):
        """The product of rows and a matrix or vector; None where a call must do it."""
        cdef Py_ssize_t dims[MAX_NDIM]
        cdef Tensor out
        cdef int ndim = a.ndim_ - 1, d
        if not (is_plain_product(a, b) or is_rows_product(a, b)):
            return None
        for d in range(ndim):
            dims[d] = a.dims[d]
        if b.ndim_ == 2:
            dims[ndim] = b.dims[1]
            ndim += 1
        out = new_tensor(a.type, ndim, dims)
        self.step(PRODUCT, [a, b], out)
        return out

    def linear(self, Tensor x, Tensor weight, Tensor bias):
        """x @ weight.T + bias of rows, a matrix and a vector; None where a call must do it."""
        cdef Tensor turned, out
        if x.ndim_ < 2 or weight.ndim_ != 2 or bias.ndim_ != 1 or bias.type != x.type or (
                bias.dims[0] != weight.dims[0]):
            return None
        turned = weight.t()
        if not (is_plain_product(x, turned) or is_rows_product(x, turned)):
            return None
        self.root(turned)
        out = self.product(x, turned)
        self.tiles(addition, [out, bias], compute_dtype(out.type), out)
        return out

    def copied(self, Tensor x, Tensor like):
        """The elements of `x`, cast and broadcast, in new memory with the layout of `like`."""
        cdef Tensor out = new_arranged_as(like, like.type)
        self.step(COPY, [x], out)
        return out

    def summed(self, Tensor x, dim, Tensor like, bint mean):
        """The sum or mean of `x` over dims, laid out as `like`; None where a call must do it."""
        cdef int reduced[MAX_NDIM]
        cdef Py_ssize_t sizes[5]
        cdef Tensor out
        cdef Step step
        cdef int n = reduced_dims(dim, x.ndim_, reduced)
        if x.type != like.type or x.type != FLOAT32 and x.type != FLOAT64 or not like.packed or (
                x.numel_ == 0 or laid_out_for_fold(OF_SUMS, x, n, reduced, sizes) is not x):
            return None
        out = new_like(like, like.type)
        step = self.step(SUM, [x], out)
        step.sizes[:] = [sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]]
        step.divisor = x.numel_ // like.numel_ if mean else 0
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

    def knows(self, tuple tensors):
        """Whether the memory of each of these tensors belongs to a value of the rehearsal."""
        cdef Tensor x
        for x in tensors:
            if <size_t><PyObject*>x.storage not in self.root_of:
                return False
        return True

    def call(self, function, tuple args, dict kwargs, tuple read, bint effect, bint atomic=False):
        """The results of a function in the rehearsal; views of existing values need no step.

        read: its tensor arguments. effect: it does more than compute results. atomic: if it fails
        it has changed nothing."""
        cdef tuple results
        cdef list roots = []
        cdef Step step
        cdef bint fresh = False
        cdef Tensor x
        for x in read:                   # otherwise a result that is a view of it would have a root
            self.require(x)
        results = as_tuple(PyObject_Call(function, args, kwargs))
        for value in results:
            known = not isinstance(value, Tensor) or self.knows((value,))
            root = self.root(<Tensor>value) if isinstance(value, Tensor) else None
            roots.append(None if known else root)
            fresh = fresh or not known
        if not (fresh or effect):
            return results
        step = Step.__new__(Step)
        step.kind, step.function, step.args, step.kwargs = CALL, function, args, kwargs
        step.roots, step.results, step.changes = roots, results, effect
        step.atomic = atomic
        for x in read:
            self.reads(x)
        self.steps.append(step)
        return results

    def call_unseen(self, function, tuple args, dict kwargs, tuple read, tuple results):
        """The same for a function that reads elements, which a rehearsal does not have. Its results
        have the layouts of `results`; None for those that are not needed."""
        cdef Step step = Step.__new__(Step)
        step.kind, step.function, step.args, step.kwargs = CALL, function, args, kwargs
        step.roots, step.results = [None if x is None else self.root(x) for x in results], results
        step.unseen = True
        for x in read:
            self.reads(x)
        self.steps.append(step)
        return results

    def effect(self, function, tuple args):
        """Records a function that each run, but not the rehearsal, calls for its effect."""
        cdef Step step = Step.__new__(Step)
        step.kind, step.function, step.args, step.kwargs = CALL, function, args, {}
        step.roots, step.results, step.changes = [], (), True
        self.steps.append(step)
        self.has_effect = True

    def put_grad(self, Tensor param, Tensor grad=None, strides=None):
        """Records that a value, or None, becomes a parameter's `.grad`. strides: the eager ones."""
        cdef Step step = self.step(PUT_GRAD, [] if grad is None else [grad], None)
        step.held, step.out, step.changes = param, grad, True
        step.like = grad if grad is not None and grad.stride() == strides else param
        if grad is None:
            self.has_effect = True
            return
        self.puts.append(len(self.steps) - 1)
        if not self.has_effect:          # the gradient from before the run is not read
            self.dropped.append(param)

    # ---- planning

    def finish(self, tuple outputs):
        """Ends the rehearsal. outputs: what a run returns."""
        cdef Root root
        cdef Tensor x
        cdef Step step
        cdef set given = set()
        cdef dict fed = {id(x): i for i, x in enumerate(self.fed)}
        self.outputs, self.passing = list(outputs), []
        self.from_fed = [fed.get(id(x), -1) for x in outputs]
        for x in outputs:
            self.give_out(self.root(x), given)
        for step in [self.steps[place] for place in self.puts]:
            x, root = step.out, self.root(step.out)
            step.copies = not (
                lies_for(x, step.like) and root.source != FED and root not in given
                and root.meta.nbytes == x.numel_ * ITEMSIZE[x.type])
            if not step.copies:
                root.written_over = True
                self.give_out(root, given)
        numbers = numbered(self.roots, self.fed_roots)
        self.lies = [place_of(x, numbers[id(self.root(x))], self.fed) for x in self.outputs]
        self.beyond = reaches(self.fed, self.fed_roots)
        if self.fuses:
            fuse(self.steps, self.root_of)
        if self.reuses:
            reuse(self.steps, self.root_of)
        for root in self.roots:
            if root.source == CALLED and root.last < len(self.steps):
                step = <Step>self.steps[root.last]
                step.dead = with_root(step.dead, root)
        self.arena_bytes, self.unshared_bytes = arrange(self.roots)
        self.active = [step for step in self.steps if (<Step>step).kind != FUSED]
        self.unchanging = [*[step.changes for step in self.active], True].index(True)
        if self.unchanging < len(self.active) and (<Step>self.active[self.unchanging]).atomic:
            self.unchanging += 1
        for root in self.roots:
            if root.source == NEW:
                step = self.performed_from(root.opens)
                step.born = with_root(step.born, root)
            if root.source not in (ARENA, GONE) and not root.lasts:
                self.passing.append(root)

    cdef int give_out(self, Root root, set given) except -1:
        """Records that a value is returned to the caller, who may change it."""
        root.last = len(self.steps)
        if root.source == ARENA:
            root.source = NEW
        given.add(root)
        return 0

    cdef Step performed_from(self, Py_ssize_t i):
        """The first step from `i` on that is not fused into another one."""
        while (<Step>self.steps[i]).kind == FUSED:
            i += 1
        return <Step>self.steps[i]

    cdef int open_arena(self) except -1:
        """Allocates the arena, and places its values."""
        cdef Root root
        cdef Tensor x
        self.arena = allocate_whole(self.arena_bytes)
        for root, x in self.constants:
            (<Root>root).give(x.data_pointer - (<Root>root).origin, x.storage)
        for root in self.roots:
            if root.source == ARENA:
                root.give(self.arena.data + root.place, self.arena)
        return 0

    def places(self):
        """The place of each output: see `place_of` in arena.pyx."""
        return list(self.lies)

    # ---- running

    @property
    def is_running(self):
        """Whether it is running, on this or another thread."""
        return self.busy

    def describe(self):
        """The kind of each step: "loop", "tiles", "product", "copy", "sum", "put_grad", or the
        function that it calls."""
        cdef Step step
        cdef list found = []
        for step in self.active:
            found.append(KINDS[<int>step.kind] or (
                getattr(step.function, "__qualname__", repr(step.function))))
        return found

    def __len__(self):
        return len(self.active)

    cpdef bint fits(self, tuple given) except -1:
        """Whether tensors have the layouts of the inputs in the rehearsal."""
        cdef Py_ssize_t i
        if len(given) != len(self.fed):
            return False
        for i in range(len(given)):
            if not laid_out_as(<Tensor?>given[i], <Tensor>self.fed[i]):
                return False
        return True

    def __call__(self, tuple given):
        """The outputs, as a list, for these inputs. Raises: Mismatch."""
        return self.run(given)

    cpdef list run(self, tuple given, bint retries=False):
        """The outputs; None if it fails before it has changed anything, and the caller `retries` in
        another way, which fails as an eager call does."""
        cdef Root root
        cdef Step step
        cdef Tensor x
        cdef Py_ssize_t i, done = 0
        cdef bint grad = mode().grad
        if not self.fits(given):
            raise Mismatch("program: a tensor is laid out in another way than in the rehearsal")
        if self.beyond and not has_room(self.beyond, given):
            if retries:
                return None
            raise Mismatch("program: a view reaches beyond the memory of a tensor")
        if not claim(&self.busy):
            if retries:
                return None
            raise Busy("program: this machine is running")
        mode().grad = False              # as in a sweep that does not record
        try:
            if self.arena is None:
                self.open_arena()
            for i in range(len(given)):
                x = <Tensor>given[i]
                root = <Root>self.fed_roots[i]
                root.give(x.data_pointer - root.origin, x.storage)
            for x in self.dropped:       # as the function does before anything can fail
                set_gradient(x, None)
            for step in self.active:
                if step.born is not None:
                    for root in step.born:
                        root.open()
                perform(step)
                done += 1
                if step.dead is not None:
                    for root in step.dead:
                        root.take_back()
            # an input itself, or a new tensor over the memory of a value
            return [given[i] if i >= 0 else alias(y)
                    for y, i in zip(self.outputs, self.from_fed)]
        except Exception:
            if retries and done < self.unchanging:
                return None
            raise
        finally:
            mode().grad = grad
            for root in self.passing:
                root.take_back()
            set_to(&self.busy, False)


cdef list with_root(list roots, Root root):
    """A list of roots with one more; None stands for an empty list."""
    roots = [] if roots is None else roots
    roots.append(root)
    return roots
