from cpython.object cimport PyObject

from tensorlib._core.base.storage cimport Storage
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.loops cimport Loop
from tensorlib._core.tiles.program cimport MAX_INPUTS, TileLoops, TileProgram

# Where the memory of a value comes from when a machine runs.
cdef enum Source:
    FED                     # from a tensor that is given
    ARENA                   # a place in the arena
    CALLED                  # from what a function returned
    NEW                     # allocated in each run
    HOSTED                  # a place in the memory of a value that is new, before that is written
    GONE                    # nobody has it: it is written over another one, or never written

cdef class Root:
    cdef Source source
    cdef Storage meta                # the storage of the rehearsal, to which the members return
    cdef list members
    cdef list offsets                # bytes from the start of the storage
    cdef Py_ssize_t origin           # the offset of the first member
    cdef Py_ssize_t first, last      # the steps at which it is first written and last read
    cdef Py_ssize_t place            # in the arena or in its host, in bytes
    cdef Py_ssize_t opens            # of what is new: the step at which it or a guest is written
    cdef list guests                 # the values in its place before it is written, by place;
                                     # None for none
    cdef bint written_over           # of what a function returned: somebody writes into its memory
    cdef bint lasts                  # it is fed, and lasts from run to run
    cdef char* data                  # where the members are
    cdef int add(self, Tensor x) except -1
    cdef int take_over(self, Root other) except -1
    cdef int open(self) except -1
    cdef int give(self, char* data, Storage storage) except -1
    cdef int take_back(self) except -1

# What a step does. FUSED: another one does it.
cdef enum Kind:
    LOOP
    PROGRAM
    PRODUCT
    COPY
    SUM
    CALL
    PUT_GRAD                # a value of the rehearsal, or None
    FUSED

cdef class Step:
    cdef Kind kind
    cdef int n, dtype
    cdef PyObject* inputs[MAX_INPUTS]
    cdef bint is_scalar[MAX_INPUTS]
    cdef Tensor out
    cdef const Loop* loop
    cdef TileProgram tiles
    cdef const TileLoops* program
    cdef Py_ssize_t[5] sizes         # of a sum: how its operand lies in memory
    cdef double divisor              # of a sum: what it is divided by, 0 for nothing
    cdef object held, function
    cdef list tensors                # the inputs
    cdef tuple args
    cdef dict kwargs
    cdef bint changes                # of a call: it does more than to give its results
    cdef bint atomic                 # of a call that does: where it fails it has changed nothing
    cdef bint copies                 # of a gradient that is put: others have its memory
    cdef Tensor like                 # as which it lies
    cdef list roots                  # of a call: the Root of each result, None for what has none
    cdef tuple results               # of a call: the tensors of the rehearsal
    cdef bint unseen                 # of a call: it was not rehearsed, and may give views
    cdef list born                   # new roots that are given memory before it, None for none
    cdef list dead                   # roots that nobody needs after it, None for none

cdef int perform(Step step) except -1
cdef tuple as_tuple(object found)
cdef int set_tiles(Step step, TileProgram tiles, int dtype) except -1
