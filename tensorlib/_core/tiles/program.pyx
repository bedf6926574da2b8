"""Tile programs: lists of loops, as they are declared and as they are compiled for a dtype."""

from tensorlib._core.base.dtypes cimport BOOL, ITEMSIZE, dtype_object
from tensorlib._core.base.locks cimport Lock, drop, hold, is_set, set_to
from tensorlib._core.tiles.loops cimport Loop, find_loop, loop_id


cdef Lock compiling


cdef class TileProgram:
    """Loops to run in order on each tile, compiled for a dtype when first used.

    `steps` holds (loop name, input slots); slots count the inputs, then the constants, then the
    steps. With no steps the program copies and casts its input.
    """

    def __cinit__(self, int n_inputs, steps, constants=(), boolean_inputs=()):
        if n_inputs > MAX_INPUTS or len(constants) > MAX_CONSTANTS or len(steps) > MAX_STEPS:
            raise ValueError(f"TileProgram: too long: {steps}")
        self.n_inputs = n_inputs
        self.steps = tuple(steps)
        self.constants = tuple(constants)
        self.boolean_inputs = tuple(boolean_inputs)
        self.one_loop = not constants and len(steps) == 1 and steps[0][1] == tuple(range(n_inputs))

    cdef const TileLoops* at(self, int dtype) except NULL:
        """The program for inputs of `dtype`. Raises RuntimeError where a loop is missing."""
        if not is_set(&self.ready[dtype]):
            hold(&compiling)
            try:
                if not self.ready[dtype]:
                    self.compile(dtype)
            finally:
                drop(&compiling)
        return &self.compiled[dtype]

    cdef int compile(self, int dtype) except -1:
        cdef TileLoops* program = &self.compiled[dtype]
        cdef Loop* loop
        cdef int i, slot, n_slots = self.n_inputs + len(self.constants)
        program.n_inputs = self.n_inputs
        program.n_constants = len(self.constants)
        program.n_steps = len(self.steps)
        for i in range(n_slots):
            program.dtypes[i] = BOOL if i in self.boolean_inputs else dtype
        for i in range(program.n_constants):
            program.constants[i] = self.constants[i]
        for i, (name, slots) in enumerate(self.steps):
            loop = find_loop(loop_id(name), program.dtypes[slots[-1]])
            if loop.run == NULL:
                raise RuntimeError(f"{name}: not implemented for {dtype_object(dtype)}")
            program.steps[i].loop = loop[0]
            for slot in range(len(slots)):
                program.steps[i].inputs[slot] = slots[slot]
            program.dtypes[n_slots + i] = loop.result
        program.itemsize = 1
        for i in range(n_slots + program.n_steps):
            program.itemsize = max(program.itemsize, ITEMSIZE[program.dtypes[i]])
        self.assign_buffers(program)
        set_to(&self.ready[dtype], True)
        return 0

    cdef int assign_buffers(self, TileLoops* program) except -1:
        """Finds a buffer for each step's result: that of a value that is needed for the last time,
        if it has the size, so that few buffers stay in the L1 cache."""
        cdef bint[MAX_STEPS] taken
        cdef int[MAX_STEPS] last
        cdef int i, k, value, first = program.n_inputs + program.n_constants
        program.first_aside = first
        for i in range(program.n_steps):
            taken[i], last[i] = False, i
            for k in range(program.steps[i].loop.arity):
                if program.steps[i].inputs[k] >= first:
                    last[program.steps[i].inputs[k] - first] = i
        for i in range(program.n_steps):
            for k in range(program.steps[i].loop.arity):
                value = program.steps[i].inputs[k] - first
                if value >= 0 and last[value] == i and (
                        program.dtypes[first + value] == program.dtypes[first + i]):
                    taken[program.steps[value].buffer] = False
            k = 0
            while taken[k]:
                k += 1
            program.steps[i].buffer = k
            program.first_aside = max(program.first_aside, first + k + 1)
            for k in range(program.steps[i].loop.arity):
                value = program.steps[i].inputs[k] - first
                if value >= 0 and last[value] == i:
                    taken[program.steps[value].buffer] = False
            taken[program.steps[i].buffer] = True
        return 0
