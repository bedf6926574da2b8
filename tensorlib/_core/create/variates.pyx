"""Random tensors whose distribution has parameters for each element, by the kernels `variates`."""

from libc.stdint cimport uint64_t

from tensorlib._core.base.dtypes cimport FLOAT64
from tensorlib._core.create.creation cimport run_over
from tensorlib._core.create.generator cimport Generator, chosen, next_draw
from tensorlib._core.tensor.tensor cimport Tensor, new_like

from tensorlib import _kernels

ctypedef void (*one_loop)(uint64_t seed, uint64_t offset, const double* a, double* y,
                          Py_ssize_t begin, Py_ssize_t end) noexcept nogil
ctypedef void (*two_loop)(uint64_t seed, uint64_t offset, const double* a, const double* b,
                          double* y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil

cdef enum:
    GRAIN = 1 << 8               # elements a thread draws at once: 20 us

cdef struct Draw:
    void* run
    uint64_t seed, offset
    const double* a
    const double* b              # NULL where there is one parameter
    double* y

cdef dict LOOPS = {kind: (len(inputs), address)
                   for kind, inputs, _, address in _kernels.load("variates").table()}


cdef void draw_part(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Draw* draw = <Draw*>context
    if draw.b == NULL:
        (<one_loop>draw.run)(draw.seed, draw.offset, draw.a, draw.y, begin, end)
    else:
        (<two_loop>draw.run)(draw.seed, draw.offset, draw.a, draw.b, draw.y, begin, end)


def drawn(str kind, Tensor a, Tensor b or None=None, *, generator=None):
    """Numbers of this kind, one for each element of contiguous float64 tensors of parameters.

    Raises: ValueError for other tensors and for a kind that there is not.
    """
    cdef Draw draw
    cdef Generator source = chosen(kind, generator)
    cdef Tensor y
    cdef size_t address
    if kind not in LOOPS or LOOPS[kind][0] != (1 if b is None else 2):
        raise ValueError(f"drawn: no numbers {kind!r} of so many parameters")
    for x in (a,) if b is None else (a, b):
        if (<Tensor>x).type != FLOAT64 or not (<Tensor>x).packed:
            raise ValueError(f"{kind}: parameters must be contiguous and of float64")
    if b is not None and a.numel_ != b.numel_:
        raise ValueError(f"{kind}: {a.numel_} and {b.numel_} parameters")
    y = new_like(a, FLOAT64)
    address = LOOPS[kind][1]
    draw.run = <void*>address
    next_draw(source, y, &draw.seed, &draw.offset)
    draw.a = <const double*>a.data_pointer
    draw.b = NULL if b is None else <const double*>b.data_pointer
    draw.y = <double*>y.data_pointer
    run_over(draw_part, &draw, y, GRAIN)
    return y
