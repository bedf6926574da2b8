from cpython.object cimport PyObject
from libc.stdint cimport int64_t

# What is done with a new node besides recording it.
cdef enum NodeFlag:
    TRACKED = 1          # tracked by the garbage collector from the start
    TRACED = 2           # keeps the stack trace, for anomaly detection
    CHECKED = 4          # and its gradients are searched for NaN
    PACKED = 8           # saves its values through hooks

# The modes of operations that run on this thread.
cdef struct Mode:
    bint grad            # operations are recorded
    int node_flags       # of NodeFlag
    bint forward_mode    # nodes keep what forward-mode rules may need as well
    PyObject* packing    # (pack, unpack) of saved_tensors_hooks, owned, or NULL
    PyObject* running    # the node whose gradient is computed and searched for anomalies, or NULL
    int64_t epoch        # tensors from before it must not be written in place

cdef Mode* mode() noexcept nogil
