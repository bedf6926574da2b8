from tensorlib._core.base.storage cimport Storage
from tensorlib._core.graph.op cimport Op, Rule
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.program cimport TileProgram
from tensorlib.program.run.steps cimport Kind, Root, Step

cdef class Machine:
    cdef list lies                   # the places of the outputs
    cdef list from_fed               # which inputs the outputs are, or -1
    cdef readonly list beyond        # the inputs beyond which views reach, and how far
    cdef list constants, steps, roots, fed, fed_roots, outputs, puts, dropped, passing
    cdef dict root_of                # by the id of a storage in the rehearsal
    cdef Storage arena
    cdef readonly Py_ssize_t arena_bytes, unshared_bytes
    cdef bint busy, before, fuses, reuses, has_effect
    cdef Py_ssize_t unchanging       # how many steps come before the first with an effect
    cdef list active                 # the steps that are not fused into others
    cdef Root root(self, Tensor x)
    cdef Step step(self, Kind kind, list inputs, Tensor out)
    cdef int reads(self, Tensor x) except -1
    cdef Root require(self, Tensor x)
    cdef int tiles(self, TileProgram tiles, list tensors, int dtype, Tensor out) except -1
    cdef Tensor formula(self, Rule rule, tuple values, Tensor g)
    cdef int give_out(self, Root root, set given) except -1
    cdef Step performed_from(self, Py_ssize_t i)
    cdef int open_arena(self) except -1
    cpdef bint fits(self, tuple given) except -1
    cpdef list run(self, tuple given, bint retries=*)
