"""Which tensors of a call share memory with which others, and how far apart they lie."""

cimport cython
from libc.stdlib cimport calloc, free

from tensorlib._core.tensor.tensor cimport Tensor, requires_grad
from tensorlib.program.guards.signatures cimport APART, is_like, overlap, place_in_graph


@cython.binding(False)            # methods check their `self`
cdef class Overlaps:
    """Which arguments share memory with one another and with tensors from outside, where a call
    writes into one of the two, or both have gradients.

    values, inspected: those of `Conditions`. written: the numbers, among arguments and then
    `values`, of what the call writes into. read: all tensors from outside that the call has read: a
    call in which one of them is an argument is of another kind (`excluded`).
    distances: how far apart any two of them lie in memory that they share, by their numbers.
    places: where each of them lay when that was last compared.
    """

    def __init__(self, tuple tensors, list values, written, list read, list inspected):
        cdef list given = [*tensors, *values, *inspected]
        cdef Py_ssize_t i, k, distance, n = len(tensors) + len(values)
        self.values, self.distances = values + inspected, {}
        lasting = set(map(id, values))           # which keep their layout
        self.excluded = [(i, x) for i, y in enumerate(tensors) for x in read
                         if id(x) not in lasting
                         or is_like(<Tensor?>y, <Tensor?>x, place_in_graph(<Tensor>x))]
        self.count, self.total = len(tensors), len(given)
        self.written = <bint*>calloc(self.total + 1, sizeof(bint))
        self.linked = <bint*>calloc(self.total + 1, sizeof(bint))
        self.places = <Place*>calloc(self.total + 1, sizeof(Place))
        if self.written == NULL or self.linked == NULL or self.places == NULL:
            raise MemoryError
        for i in range(self.total):
            self.written[i] = i in written
            self.linked[i] = requires_grad(<Tensor?>given[i])
        for i in range(self.total):
            for k in range(min(i, self.count)):
                distance = overlap(<Tensor>given[k], <Tensor>given[i])
                if distance != APART and (i >= n or self.matters(i, k)):
                    self.distances[i * self.total + k] = distance

    def __dealloc__(self):
        free(self.written)
        free(self.linked)
        free(self.places)

    cdef bint matters(self, Py_ssize_t i, Py_ssize_t k) noexcept:
        """Whether it matters if two of them share memory."""
        return self.written[i] or self.written[k] or self.linked[i] and self.linked[k]

    cpdef bint hold(self, tuple tensors) except -1:
        """Whether these arguments share memory as those of the captured call did."""
        cdef Py_ssize_t i
        cdef Tensor x
        for i, x in self.excluded:
            if tensors[i] is x:
                return False
        for i in range(self.total):
            x = <Tensor>(tensors[i] if i < self.count else self.values[i - self.count])
            if not lies_at(x, &self.places[i]) and not self.lies_as_before(x, i, tensors):
                return False
        for i in range(self.total):
            x = <Tensor>(tensors[i] if i < self.count else self.values[i - self.count])
            self.places[i] = place_of(x)
        return True

    cdef bint lies_as_before(self, Tensor x, Py_ssize_t i, tuple tensors) except -1:
        """Whether one of them shares memory with others as it did."""
        cdef Py_ssize_t k, low, high, distance
        cdef Tensor y
        for k in range(self.total if i < self.count else self.count):
            if k == i:
                continue
            y = <Tensor>(tensors[k] if k < self.count else self.values[k - self.count])
            low, high = min(i, k), max(i, k)
            distance = overlap(x, y) if i < k else overlap(y, x)
            if distance != APART:
                known = self.distances.get(high * self.total + low)
                if known is None and self.matters(i, k) or known is not None and known != distance:
                    return False
            elif self.distances and high * self.total + low in self.distances:
                return False
        return True


cdef inline Place place_of(Tensor x) noexcept:
    return Place(<size_t>x.data_pointer, <size_t>x.storage.data, x.storage.nbytes)


cdef inline bint lies_at(Tensor x, Place* place) noexcept:
    return (<size_t>x.data_pointer == place.elements and <size_t>x.storage.data == place.storage
            and <size_t>x.storage.nbytes == place.nbytes)
