"""Locks and atomic operations for free-threaded interpreters; with a GIL they compile to nothing.

State that threads share is changed between `hold` and `drop` of a lock. In between no Python code
runs and nothing is freed, so that no lock waits for another. A lock is a global variable, or a
field of an object. Code under `if FREE_THREADED` is compiled in free-threaded builds only.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #ifndef TENSORLIB_LOCKS
    #define TENSORLIB_LOCKS
    #ifdef Py_GIL_DISABLED
    #define FREE_THREADED 1
    typedef PyMutex tensorlib_lock;
    static inline void hold(tensorlib_lock* lock) { PyMutex_Lock(lock); }
    static inline void drop(tensorlib_lock* lock) { PyMutex_Unlock(lock); }
    #define fetch_add(p, n) __atomic_fetch_add(p, n, __ATOMIC_RELAXED)
    static inline void add_bits(int* p, int bits) { __atomic_fetch_or(p, bits, __ATOMIC_SEQ_CST); }
    static inline void take_bits(int* p, int bits) {
        __atomic_fetch_and(p, ~bits, __ATOMIC_SEQ_CST);
    }
    #define is_set(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
    #define set_to(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)
    static inline int claim(int* p) { return !__atomic_exchange_n(p, 1, __ATOMIC_ACQ_REL); }
    /* A reference to what may be dying on another thread; 0 where it is. `is_linked` was called
       with it before another thread could see it. */
    #if PY_VERSION_HEX >= 0x030E0000
    static inline void is_linked(PyObject* x) { PyUnstable_EnableTryIncRef(x); }
    static inline int revive(PyObject* x) { return PyUnstable_TryIncRef(x); }
    #else       /* what they are in 3.14 */
    static inline void is_linked(PyObject* x) {
        Py_ssize_t shared = __atomic_load_n(&x->ob_ref_shared, __ATOMIC_RELAXED);
        while (!(shared & _Py_REF_SHARED_FLAG_MASK)
               && !__atomic_compare_exchange_n(&x->ob_ref_shared, &shared,
                                               shared | _Py_REF_MAYBE_WEAKREF, 0,
                                               __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    }
    static inline int revive(PyObject* x) {
        uint32_t local = __atomic_load_n(&x->ob_ref_local, __ATOMIC_RELAXED);
        if (local == UINT32_MAX) return 1;
        if (x->ob_tid == _Py_ThreadId()) {
            __atomic_store_n(&x->ob_ref_local, local + 1, __ATOMIC_RELAXED);
            return 1;
        }
        Py_ssize_t shared = __atomic_load_n(&x->ob_ref_shared, __ATOMIC_RELAXED);
        while (shared != 0 && shared != _Py_REF_MERGED)
            if (__atomic_compare_exchange_n(&x->ob_ref_shared, &shared,
                                            shared + (1 << _Py_REF_SHARED_SHIFT), 0,
                                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                return 1;
        return 0;
    }
    #endif
    #else
    #define FREE_THREADED 0
    typedef struct { char nothing; } tensorlib_lock;
    static inline void hold(tensorlib_lock* lock) {}
    static inline void drop(tensorlib_lock* lock) {}
    #define fetch_add(p, n) ((*(p) += (n)) - (n))
    static inline void add_bits(int* p, int bits) { *p |= bits; }
    static inline void take_bits(int* p, int bits) { *p &= ~bits; }
    #define is_set(p) (*(p))
    #define set_to(p, value) ((void)(*(p) = (value)))
    static inline int claim(int* p) { return *p ? 0 : (*p = 1); }
    static inline void is_linked(PyObject* x) {}
    static inline int revive(PyObject* x) { return 0; }
    #endif
    #endif
    """
    const bint FREE_THREADED
    ctypedef struct Lock "tensorlib_lock":
        pass
    void hold(Lock* lock) noexcept nogil
    void drop(Lock* lock) noexcept nogil
    int64_t fetch_add(int64_t* p, int64_t n) noexcept nogil
    uint64_t fetch_add_unsigned "fetch_add"(uint64_t* p, uint64_t n) noexcept nogil
    void add_bits(int* p, int bits) noexcept nogil
    void take_bits(int* p, int bits) noexcept nogil
    bint is_set(bint* p) noexcept nogil
    void set_to(bint* p, bint value) noexcept nogil
    PyObject* get_pointer "is_set"(PyObject** p) noexcept nogil
    void set_pointer "set_to"(PyObject** p, PyObject* value) noexcept nogil
    bint claim(bint* p) noexcept nogil
    void is_linked(PyObject* x) noexcept
    bint revive(PyObject* x) noexcept

cdef Lock links                    # links of tensors and views, and of leaves and nodes
cdef Lock gradients                # of all tensors
