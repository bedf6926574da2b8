from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib.program.run.steps cimport Root

cdef int reuse(list steps, dict root_of) except -1
cdef tuple arrange(list roots)
cdef dict numbered(list roots, list fed_roots)
cdef tuple place_of(Tensor x, Py_ssize_t number, list fed)
cdef list reaches(list fed, list fed_roots)
cdef bint has_room(list beyond, tuple given) except -1
cpdef bint do_meet(Tensor x, Tensor y) except -1
