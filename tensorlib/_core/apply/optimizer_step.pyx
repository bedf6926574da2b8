"""One step of an optimiser on all parameters of a group, in one call.

`run_update` takes any step. Everything that can fail or run user code comes before the first write.

A model is trained by many steps with the same parameters, states and options; only the gradients
are new, with the same layout. A `Prepared` keeps what a step determined: the addresses of the
operands and the numbers of the formula. The next step first checks whether all of that still holds;
if not, nothing was written, and `run_update` takes the step. This halves the time of a step on 4
small parameters.
"""

cimport cython
from cpython.dict cimport PyDict_Next
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from tensorlib._core.apply.inplace cimport check_writable
from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT64, FLOAT_KIND, INT64, KIND, compute_dtype,
)
from tensorlib._core.base.upcalls cimport effect
from tensorlib._core.tensor.meta cimport is_meta
from tensorlib._core.tensor.tensor cimport Tensor, gradient_of, same_shape
from tensorlib._core.tiles.copies cimport may_overlap, packed_copy
from tensorlib._core.tiles.plan cimport make_plan
from tensorlib._core.tiles.program cimport MAX_INPUTS
from tensorlib._core.tiles.update cimport MAX_NUMBERS, Job, Update, Whole, run_jobs

from tensorlib._core.base.error_names import type_name

cdef enum:
    MOST = 1024              # parameters of a prepared step; checking more is as slow as planning


def chosen(dict group, tuple options):
    """Which of these options of a group are true, as a tuple of bools."""
    return tuple([True if group[name] else False for name in options])


def run_update(Update update, dict group, states, begin, numbers):
    """Takes one step with each parameter of a group that has a gradient.

    states: the dict of states of each parameter; where one is missing, `begin(group, p)` makes it.
    numbers: returns the dict of numbers for a group, a count of steps and a parameter's states. It
    is called once for each count or, if the update has some `each`, for each parameter. The count
    is that of the state `step`, including this step; without such a state it is 1 for a parameter
    with new states, else 2. Raises: TypeError, RuntimeError; then nothing was written but new
    states.
    """
    cdef list tensors = []           # of each parameter: its operands, and the count or None
    cdef tuple params = tuple(group["params"])
    cdef Py_ssize_t most = len(params), n
    cdef double* table = NULL
    cdef Job* jobs = NULL
    effect("step", group)
    try:
        table = <double*>malloc(max(most, 1) * MAX_NUMBERS * sizeof(double))
        if table == NULL:
            raise MemoryError()
        gather(update, params, group, states, begin, numbers, tensors, table)
        n = len(tensors) // (update.frame.n_inputs + 2)
        jobs = <Job*>malloc(max(n, 1) * sizeof(Job))
        if jobs == NULL:
            raise MemoryError()
        part_from_written(update, tensors, n)
        check(update, tensors, n)
        plan_jobs(update, tensors, n, table, jobs)
        run_jobs(jobs, n)
    finally:
        free(table)
        free(jobs)


# ---- before the first write ----------------------------------------------------------------------

cdef int gather(Update update, tuple params, dict group, states, begin, numbers, list tensors,
                double* table) except -1:
    """Finds the operands of each parameter, and its numbers; this may run user code."""
    cdef Tensor x
    cdef double step, last = -1
    cdef bint fresh, known = False
    cdef Py_ssize_t row = 0
    cdef object state, name
    for p in params:
        if not isinstance(p, Tensor):
            raise TypeError(f"{update.name}: a parameter must be a Tensor, got {type_name(p)}")
        x = <Tensor>p
        gradient = gradient_of(x)
        if gradient is None:
            continue
        state = states.get(p)
        fresh = not is_complete(update, state)
        if fresh:
            state = begin(group, p)
            if not is_complete(update, state):
                raise RuntimeError(f"{update.name}: the state of a parameter of shape "
                                   f"{tuple(x.shape)} must have {update.states}, got {state!r}")
        step = 1 if fresh else 2
        count = None
        if update.counts:
            count = (<dict>state)["step"]
            step = counted(update, count) + 1
        if update.each or not (known and step == last):
            fill_numbers(update, table + row * MAX_NUMBERS, numbers(group, step, state))
            known, last = True, step
        else:
            memcpy(table + row * MAX_NUMBERS, table + (row - 1) * MAX_NUMBERS,
                   MAX_NUMBERS * sizeof(double))
        row += 1
        tensors.append(gradient)
        for name in update.states:
            tensors.append((<dict>state)[name])
        tensors.append(p)
        tensors.append(count)
    return 0


cdef int fill_numbers(Update update, double* table, given) except -1:
    """The numbers that the update takes, some of them by name from `given`."""
    cdef Py_ssize_t i
    for i, name in enumerate(update.numbers):
        table[i] = given[name] if isinstance(name, str) else name
    return 0


cdef bint is_complete(Update update, state) except -1:
    """Whether a parameter has all states and numbers that the update takes."""
    if not update.counts and not update.states:
        return True
    if not isinstance(state, dict):
        return False
    if update.counts and (<dict>state).get("step") is None:
        return False
    for name in update.states + update.each:
        if (<dict>state).get(name) is None:
            return False
    return True


cdef double counted(Update update, count) except? -1:
    """The value of a state `step`."""
    cdef Tensor x = <Tensor>count if isinstance(count, Tensor) else None
    if x is not None:
        if x.numel_ == 1:
            if x.type == FLOAT32:
                return (<float*>x.data_pointer)[0]
            if x.type == FLOAT64:
                return (<double*>x.data_pointer)[0]
            if x.type == INT64:
                return <double>(<int64_t*>x.data_pointer)[0]
    raise TypeError(f"{update.name}: the state 'step' must be a tensor of one element, of float32, "
                    f"float64 or int64, got {count!r}")


cdef int part_from_written(Update update, list tensors, Py_ssize_t n) except -1:
    """Copies gradients that overlap with what will be written, or are in another memory order."""
    cdef int stride = update.frame.n_inputs + 2, i
    cdef Py_ssize_t row
    cdef bint copied
    cdef Tensor x, g, other
    for row in range(n):
        g, x = tensors[row * stride], tensors[row * stride + stride - 2]
        copied = x.packed and not g.packed
        for i in range(1, stride - 1):
            if isinstance(tensors[row * stride + i], Tensor):
                other = tensors[row * stride + i]
                copied = copied or meets(g, other)
        if copied:
            tensors[row * stride] = packed_copy(g, g.type)
    return 0


cdef bint meets(Tensor a, Tensor b) noexcept:
    return a.numel_ > 0 and (a.data_pointer == b.data_pointer or may_overlap(a, b))


cdef int check(Update update, list tensors, Py_ssize_t n) except -1:
    """Raises TypeError or RuntimeError unless all operands fit their parameters."""
    cdef int stride = update.frame.n_inputs + 2, i, k
    cdef Py_ssize_t row
    cdef Tensor x, other
    for row in range(n):
        x = tensors[row * stride + stride - 2]
        if KIND[x.type] != FLOAT_KIND:
            raise TypeError(f"{update.name}: parameters must be of a floating-point type, "
                            f"got {x.dtype}")
        check_writable(update.name, x, False)
        for i in range(stride - 2):
            check_fits(update, x, tensors[row * stride + i], i)
        for i in range(1, stride - 1):
            other = tensors[row * stride + i]
            for k in range(1, i):
                if meets(other, <Tensor>tensors[row * stride + k]):
                    raise RuntimeError(f"{update.name}: the state {update.states[k - 1]!r} shares "
                                       "memory with another state or with the parameter")
        if tensors[row * stride + stride - 1] is not None:
            other = tensors[row * stride + stride - 1]
            counted(update, other)
            check_writable(update.name, other, False)
    return 0


cdef int check_fits(Update update, Tensor x, found, int i) except -1:
    """Raises TypeError or RuntimeError unless operand i fits the parameter `x`."""
    cdef Tensor other
    if not isinstance(found, Tensor) or type(found) is not Tensor and found.is_sparse:
        raise TypeError(
            f"{update.name}: {named(update, i)} must be a dense Tensor, got {type_name(found)}")
    other = <Tensor>found
    if not same_shape(other, x):
        raise RuntimeError(f"{update.name}: {named(update, i)} has shape {tuple(other.shape)}, the "
                           f"parameter {tuple(x.shape)}")
    if other.type != x.type and (
            KIND[other.type] != FLOAT_KIND or (i and other.type != compute_dtype(x.type))):
        raise TypeError(f"{update.name}: {named(update, i)} is of {other.dtype}, the parameter of "
                        f"{x.dtype}")
    return check_writable(update.name, other, False) if i and update.results[i] != i else 0


cdef str named(Update update, int i):
    return f"the state {update.states[i - 1]!r}" if i else "the gradient"


cdef int plan_jobs(Update update, list tensors, Py_ssize_t n, const double* table,
                   Job* jobs) except -1:
    """Plans the work on all parameters, runs it, and counts the writes."""
    cdef int stride = update.frame.n_inputs + 2, i
    cdef Py_ssize_t row
    cdef PyObject* inputs[MAX_INPUTS]
    cdef Tensor x
    for row in range(n):
        x = tensors[row * stride + stride - 2]
        for i in range(stride - 2):
            inputs[i] = <PyObject*>tensors[row * stride + i]
        jobs[row].program = update.at(compute_dtype(x.type))
        jobs[row].numbers = table + row * MAX_NUMBERS
        jobs[row].numel = x.numel_
        jobs[row].plan.program = &update.frame
        make_plan(&jobs[row].plan, inputs, x)
    for row in range(n):
        for i in range(1, stride - 1):
            if update.results[i] != i:
                (<Tensor>tensors[row * stride + i]).storage.version += 1
        if update.counts:
            count_step(<Tensor>tensors[row * stride + stride - 1])
    return 0


cdef int count_step(Tensor count) noexcept:
    if count.type == FLOAT32:
        (<float*>count.data_pointer)[0] += 1
    elif count.type == FLOAT64:
        (<double*>count.data_pointer)[0] += 1
    else:
        (<int64_t*>count.data_pointer)[0] += 1
    count.storage.version += 1
    return 0


# ---- like the one before -------------------------------------------------------------------------

@cython.final
@cython.binding(False)            # methods check their `self`
cdef class Prepared:
    """The common part of the steps of one group of parameters, made by `prepare`."""

    cdef Update update
    cdef dict group
    cdef list params                 # of the group
    cdef tuple members               # the items of that list
    cdef list rows                   # of each parameter with a gradient: [states ..., p, count]
    cdef list options                # of the group: name, value, name, value, ...
    cdef Whole* jobs
    cdef double table[MAX_NUMBERS]
    cdef double step                 # the step whose numbers are in the table; -1: none
    cdef bint busy
    cdef readonly bint used          # whether it has taken a step

    def __dealloc__(self):
        free(self.jobs)

    def run(self, dict group, states, numbers):
        """Takes a step, as `run_update` does; False if it can't, and nothing was written."""
        cdef Py_ssize_t n = len(self.rows)
        if (self.busy or group is not self.group or not self.has_options()
                or not self.has_states(states)):
            return False
        effect("step", group)
        self.busy = True             # other threads may run during `numbers`, and without GIL
        try:
            if not self.has_numbers(states, numbers) or not self.has_operands():
                return False
            self.note_writes()
            run_jobs(self.jobs, n)
            self.used = True
            return True
        finally:
            self.busy = False

    def take_options(self, Update update, dict group):
        """Whether another step with this update and the group's options can be prepared.

        These become its options.
        """
        cdef list options = fixed_options(group)
        if options is None or self.busy or update is not self.update or (
                group is not self.group or group["params"] is not self.params):
            return False
        self.options, self.step = options, -1
        return True

    cdef bint has_options(self):
        """Whether the options of the group are still the same objects."""
        cdef Py_ssize_t place = 0, i = 0, n = len(self.options)
        cdef PyObject* name
        cdef PyObject* value
        while PyDict_Next(self.group, &place, &name, &value):
            if i >= n or name != <PyObject*>self.options[i]:
                return False
            if value != <PyObject*>self.options[i + 1]:
                return False
            i += 2
        return i == n

    cdef bint has_states(self, states) except -1:
        """Whether the group still has the same parameters, and these the same states."""
        cdef Py_ssize_t i = 0, k
        cdef list row
        cdef Tensor x
        if len(self.params) != len(self.members):
            return False
        for k in range(len(self.members)):
            x = <Tensor>self.members[k]
            if self.params[k] is not x:
                return False
            if x.gradient is not None:
                if i == len(self.rows) or (<list>self.rows[i])[-2] is not x:
                    return False
                i += 1
        if i != len(self.rows):
            return False
        if self.update.counts or self.update.states:
            for row in self.rows:
                if not self.has_row(row, states):
                    return False
        return True

    cdef bint has_row(self, list row, states) except -1:
        """Whether the states of a parameter are still the same tensors."""
        cdef Py_ssize_t k
        state = states.get(row[-2])
        if not isinstance(state, dict):
            return False
        for k, name in enumerate(self.update.states):
            if (<dict>state).get(name) is not row[k]:
                return False
        return not self.update.counts or (<dict>state).get("step") is row[-1]

    cdef bint has_numbers(self, states, numbers) except -1:
        """Whether one set of numbers serves all parameters, after computing it."""
        cdef double step = 2
        cdef list row
        if self.update.counts:
            step = counted(self.update, (<list>self.rows[0])[-1]) + 1
            for row in self.rows:
                if counted(self.update, row[-1]) + 1 != step:
                    return False
        if step != self.step:
            self.step = -1
            fill_numbers(self.update, self.table,
                         numbers(self.group, step, states.get((<list>self.rows[0])[-2])))
            self.step = step
        return True

    cdef bint has_operands(self) except -1:
        """Whether all operands are contiguous, at the same addresses, and no write overlaps with a
        gradient that is still to be read."""
        cdef Py_ssize_t i
        cdef int k, n = len(self.update.states)
        cdef list row
        cdef Tensor x, other, g
        for i in range(len(self.rows)):
            row = <list>self.rows[i]
            x = <Tensor>row[n]
            g = <Tensor>gradient_of(x)
            if g is None:
                return False
            if not is_like(g, x):
                return False
            for k in range(n + 1):
                other = <Tensor>row[k]
                if not is_like(other, x) or meets(g, other) or (
                        other.data_pointer != self.jobs[i].operands[1 + k]):
                    return False
                check_writable(self.update.name, other, False)
            if x.numel_ != self.jobs[i].numel:
                return False
            if self.update.counts:
                check_writable(self.update.name, <Tensor>row[n + 1], False)
            self.jobs[i].operands[0] = g.data_pointer
        return True

    cdef int note_writes(self) except -1:
        """Counts the step, and the in-place writes of all tensors that it changes."""
        cdef int k, n = len(self.update.states)
        cdef list row
        for row in self.rows:
            for k in range(n + 1):
                if self.update.results[k + 1] != k + 1:
                    (<Tensor>row[k]).storage.version += 1
            if self.update.counts:
                count_step(<Tensor>row[n + 1])
        return 0


def prepare(Update update, dict group, states):
    """A `Prepared` for the next steps of a group, after one that was taken, or None.

    Each operand must be contiguous and of float32 or float64, the numbers must depend only on the
    options and the count of steps, and one loop must do the update.
    """
    cdef Prepared self
    cdef list rows = [], row, options = fixed_options(group)
    cdef Tensor x, other
    cdef Py_ssize_t i, k
    cdef int n = len(update.states)
    params = group["params"]
    if options is None or update.each or update.fused is None or type(params) is not list or (
            len(<list>params) > MOST):
        return None
    for p in <list>params:
        if not isinstance(p, Tensor):
            return None
        x = <Tensor>p
        if x.gradient is None:
            continue
        state = states.get(p)
        if not is_complete(update, state) or not is_run(x, x):
            return None
        row = [(<dict>state)[name] for name in update.states]
        row.append(p)
        for y in row:
            if not isinstance(y, Tensor) or not is_run(<Tensor>y, x):
                return None
        row.append((<dict>state)["step"] if update.counts else None)
        rows.append(row)
    if not rows:
        return None
    self = Prepared.__new__(Prepared)
    self.update, self.group, self.params, self.rows = update, group, params, rows
    self.members, self.options, self.step = tuple(params), options, -1
    self.jobs = <Whole*>calloc(len(rows), sizeof(Whole))
    if self.jobs == NULL:
        raise MemoryError()
    for i, row in enumerate(rows):
        x = <Tensor>row[n]
        self.jobs[i].program, self.jobs[i].numbers = update.at(x.type), self.table
        self.jobs[i].numel = x.numel_
        for k in range(n + 1):
            other = <Tensor>row[k]
            self.jobs[i].operands[1 + k] = other.data_pointer
    return self


cdef inline bint is_like(Tensor x, Tensor like) noexcept:
    """Whether a tensor is contiguous, with the dtype and number of elements of `like`."""
    return x.packed and x.type == like.type and same_shape(x, like) and not is_meta(x)


cdef bint is_run(Tensor x, Tensor like) noexcept:
    """The same, of a dtype that is computed in."""
    return is_like(x, like) and (x.type == FLOAT32 or x.type == FLOAT64)


cdef list fixed_options(dict group):
    """Names and values of a group's options; None if one of them is mutable."""
    cdef list found = []
    for name, value in group.items():
        if name != "params" and not is_fixed(value):
            return None
        found.append(name)
        found.append(value)
    return found


cdef bint is_fixed(value):
    """Whether an option is a number, a name or None, or a tuple of these, as betas are."""
    if type(value) is tuple:
        for part in <tuple>value:
            if not is_plain(part):
                return False
        return True
    return is_plain(value)


cdef bint is_plain(value):
    return value is None or type(value) in (float, int, bool, str)
