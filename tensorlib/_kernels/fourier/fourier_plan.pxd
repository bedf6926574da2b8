"""What a Fourier transform is made of: `fourier_plan.h`."""

cdef extern from "fourier/fourier_plan.h" nogil:
    enum:
        LINE, MOST_FACTORS, MOST_POINTS
        COMPLEX_TO_COMPLEX, REAL_TO_HALF, HALF_TO_REAL

    ctypedef struct Passes:
        Py_ssize_t n
        int count
        int[MOST_FACTORS] factors
        const void* angles

    ctypedef struct Plan:
        Py_ssize_t n
        Passes first, second
        Py_ssize_t fine
        bint striped
        const void* turns
        const void* angles
        const Plan* inner
        const void* chirp

    ctypedef struct Place:
        char* at
        Py_ssize_t point, lane, part
        bint turned

    ctypedef struct Job:
        const Plan* plan
        int kind
        bint backward
        Py_ssize_t n
        double factor
        Place source "from"
        Place target "to"
