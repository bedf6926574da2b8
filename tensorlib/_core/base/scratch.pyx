"""Scratch memory of kernels, which is kept for reuse.

Blocks are kept by size, a power of two, as many of each as have been in use at once. The C library
would return blocks of this size to the system as soon as they are freed: a convolution of 1 MB then
spends two thirds of its time in page faults. The sanitized build keeps nothing, so that accesses
beyond the end of a block are found.
"""

cdef extern from * nogil:
    """
    #include <stdlib.h>

    enum { SCRATCH_LEAST = 16, SCRATCH_MOST = 25 };     /* powers of two: 64 KiB to 32 MiB */
    enum { SCRATCH_BLOCKS = 64 };
    static void* scratch[SCRATCH_MOST + 1][SCRATCH_BLOCKS];

    #ifdef __SANITIZE_ADDRESS__
    enum { SCRATCH_IS_KEPT = 0 };
    #else
    enum { SCRATCH_IS_KEPT = 1 };
    #endif

    static int scratch_power(size_t nbytes) {
        int power = SCRATCH_IS_KEPT ? SCRATCH_LEAST : SCRATCH_MOST + 1;
        while (power <= SCRATCH_MOST && (size_t)1 << power < nbytes) power++;
        return power;
    }

    static int scratch_refused;

    static char* scratch_take(size_t nbytes) {
        if (__atomic_load_n(&scratch_refused, __ATOMIC_RELAXED)) return NULL;
        int power = scratch_power(nbytes);
        void* block = NULL;
        if (power <= SCRATCH_MOST) {
            for (int i = 0; i < SCRATCH_BLOCKS; i++) {
                void** slot = &scratch[power][i];
                if (__atomic_load_n(slot, __ATOMIC_RELAXED)
                        && (block = __atomic_exchange_n(slot, NULL, __ATOMIC_ACQ_REL)))
                    return block;
            }
            nbytes = (size_t)1 << power;
        }
        return posix_memalign(&block, 64, nbytes) ? NULL : block;
    }

    static void scratch_give(void* block, size_t nbytes) {
        int power = scratch_power(nbytes);
        for (int i = 0; block && power <= SCRATCH_MOST && i < SCRATCH_BLOCKS; i++) {
            void* none = NULL;
            if (!__atomic_load_n(&scratch[power][i], __ATOMIC_RELAXED)
                    && __atomic_compare_exchange_n(&scratch[power][i], &none, block, 0,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                return;
        }
        free(block);
    }

    static size_t scratch_kept(void) {
        size_t nbytes = 0;
        for (int power = SCRATCH_LEAST; power <= SCRATCH_MOST; power++)
            for (int i = 0; i < SCRATCH_BLOCKS; i++)
                if (__atomic_load_n(&scratch[power][i], __ATOMIC_RELAXED))
                    nbytes += (size_t)1 << power;
        return nbytes;
    }

    static void scratch_drop(void) {
        for (int power = SCRATCH_LEAST; power <= SCRATCH_MOST; power++)
            for (int i = 0; i < SCRATCH_BLOCKS; i++)
                free(__atomic_exchange_n(&scratch[power][i], NULL, __ATOMIC_ACQ_REL));
    }
    """
    const bint SCRATCH_IS_KEPT
    int scratch_refused
    char* scratch_take(size_t nbytes)
    void scratch_give(void* block, size_t nbytes)
    size_t scratch_kept()
    void scratch_drop()


is_kept = bool(SCRATCH_IS_KEPT)


cdef char* take_scratch(size_t nbytes) noexcept nogil:
    return scratch_take(nbytes)


cdef void give_scratch(char* block, size_t nbytes) noexcept nogil:
    scratch_give(block, nbytes)


cdef Py_ssize_t kept_scratch() noexcept nogil:
    return scratch_kept()


cdef void drop_scratch() noexcept nogil:
    scratch_drop()


def refuse_scratch(bint on):
    """Sets whether `take` fails, as when memory is short, for tests; returns the value before."""
    global scratch_refused
    before, scratch_refused = scratch_refused, on
    return bool(before)
