"""Memory of tensors: a caching allocator, and storages, which own or borrow a block.

Freed blocks are kept by size class and reused, up to a bound: with fresh memory, six sevenths of
the time of an addition with a result of 64 MB are page faults. Blocks that were not requested for
some seconds are returned to the system, and kept and used memory together are at most twice the
peak use in that time; sizes that were not requested lately are evicted first. Blocks are aligned to
64 bytes; those of `HUGE` bytes and more are aligned to huge pages, which are advised for them. All
of it runs under the GIL, or without one under the lock `memory`.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport free

from tensorlib._core.base.closed cimport close_type
from tensorlib._core.base.locks cimport Lock, drop, fetch_add, hold
from tensorlib._core.base.region cimport computes_nothing, reserve
from tensorlib._core.base.scratch cimport drop_scratch, kept_scratch

cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <time.h>
    #include <unistd.h>
    /* The debug build poisons what no tensor may access: kept blocks, and the tails of others. */
    #ifdef __SANITIZE_ADDRESS__
    #include <sanitizer/asan_interface.h>
    #define permit(data, nbytes) __asan_unpoison_memory_region(data, nbytes)
    #define forbid(data, nbytes) __asan_poison_memory_region(data, nbytes)
    #else
    #define permit(data, nbytes) ((void)0)
    #define forbid(data, nbytes) ((void)0)
    #endif
    /* The version of new storages, below 0 in inference mode. Every allocation reads it: by this
       model of thread-local memory in one instruction, 2 ns less than by a call. musl loads no
       module that asks for it. */
    #ifdef __GLIBC__
    __attribute__((tls_model("initial-exec")))
    #endif
    static __thread int64_t new_version = 0;
    static int64_t* new_version_address(void) { return &new_version; }
    static void advise_huge(void* data, size_t nbytes) {
    #ifdef MADV_HUGEPAGE
        madvise(data, nbytes, MADV_HUGEPAGE);
    #endif
    }
    static Py_ssize_t physical_memory(void) {
        return (Py_ssize_t)sysconf(_SC_PHYS_PAGES) * (Py_ssize_t)sysconf(_SC_PAGE_SIZE);
    }
    static int64_t milliseconds(void) {
        struct timespec now;
    #ifdef CLOCK_MONOTONIC_COARSE      /* 5 ns, and exact to some ms */
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    #else
        clock_gettime(CLOCK_MONOTONIC, &now);
    #endif
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    }
    static int size_class_of(size_t lines) {   /* 4 classes for each doubling, lines >= 1 */
        if (lines <= 8) return (int)lines - 1;
        int top = 63 - __builtin_clzll(lines - 1);
        return 8 + (top - 3) * 4 + (int)(((lines - 1) >> (top - 2)) & 3);
    }
    """
    int posix_memalign(void** block, size_t alignment, size_t size)
    void permit(void* data, size_t nbytes)
    void forbid(void* data, size_t nbytes)
    int64_t new_version
    int64_t* new_version_address()
    void advise_huge(void* data, size_t nbytes)
    Py_ssize_t physical_memory()
    int size_class_of(size_t lines)
    int64_t milliseconds()

ctypedef void (*destructor)(PyObject*) noexcept

cdef extern from "Python.h":
    ctypedef struct TypeSlots "PyTypeObject":
        destructor tp_dealloc

cdef extern from *:
    """
    static __thread struct Freeing { int depth; PyObject* waiting; } freeing;
    """
    struct Freeing:
        int depth
        PyObject* waiting      # the first of a linked list
    Freeing freeing            # storages of borrowed memory that this thread is to free

cdef enum:
    DEEP = 8                   # nested deallocations of these, beyond which others are deferred

cdef enum:
    HUGE_PAGE = 2 << 20
    HUGE = 4 << 20           # blocks from here on use huge pages
    SLAB = 1 << 20           # small blocks are cut from slabs of this size ...
    SMALL = 4096             # ... up to this size
    STALE_MS = 100           # sizes that were not requested for so long are evicted first
    N_CLASSES = 8 + 4 * 53   # the last one has 2**62 bytes


class OutOfMemoryError(MemoryError, RuntimeError):
    """A tensor that does not fit in memory. PyTorch raises RuntimeError here, NumPy MemoryError."""

    __module__ = "tensorlib"


cdef struct Block:
    Block* next
    int64_t freed                    # when, in milliseconds; of blocks above SMALL alone

cdef Lock memory                     # of all variables below, except for the limits
cdef Block* kept[N_CLASSES]          # free blocks by size class
cdef int64_t bytes_in_use = 0, bytes_kept = 0
# Peak use: in this window of time, in the one before, and in all earlier ones since `reset_peak`
# was called.
cdef int64_t window_peak = 0, last_peak = 0, peak_in_use = 0
cdef int64_t keep_ms = 10_000        # how long blocks are kept; also the length of a window
cdef int64_t window_began = 0, next_look = 0
cdef int64_t count_requests = 0, count_reused = 0, count_released = 0
cdef char* slab = NULL
cdef Py_ssize_t slab_left = 0
cdef Py_ssize_t MEMORY = physical_memory()
cdef int64_t limit_kept = MEMORY // 4


cdef inline Py_ssize_t class_bytes(int size_class) noexcept nogil:
    """Bytes of a block of this class: 64 to 512 in steps of 64, then 4 sizes for each doubling."""
    cdef int top, quarter
    if size_class < 8:
        return (size_class + 1) * LINE
    top = (size_class - 8) // 4 + 3
    quarter = (size_class - 8) % 4
    return ((<Py_ssize_t>1 << top) + ((<Py_ssize_t>quarter + 1) << (top - 2))) * LINE


cdef void* fresh_block(Py_ssize_t nbytes) noexcept:
    """New memory from the system; NULL if there is none."""
    global slab, slab_left
    cdef void* block = NULL
    if nbytes <= SMALL:
        if slab_left < nbytes:
            # the rest of the old slab is too small for this request and is abandoned
            if posix_memalign(&block, LINE, SLAB):
                return NULL
            slab, slab_left = <char*>block, SLAB
        block = slab
        slab += nbytes
        slab_left -= nbytes
        return block
    if nbytes >= HUGE:
        if posix_memalign(&block, HUGE_PAGE, nbytes):
            return NULL
        advise_huge(block, nbytes)
        return block
    if posix_memalign(&block, LINE, nbytes):
        return NULL
    return block


@cython.final
@cython.no_gc
@cython.freelist(65536)
cdef class Storage:
    """A block of memory, owned or borrowed. Views share it; `version` counts writes in place."""

    def __dealloc__(self):
        if self.capacity:
            hold(&memory)
            release(self.data, self.capacity)
            drop(&memory)


cdef TypeSlots* type_slots = <TypeSlots*><PyObject*>Storage
cdef destructor free_storage = type_slots.tp_dealloc


cdef void dealloc(PyObject* self) noexcept:
    """Frees a storage, or defers that if too many deallocations are nested.

    The owner of borrowed memory may have borrowed it in turn, as when libraries pass on an array by
    DLPack: then freeing one storage drops the last reference to another one.
    """
    if (<Storage>self).owner is None:
        free_storage(self)
        return
    if freeing.depth >= DEEP:
        (<Storage>self).version = <int64_t>freeing.waiting
        freeing.waiting = self
        return
    freeing.depth += 1
    free_storage(self)
    if freeing.depth == 1:
        while freeing.waiting != NULL:
            self = freeing.waiting
            freeing.waiting = <PyObject*>(<Storage>self).version
            free_storage(self)
    freeing.depth -= 1


type_slots.tp_dealloc = dealloc
close_type(Storage)


cdef void release(char* data, Py_ssize_t capacity) noexcept:
    global bytes_in_use, bytes_kept, count_released
    cdef int size_class
    bytes_in_use -= capacity
    size_class = size_class_of(capacity // LINE)
    cdef int64_t now = 0
    if capacity > SMALL:
        now = milliseconds()
        if now >= next_look:
            let_go(now, bytes_in_use + capacity)
        # a block of `allocate_whole` belongs to no class
        if class_bytes(size_class) != capacity or not has_room(capacity, now):
            count_released += 1
            free(data)
            return
        bytes_kept += capacity
    permit(data, sizeof(Block))
    (<Block*>data).freed = now
    (<Block*>data).next = kept[size_class]
    kept[size_class] = <Block*>data
    forbid(data + sizeof(Block), capacity - sizeof(Block))


cdef bint has_room(Py_ssize_t capacity, int64_t now) noexcept:
    """Whether so many more bytes may be kept, after evicting sizes that were not requested lately.

    Otherwise blocks of sizes that a program no longer uses would displace those that it does use,
    and each result would be fresh memory: 65,536 x 16 floats plus a row took 235 us instead of
    118.
    """
    cdef Py_ssize_t most = min(limit_kept, 2 * max(window_peak, last_peak) - bytes_in_use)
    cdef int size_class, oldest
    cdef Block* block
    while bytes_kept + capacity > most:
        oldest = -1
        if capacity <= most and bytes_kept > 0:
            for size_class in range(N_CLASSES):
                block = kept[size_class]
                if block != NULL and class_bytes(size_class) > SMALL and (
                        now - block.freed > STALE_MS) and (
                        oldest < 0 or block.freed < kept[oldest].freed):
                    oldest = size_class
        if oldest < 0:
            return False
        give_back(oldest)
    return True


cdef inline void give_back(int size_class) noexcept:
    """Returns the first kept block of a class to the system."""
    global bytes_kept, count_released
    cdef Block* block = kept[size_class]
    kept[size_class] = block.next
    bytes_kept -= class_bytes(size_class)
    count_released += 1
    free(block)


cdef void let_go(int64_t now, int64_t lives) noexcept:
    """Returns blocks that were kept for too long to the system, and begins a new window when the
    old one is over, with `lives`, the bytes in use, as its peak."""
    global window_began, window_peak, last_peak, peak_in_use, next_look, bytes_kept, count_released
    cdef int size_class
    cdef Block* block
    cdef Block** place
    if now - window_began >= keep_ms:
        last_peak, peak_in_use = window_peak, max(peak_in_use, window_peak)
        window_began, window_peak = now, lives
    next_look = now + keep_ms // 4
    for size_class in range(N_CLASSES):
        if class_bytes(size_class) <= SMALL:
            continue
        place = &kept[size_class]            # those freed last come first
        while place[0] != NULL and now - place[0].freed <= keep_ms:
            place = &place[0].next
        while place[0] != NULL:
            block = place[0]
            place[0] = block.next
            bytes_kept -= class_bytes(size_class)
            count_released += 1
            free(block)


cdef int64_t* first_version() noexcept nogil:
    """The address of the version of new storages of this thread."""
    return new_version_address()
cdef int64_t epoch = 0


cdef int64_t next_epoch() noexcept:
    """Begins an epoch, and returns its number, which later storages have as `born`."""
    return fetch_add(&epoch, 1) + 1


cdef inline Block* take_block(int size_class, Py_ssize_t capacity) noexcept:
    """A block of a class, kept or new, which counts as in use; NULL if there is none."""
    global bytes_in_use, window_peak, bytes_kept, count_requests, count_reused
    cdef Block* block
    hold(&memory)
    block = kept[size_class]
    if block != NULL:
        kept[size_class] = block.next
        if capacity > SMALL:
            bytes_kept -= capacity
        count_reused += 1
    else:
        block = <Block*>fresh_block(capacity)
        if block == NULL:
            drop(&memory)
            return NULL
    count_requests += 1
    bytes_in_use += capacity
    if bytes_in_use > window_peak:
        window_peak = bytes_in_use
    drop(&memory)
    return block


cdef Storage allocate(Py_ssize_t nbytes):
    """An uninitialised storage of at least `nbytes` bytes. Raises OutOfMemoryError."""
    cdef Storage storage
    cdef Block* block
    cdef int size_class
    cdef Py_ssize_t capacity
    if computes_nothing():
        return borrow(reserve(nbytes), nbytes, True, None)
    if nbytes > MEMORY:
        raise OutOfMemoryError(
            f"cannot allocate {nbytes:,} bytes: this machine has {MEMORY:,}")
    size_class = size_class_of((nbytes + LINE - 1) // LINE if nbytes else 1)
    capacity = class_bytes(size_class)
    block = take_block(size_class, capacity)
    if block == NULL:
        empty_cache()
        block = take_block(size_class, capacity)
        if block == NULL:
            raise OutOfMemoryError(
                f"cannot allocate {nbytes:,} bytes ({bytes_in_use:,} are in use)")
    permit(block, capacity)
    # the whole line is the tensor's own: copies of a number fill it
    forbid(<char*>block + (nbytes + LINE - 1) // LINE * LINE,
           capacity - (nbytes + LINE - 1) // LINE * LINE)
    storage = Storage.__new__(Storage)
    storage.data = <char*>block
    storage.nbytes = nbytes
    storage.capacity = capacity
    storage.version = new_version
    storage.born = epoch
    storage.writable = True
    return storage


cdef Storage allocate_whole(Py_ssize_t nbytes):
    """An uninitialised storage of `nbytes` rounded up to whole lines, which is not kept for reuse
    when it is freed: for large memory that lasts. Raises OutOfMemoryError."""
    global bytes_in_use, window_peak
    cdef Storage storage
    cdef Py_ssize_t capacity = (nbytes + LINE - 1) // LINE * LINE
    cdef void* block
    if capacity <= SMALL or computes_nothing():
        return allocate(nbytes)
    block = fresh_block(capacity)              # not of a slab, so it needs no lock
    if block == NULL:
        empty_cache()
        block = fresh_block(capacity)
        if block == NULL:
            raise OutOfMemoryError(
                f"cannot allocate {nbytes:,} bytes ({bytes_in_use:,} are in use)")
    hold(&memory)
    bytes_in_use += capacity
    window_peak = max(window_peak, bytes_in_use)
    drop(&memory)
    storage = borrow(<char*>block, nbytes, True, None)
    storage.capacity = capacity
    return storage


cdef Storage borrow(char* data, Py_ssize_t nbytes, bint writable, object owner):
    """A storage over memory that `owner` keeps alive."""
    cdef Storage storage = Storage.__new__(Storage)
    storage.data = data
    storage.nbytes = nbytes
    storage.version = new_version
    storage.born = epoch
    storage.writable = writable
    storage.owner = owner
    return storage


def empty_cache():
    """Returns kept blocks above 4 KiB to the system. Blocks in use are not touched."""
    cdef int size_class
    drop_scratch()
    hold(&memory)
    for size_class in range(N_CLASSES):
        if class_bytes(size_class) <= SMALL:   # cut from slabs, which are never freed
            continue
        while kept[size_class] != NULL:
            give_back(size_class)
    drop(&memory)


def check_room(str name, n, Py_ssize_t nbytes):
    """Raises OutOfMemoryError for more objects of `nbytes` than this machine has memory for."""
    if n * nbytes > MEMORY:
        raise OutOfMemoryError(f"{name}: {n:,} tensors of {nbytes} bytes, beside their elements, "
                               f"do not fit in the {MEMORY:,} bytes of this machine")


def set_cache_limit(Py_ssize_t nbytes):
    """Bounds the bytes of freed memory kept for reuse (a quarter of the machine's at first).

    Raises: ValueError if `nbytes` is negative.
    """
    global limit_kept
    if nbytes < 0:
        raise ValueError(f"set_cache_limit: expected a size of 0 or more bytes, got {nbytes}")
    limit_kept = nbytes
    if bytes_kept > limit_kept:
        empty_cache()


def set_cache_time(double seconds):
    """Sets how long freed memory is kept before it is returned to the system (10 s at first).

    That is checked when memory is freed, so a process that computes nothing keeps what it has.
    Raises: ValueError if `seconds` is negative or NaN.
    """
    global keep_ms
    if not seconds >= 0:
        raise ValueError(f"set_cache_time: expected 0 or more seconds, got {seconds}")
    keep_ms = <int64_t>min(seconds * 1000, 1e15)
    hold(&memory)
    let_go(milliseconds(), bytes_in_use)
    drop(&memory)


def stats():
    """Statistics of the allocator as a dict; sizes in bytes, of whole blocks.

    `in_use` now, its `peak`, `kept` for reuse (the memory that kernels work in, and blocks above 4
    KiB; smaller ones are cut from slabs and stay), `limit` of what may be kept; `requests` in all,
    how many of them `reused` a kept block, and `released`, the blocks given back.
    """
    return {
        "in_use": bytes_in_use, "peak": max(peak_in_use, window_peak),
        "kept": bytes_kept + kept_scratch(),
        "limit": limit_kept, "requests": count_requests, "reused": count_reused,
        "released": count_released,
    }


def in_use():
    """Bytes of the blocks that are in use now."""
    return bytes_in_use


def reset_peak():
    """Sets the peak of `stats()` to what is in use now."""
    global peak_in_use, last_peak, window_peak
    hold(&memory)
    last_peak = max(last_peak, window_peak)
    peak_in_use = window_peak = bytes_in_use
    drop(&memory)
