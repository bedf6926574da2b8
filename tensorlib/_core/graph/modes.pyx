"""The modes of a thread: grad mode, inference mode, anomaly mode, hooks on saved values."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from tensorlib._core.base.storage cimport UNTRACKED, first_version

cdef extern from * nogil:
    """
    #include <stdint.h>
    static __thread struct {
        int grad, node_flags, forward_mode;
        void *packing, *running;
        int64_t epoch;
    } thread_mode = {1};
    static void* thread_mode_address(void) { return &thread_mode; }
    """
    void* thread_mode_address()


cdef Mode* mode() noexcept nogil:
    return <Mode*>thread_mode_address()


def is_grad_enabled():
    """Whether operations on this thread are recorded for differentiation."""
    return mode().grad


def _set_grad_enabled(bint enabled):
    """Sets the grad mode of this thread and returns the one before."""
    cdef bint before = mode().grad
    mode().grad = enabled and first_version()[0] == 0
    return before


def is_inference_mode_enabled():
    """Whether tensors that this thread makes are inference tensors."""
    return first_version()[0] != 0


def _set_inference(bint enabled):
    """Sets the inference mode of this thread and returns the one before."""
    cdef bint before = first_version()[0] != 0
    first_version()[0] = UNTRACKED if enabled else 0
    return before


def _set_anomaly(tuple wanted):
    """Sets whether this thread detects anomalies, and NaN; returns the values before."""
    cdef bint enabled, check_nan
    enabled, check_nan = wanted
    before = bool(mode().node_flags & TRACED), bool(mode().node_flags & CHECKED)
    mode().node_flags &= ~(TRACED | CHECKED)
    if enabled:
        mode().node_flags |= TRACED | (CHECKED if check_nan else 0)
    return before


def _set_forward_mode(bint enabled):
    """Sets whether nodes keep what forward mode may need as well; returns the value before."""
    cdef bint before = mode().forward_mode
    mode().forward_mode = enabled
    return before


def packing():
    """The (pack, unpack) of this thread for the values that it saves, or None."""
    return None if mode().packing == NULL else <object>mode().packing


def is_forward_mode():
    """Whether nodes of this thread keep what forward mode may need as well."""
    return mode().forward_mode


def _set_packing(hooks):
    """Sets (pack, unpack), or None, for the values that this thread saves; returns those before."""
    cdef PyObject* before = mode().packing
    held = None if before == NULL else <object>before
    Py_XDECREF(before)
    mode().packing = NULL
    mode().node_flags &= ~PACKED
    if hooks is not None:
        Py_INCREF(hooks)
        mode().packing = <PyObject*>hooks
        mode().node_flags |= PACKED
    return held
