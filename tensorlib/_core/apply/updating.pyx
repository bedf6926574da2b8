"""One step of an optimiser with all parameters of a group, by one call.

What can fail, or can run code of the user's, comes before the first write.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from cpython.object cimport PyObject

from tensorlib._core.apply.inplace cimport check_writable
from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT64, FLOAT_KIND, INT64, KIND, compute_dtype,
)
from tensorlib._core.tensor.tensor cimport Tensor, same_shape
from tensorlib._core.tiles.copies cimport may_overlap, packed_copy
from tensorlib._core.tiles.plan cimport make_plan
from tensorlib._core.tiles.program cimport MAX_INPUTS
from tensorlib._core.tiles.update cimport MAX_NUMBERS, Job, Update, run_jobs


def chosen(dict group, tuple options):
    """Which of these options of a group are true, as a tuple of bools."""
    return tuple([True if group[name] else False for name in options])


def run_update(Update update, dict group, states, begin, numbers):
    """Takes one step with each parameter of a group that has a gradient.

    states: the dict of states of each parameter; where one is missing, `begin(group, p)` makes it.
    numbers: gives the dict of numbers for a group, a count of steps and a parameter's states. It is
    called once for each count or, if the update says `each`, for each parameter. The count is that
    of the state `step`, with this one; without such a state it is 1 for a parameter whose states
    were made just now, else 2. Raises: TypeError, RuntimeError; then nothing was written but new
    states.
    """
    cdef list tensors = []           # of each parameter: its operands, and the count or None
    cdef Py_ssize_t most, n
    cdef double* table = NULL
    cdef Job* jobs = NULL
    cdef tuple params = tuple(group["params"])
    most = len(params)
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
    """Finds the operands of each parameter, and its numbers. What runs code of the user's is here.
    """
    cdef Tensor x
    cdef double step, last = -1
    cdef bint fresh, known = False
    cdef Py_ssize_t row = 0
    cdef object state, name
    for p in params:
        if not isinstance(p, Tensor):
            raise TypeError(f"{update.name}: a parameter must be a Tensor, got {type(p).__name__}")
        x = <Tensor>p
        if x.gradient is None:
            continue
        gradient = x.gradient
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
    if not update.counts and not update.states:
        return True
    if not isinstance(state, dict):
        return False
    if update.counts and (<dict>state).get("step") is None:
        return False
    for name in update.states:
        if (<dict>state).get(name) is None:
            return False
    return True


cdef double counted(Update update, count) except? -1:
    """The number that a state `step` holds."""
    cdef Tensor x
    if isinstance(count, Tensor):
        x = <Tensor>count
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
    """Copies gradients that share memory with what will be written, and those in another order."""
    cdef int stride = update.frame.n_inputs + 2, i
    cdef Py_ssize_t row
    cdef Tensor x, g, other
    cdef bint copied
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
    if not isinstance(found, Tensor):
        raise TypeError(
            f"{update.name}: {named(update, i)} must be a Tensor, got {type(found).__name__}")
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
    """Plans the work on all parameters; then notes it as done."""
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
