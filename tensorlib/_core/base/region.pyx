"""Addresses for the elements of tensors without memory (the device `meta`).

A tensor on `meta` has a storage like any other, with addresses and a number of bytes, so views,
strides and bounds checks need no special cases. Its addresses are in one region of the address
space, which is reserved when it is first needed and never written to: the functions that run loops
(`work.pxd`) skip loops over memory in the region, and the pool skips all loops of a thread that
only infers shapes (`set_without_memory`).

The region is readable and writable, though no page of it is ever touched: a loop that fails to be
skipped reads zeros and does not crash. The region is as large as the system permits. Addresses are
handed out in order, and again from the start after its end, so tensors there may share them.
"""

from tensorlib._core.base cimport watch
from tensorlib._core.base.locks cimport Lock, add_bits, drop, hold

cdef extern from * nogil:
    """
    #include <stddef.h>
    #include <sys/mman.h>
    #ifndef MAP_NORESERVE
    #define MAP_NORESERVE 0
    #endif
    #ifndef MAP_ANONYMOUS
    #define MAP_ANONYMOUS MAP_ANON
    #endif
    static __thread int meta_mode = 0;
    static int* meta_mode_address(void) { return &meta_mode; }
    static __thread unsigned long long defaults = 2;       /* 2: no block, the CPU */
    static unsigned long long* defaults_address(void) { return &defaults; }
    static void* reserved(size_t nbytes) {
        void* found = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return found == MAP_FAILED ? NULL : found;
    }
    static int shut(void* data, size_t nbytes) { return mprotect(data, nbytes, PROT_NONE); }
    """
    int* meta_mode_address()
    unsigned long long* defaults_address()
    void* reserved(size_t nbytes)
    int shut(void* data, size_t nbytes)

cdef enum:
    LINE = 64
    LARGEST_BITS = 46              # of the 47 bits of a user-space address
    SMALLEST_BITS = 32

cdef size_t taken = 0
cdef Lock addresses          # held while the region is reserved or addresses are taken


cdef int* without_memory() noexcept nogil:
    """Whether allocations of this thread have no memory."""
    return meta_mode_address()


cdef char* reserve(Py_ssize_t nbytes) except NULL:
    """The address of `nbytes` bytes without memory. Raises: MemoryError for too many."""
    global taken
    cdef size_t wanted = (<size_t>nbytes // LINE + 1) * LINE
    cdef char* found
    open_region()
    if wanted > region_size:
        raise MemoryError(f"meta: {nbytes:,} bytes are more than the {region_size:,} addresses "
                          "that this process can have")
    hold(&addresses)
    if wanted > region_size - taken:
        taken = 0
    found = region + taken
    taken += wanted
    drop(&addresses)
    return found


cdef int open_region() except -1:
    """Reserves the region, if that has not been done. Raises: MemoryError."""
    global region, region_size
    cdef int bits = LARGEST_BITS
    cdef char* found = NULL
    if region_size:
        return 0
    hold(&addresses)
    while region_size == 0 and bits >= SMALLEST_BITS:
        found = <char*>reserved(<size_t>1 << bits)
        if found != NULL:
            region, region_size = found, <size_t>1 << bits
            add_bits(&watch.watched, watch.META)
        bits -= 1
    drop(&addresses)
    if region_size == 0:
        raise MemoryError("meta: this process can have no more addresses")
    return 0


def set_without_memory(bint enabled):
    """Sets whether allocations of this thread have no memory; returns the value before."""
    cdef bint before = without_memory()[0]
    if enabled:
        open_region()
    without_memory()[0] = enabled
    return before


# ---- default devices -----------------------------------------------------------------------------
# The default devices of a thread, one for each enclosing `with device(...)`, are the bits of a
# number (1 for `meta`), the innermost lowest, with a 1 above all of them.

cdef bint makes_meta() noexcept nogil:
    """Whether new tensors of this thread have no memory by default."""
    return region_size != 0 and defaults_address()[0] & 1


def default_is_meta():
    """Whether the default device of this thread is `meta`."""
    return makes_meta()


def set_default_meta(bint enabled):
    """Sets whether the default device of this thread is `meta`; returns the value before."""
    cdef bint before = makes_meta()
    if enabled:
        open_region()
    defaults_address()[0] = defaults_address()[0] & ~<unsigned long long>1 | enabled
    return before


def enter_device(device):
    """Makes a device the default one of this thread; returns it.

    Raises: RuntimeError for one that holds no tensors, RecursionError for too many nested blocks.
    """
    cdef unsigned long long* defaults = defaults_address()
    device._check("device")
    if device.type == "meta":
        open_region()
    if defaults[0] >> 63:
        raise RecursionError("device: more than 62 blocks within each other")
    defaults[0] = defaults[0] << 1 | <bint>(device.type == "meta")
    return device


def leave_device(device, *error):
    """Ends the innermost block of `enter_device`, if there is one."""
    if defaults_address()[0] > 3:
        defaults_address()[0] >>= 1


def forbid_region():
    """For tests: from now on an access to an element of a `meta` tensor ends the process."""
    open_region()
    shut(region, region_size)
