"""Cached optimiser steps: a step that is like the one before reuses what that one looked up.

A model is trained by many steps with the same parameters, states and options; only the gradients
are new, and laid out as they were. A `Prepared` keeps what a step found: the memory of the operands
and the numbers of the formula. Each step first looks whether all of that still holds; where it does
not, nothing was written, and `run_update` takes the step. So 4 small parameters take half the time.
"""

cimport cython
from cpython.dict cimport PyDict_Next
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free

from tensorlib._core.apply.inplace cimport check_writable
from tensorlib._core.apply.updating cimport (
    count_step, counted, fill_numbers, is_complete, meets,
)
from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT64
from tensorlib._core.tensor.meta cimport is_meta
from tensorlib._core.tensor.tensor cimport Tensor, same_shape
from tensorlib._core.tiles.update cimport MAX_NUMBERS, Whole, Update, run_whole

cdef enum:
    MOST = 1024              # parameters; of more, looking takes no less time than planning


@cython.final
@cython.binding(False)            # methods check their `self`
cdef class Prepared:
    """What the steps of one group of parameters have in common. `prepare` makes it."""

    cdef Update update
    cdef dict group
    cdef list params                 # of the group
    cdef tuple members               # and what is in it
    cdef list rows                   # of each parameter with a gradient: [states ..., p, count]
    cdef list options                # of the group: name, value, name, value, ...
    cdef Whole* jobs
    cdef double table[MAX_NUMBERS]
    cdef double step                 # of which the table has the numbers; -1 for none
    cdef bint busy
    cdef readonly bint used          # whether it has taken a step

    def __dealloc__(self):
        free(self.jobs)

    def run(self, dict group, states, numbers):
        """Takes a step, as `run_update` does; False where it does not, and nothing was written."""
        cdef Py_ssize_t n = len(self.rows)
        if self.busy or group is not self.group or not self.has_options():
            return False
        if not self.has_states(states):
            return False
        self.busy = True             # others may run while the numbers are found, and without GIL
        try:
            if not self.has_numbers(states, numbers) or not self.has_operands():
                return False
            self.note_writes()
            run_whole(self.jobs, n)
            self.used = True
            return True
        finally:
            self.busy = False

    def take_options(self, Update update, dict group):
        """Whether another step with this update and the group's options can be as those before.

        It then has these options from now on.
        """
        cdef list options
        if self.busy or update is not self.update or group is not self.group or (
                group["params"] is not self.params):
            return False
        options = fixed_options(group)
        if options is None:
            return False
        self.options, self.step = options, -1
        return True

    cdef bint has_options(self):
        """Whether the options of the group are the objects that they were."""
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
        """Whether the group has the parameters that it had, and these the states."""
        cdef Py_ssize_t i, k
        cdef list row
        cdef Tensor x
        if len(self.params) != len(self.members):
            return False
        i = 0
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
        """Whether the states of a parameter are the tensors that they were."""
        cdef Py_ssize_t k
        state = states.get(row[-2])
        if not isinstance(state, dict):
            return False
        for k, name in enumerate(self.update.states):
            if (<dict>state).get(name) is not row[k]:
                return False
        return not self.update.counts or (<dict>state).get("step") is row[-1]

    cdef bint has_numbers(self, states, numbers) except -1:
        """Whether one set of numbers is for all parameters; it is there then."""
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
        """Whether all operands can be read and written in one run, where they were, and no write
        reaches what is still to be read of a gradient."""
        cdef Py_ssize_t i
        cdef int k, n = len(self.update.states)
        cdef list row
        cdef Tensor x, other, g
        for i in range(len(self.rows)):
            row = <list>self.rows[i]
            x = <Tensor>row[n]
            if x.gradient is None:
                return False
            g = <Tensor>x.gradient
            if g.type != x.type or not g.packed or is_meta(g) or not same_shape(g, x):
                return False
            for k in range(n + 1):
                other = <Tensor>row[k]
                if not other.packed or other.type != x.type or not same_shape(other, x) or (
                        other.data_pointer != self.jobs[i].operands[1 + k] or meets(g, other)):
                    return False
                check_writable(self.update.name, other, False)
            if x.numel_ != self.jobs[i].numel:
                return False
            if self.update.counts:
                check_writable(self.update.name, <Tensor>row[n + 1], False)
            self.jobs[i].operands[0] = g.data_pointer
        return True

    cdef int note_writes(self) except -1:
        """Counts the step, and the writes into all that it changes."""
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
    """What the next steps of a group have in common with one that was taken; None if nothing.

    That is so where each operand is one run of float32 or float64, the numbers follow from the
    options and the count of steps, and one loop does the update.
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


cdef bint is_run(Tensor x, Tensor like) noexcept:
    """Whether a tensor is one run of elements of a dtype that is computed in, as many as `like`."""
    return (x.packed and x.type == like.type and (x.type == FLOAT32 or x.type == FLOAT64)
            and same_shape(x, like) and not is_meta(x))


cdef list fixed_options(dict group):
    """The options of a group, name after value; None where one may change and stay the same
    object."""
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
