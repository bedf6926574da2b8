"""Versions of dicts: a number that each write of a dict changes.

Python 3.11 keeps one in each dict. From 3.12 on Python calls a watcher before each write of a
watched dict, and the number lies in a record here, which is found by the address of the dict.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030C0000
        #define IN_DICT(d) (&((PyDictObject *)(d))->ma_version_tag)
        #define PyDict_EVENT_DEALLOCATED 0
        #define PyDict_AddWatcher(f) ((void)(f), -1)
        #define PyDict_Watch(id, d) 0
        #define PyDict_Unwatch(id, d) 0
        typedef int PyDict_WatchEvent;
    #else
        #define IN_DICT(d) ((uint64_t *)NULL)
    #endif
    /* No watcher is called for an attribute that Python 3.13 writes into the object itself, as it
       does while that and its dict share their values. */
    #if PY_VERSION_HEX < 0x030D0000
        #define IS_SHARED(d) 0
    #else
        #define IS_SHARED(d) (((PyDictObject *)(d))->ma_values != NULL)
    #endif
    #ifdef Py_GIL_DISABLED      /* writes and comparisons are not ordered there */
        #define IS_WATCHABLE 0
    #else
        #define IS_WATCHABLE (PY_VERSION_HEX >= 0x030C0000)
    #endif
    """
    ctypedef int PyDict_WatchEvent
    bint IS_SHARED(PyObject* d)
    bint IS_WATCHABLE
    PyDict_WatchEvent PyDict_EVENT_DEALLOCATED
    uint64_t* IN_DICT(PyObject* d)
    int PyDict_AddWatcher(int (*f)(PyDict_WatchEvent, PyObject*, PyObject*, PyObject*) noexcept
                          ) except -1
    int PyDict_Watch(int id, PyObject* d) except -1
    int PyDict_Unwatch(int id, PyObject* d) except -1


cdef struct Record:
    uint64_t version         # is first: its address is that of the record
    PyObject* d              # NULL after the dict was deallocated
    Py_ssize_t users

# An open hash table with linear probing (Knuth, The Art of Computer Programming, 6.4, algorithms L
# and R), since Python's own dicts can't be used in a watcher.
cdef Record** slots = NULL
cdef size_t mask = 0, used = 0
cdef int watcher = -2                # -2 before the first dict, -1 if there is none


cdef uint64_t* version_of(dict d) except? NULL:
    """Where the version of a dict lies until `forget`; NULL if writes can't be watched."""
    global watcher
    cdef PyObject* address = <PyObject*>d
    cdef Record* record
    if not IS_WATCHABLE:
        return IN_DICT(address)
    if watcher == -2:
        try:
            watcher = PyDict_AddWatcher(on_write)
        except RuntimeError:             # others have taken all
            watcher = -1
    if watcher == -1 or IS_SHARED(address):
        return NULL
    record = record_of(address)
    if record == NULL:
        record = <Record*>malloc(sizeof(Record))
        if record == NULL:
            raise MemoryError
        record[0] = Record(1, address, 0)
        try:
            grow()
            PyDict_Watch(watcher, address)
        except BaseException:
            free(record)
            raise
        insert(record)
    record.users += 1
    return &record.version


cdef void forget(uint64_t* version) noexcept:
    """Gives up what `version_of` gave."""
    cdef Record* record
    if not IS_WATCHABLE or version == NULL:
        return
    record = <Record*>version
    record.users -= 1
    if record.users:
        return
    if record.d != NULL:
        remove(record.d)
        try:
            PyDict_Unwatch(watcher, record.d)
        except BaseException:            # it was watched, which is all that may be wrong
            pass
    free(record)


cdef int on_write(PyDict_WatchEvent event, PyObject* d, PyObject* key, PyObject* value) noexcept:
    """Is called by Python before each write of a watched dict, and when it is deallocated."""
    cdef Record* record = record_of(d)
    if record != NULL:
        record.version += 1
        if event == PyDict_EVENT_DEALLOCATED:
            remove(d)
            record.d = NULL
    return 0


# ---- the table -----------------------------------------------------------------------------------

cdef size_t first_slot(PyObject* d) noexcept:
    """The slot where the search for the record of a dict begins."""
    return (<size_t>d >> 4) * <size_t>0x9E3779B97F4A7C15 >> 20 & mask


cdef size_t slot_of(PyObject* d) noexcept:
    """The slot of the record of a dict, or the free one where it would be."""
    cdef size_t i = first_slot(d)
    while slots[i] != NULL and slots[i].d != d:
        i = (i + 1) & mask
    return i


cdef Record* record_of(PyObject* d) noexcept:
    """The record of a dict, or NULL."""
    return NULL if slots == NULL else slots[slot_of(d)]


cdef void insert(Record* record) noexcept:
    """Adds a record, for which there is room."""
    global used
    slots[slot_of(record.d)] = record
    used += 1


cdef int grow() except -1:
    """Makes the table twice as large if half of it is taken."""
    global slots, mask, used
    cdef Record** before = slots
    cdef size_t size = mask + 1 if before != NULL else 0, i
    if used * 2 < size:
        return 0
    cdef Record** larger = <Record**>calloc(size * 2 if size else 64, sizeof(Record*))
    if larger == NULL:
        raise MemoryError
    slots, mask, used = larger, (size * 2 if size else 64) - 1, 0
    for i in range(size):
        if before[i] != NULL:
            insert(before[i])
    free(before)
    return 0


cdef void remove(PyObject* d) noexcept:
    """Removes the record of a dict; those after it close the gap."""
    global used
    cdef size_t gap = slot_of(d), i
    if slots[gap] == NULL:
        return
    used -= 1
    i = gap
    while True:
        i = (i + 1) & mask
        if slots[i] == NULL:
            break
        if ((i - first_slot(slots[i].d)) & mask) >= ((i - gap) & mask):
            slots[gap] = slots[i]
            gap = i
    slots[gap] = NULL
