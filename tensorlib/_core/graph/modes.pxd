from cpython.object cimport PyObject
from libc.stdint cimport int64_t

# What else is done with a new node.
cdef enum NodeFlag:
    TRACKED = 1          # shown to the garbage collector as it is made
    TRACED = 2           # notes where it was made, for the detection of anomalies
    CHECKED = 4          # and its gradients are searched for NaN
    PACKED = 8           # saves its values through hooks

# What holds for operations that run on this thread.
cdef struct Mode:
    bint grad            # operations are recorded
    int node_flags       # what else is done with new nodes: of NodeFlag
    bint forward_mode    # nodes keep what forward-mode rules may need as well
    PyObject* packing    # (pack, unpack) of saved_tensors_hooks, owned, or NULL
    PyObject* running    # the node whose gradient is computed and searched for anomalies, or NULL
    int64_t epoch        # tensors born before it must not be written in place

cdef Mode* mode() noexcept nogil
