"""The thread pool: ranges cut into chunks, which the caller and the workers run.

`parallel_for(fn, context, n, grain)` calls `fn(context, begin, end)` on chunks of [0, n). Their
bounds depend on n and grain alone, never on the number of threads, so neither do results.

How chunks are claimed: they are grouped in segments, about one for each thread. A thread first
works on its own segment, so that from call to call it gets the part of a tensor that is in its
caches, then on the rest of others. A 64-bit word of each segment, its ticket, holds the number of
the job in its high half and the next chunk in its low half. A thread reads the ticket, then the
job, then claims a chunk with one compare-and-swap of the ticket. The swap succeeds only if the job
is still the one that was read, so a worker that arrives late takes nothing, and nobody has to wait
for it. The caller waits for chunks that have been claimed, never for a worker that has not started:
on a busy machine it does all the work itself.

One job runs at a time. A thread that finds the pool busy, and a call from inside a chunk, run their
range themselves.
"""

import os

from tensorlib._core.base.region cimport computes_nothing

cdef extern from * nogil:
    """
    #include <limits.h>
    #include <pthread.h>
    #include <sched.h>
    #include <signal.h>
    #include <stdint.h>
    #include <time.h>

    #define atomic_get(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
    #define atomic_set(p, value) __atomic_store_n(p, value, __ATOMIC_SEQ_CST)
    #define atomic_add(p, value) __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST)
    #define atomic_replace(p, value) __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST)
    #define atomic_swap(p, old, value) \\
        __atomic_compare_exchange_n(p, old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

    #if defined(__x86_64__) || defined(__i386__)
    #define cpu_relax() __builtin_ia32_pause()
    #elif defined(__aarch64__)
    #define cpu_relax() __asm__ volatile("yield")
    #else
    #define cpu_relax() __asm__ volatile("" ::: "memory")
    #endif
    #define POOL_STACK ((size_t)1 << 20)

    static long long pool_nanoseconds(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000000000LL + now.tv_nsec;
    }

    static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t pool_wake = PTHREAD_COND_INITIALIZER;

    static void pool_renew_locks(void) {
        pthread_mutex_init(&pool_mutex, NULL);
        pthread_cond_init(&pool_wake, NULL);
    }

    /* Workers are never joined, and block every signal: signals are for Python's threads. Kernels
       keep tiles on the stack, of which musl gives a thread 128 KiB. */
    static int pool_start_thread(void *(*run)(void *)) {
        sigset_t all, before;
        pthread_t thread;
        pthread_attr_t settings;
        size_t stack = 0;
        int failed = pthread_attr_init(&settings);
        if (failed) return failed;
        pthread_attr_setdetachstate(&settings, PTHREAD_CREATE_DETACHED);
        if (!pthread_attr_getstacksize(&settings, &stack) && stack < POOL_STACK)
            pthread_attr_setstacksize(&settings, POOL_STACK);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        failed = pthread_create(&thread, &settings, run, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&settings);
        return failed;
    }
    """
    ctypedef unsigned long long uint64_t
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    pthread_mutex_t pool_mutex
    pthread_cond_t pool_wake
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)
    int pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*)
    int pthread_cond_broadcast(pthread_cond_t*)
    int pthread_atfork(void (*)() noexcept nogil, void (*)() noexcept nogil,
                       void (*)() noexcept nogil)
    void pool_renew_locks()
    int pool_start_thread(void* (*run)(void*) noexcept nogil)
    int sched_yield()
    long long pool_nanoseconds()
    void cpu_relax()
    uint64_t get_ticket "atomic_get"(uint64_t*)
    void set_ticket "atomic_set"(uint64_t*, uint64_t)
    bint swap_ticket "atomic_swap"(uint64_t*, uint64_t*, uint64_t)
    Py_ssize_t atomic_get(Py_ssize_t*)
    void atomic_set(Py_ssize_t*, Py_ssize_t)
    Py_ssize_t atomic_add(Py_ssize_t*, Py_ssize_t)
    Py_ssize_t atomic_replace(Py_ssize_t*, Py_ssize_t)
    void* get_pointer "atomic_get"(void**)
    void set_pointer "atomic_set"(void**, void*)

cdef enum:
    # How long an idle worker spins before it sleeps, in nanoseconds. Waking one through the kernel
    # costs 5 us and more, most of what a second thread gains on 100,000 elements. The time doubles
    # with each job that comes in time, and halves otherwise: if jobs come steadily a worker stays
    # awake between them, in an idle process it sleeps.
    SHORTEST_WAIT = 20000
    LONGEST_WAIT = 1000000
    LOOKS = 32               # between two readings of the clock, each some 25 ns
    # How long the caller spins for claimed chunks before it yields its core.
    SPINS_BEFORE_YIELD = 2000

cdef uint64_t CHUNK_BITS = 32
cdef uint64_t CHUNK_MASK = 0xFFFFFFFF  # as the number of a chunk: the job is closed

cdef enum:
    MOST_SEGMENTS = 16       # the end of a job visits all of them

cdef struct Segment:
    uint64_t ticket
    char[56] gap             # each ticket has a cache line to itself

# The job. It is written while all tickets are closed, so a torn read is never used.
cdef void* job_fn = NULL
cdef void* job_context = NULL
cdef Py_ssize_t job_n = 0
cdef Py_ssize_t job_grain = 1
cdef Py_ssize_t job_chunks = 0
cdef Py_ssize_t job_segments = 1
cdef Segment[MOST_SEGMENTS] segments
cdef Py_ssize_t done = 0

cdef Py_ssize_t busy = 0      # 1 while a caller owns the pool
MOST_THREADS = 4096           # more than any machine has; each thread is started
cdef Py_ssize_t threads = 1   # what set_num_threads asked for: the caller and threads - 1 workers
cdef Py_ssize_t started = 0   # workers alive; changes under the mutex
cdef Py_ssize_t sleepers = 0  # workers waiting on the condition; changes under the mutex
cdef Py_ssize_t[MOST_SEGMENTS] taken     # 1 if a worker owns this segment
cdef Py_ssize_t shared = 0    # chunks that workers have done


cdef void parallel_for(range_fn fn, void* context, Py_ssize_t n, Py_ssize_t grain) noexcept nogil:
    """Call fn on chunks of at least `grain` that cover [0, n); return when all are done."""
    if n <= 0 or computes_nothing():
        return
    grain = max(grain, 1, n // 0x40000000)
    cdef Py_ssize_t chunks = 1 + (n - 1) // grain
    if chunks == 1 or atomic_get(&threads) == 1 or atomic_replace(&busy, 1):
        run_serially(fn, context, n, grain)
        return
    open_job(fn, context, n, grain, chunks)
    wake_workers()
    while claim_and_run(0):
        pass
    wait_for_claimed(chunks)
    atomic_set(&busy, 0)


cdef void run_serially(range_fn fn, void* context, Py_ssize_t n, Py_ssize_t grain) noexcept nogil:
    # The same chunks as in parallel: a function may depend on their bounds.
    cdef Py_ssize_t begin = 0
    while n - begin > grain:
        fn(context, begin, begin + grain)
        begin += grain
    fn(context, begin, n)


cdef void open_job(range_fn fn, void* context, Py_ssize_t n, Py_ssize_t grain,
                   Py_ssize_t chunks) noexcept nogil:
    cdef uint64_t job = (get_ticket(&segments[0].ticket) >> CHUNK_BITS) + 1
    cdef Py_ssize_t parts = min(chunks, atomic_get(&threads), <Py_ssize_t>MOST_SEGMENTS), i
    for i in range(max(parts, atomic_get(&job_segments))):
        set_ticket(&segments[i].ticket, (job << CHUNK_BITS) | CHUNK_MASK)
    set_pointer(&job_fn, <void*>fn)
    set_pointer(&job_context, context)
    atomic_set(&job_n, n)
    atomic_set(&job_grain, grain)
    atomic_set(&job_chunks, chunks)
    atomic_set(&job_segments, parts)
    atomic_set(&done, 0)
    for i in range(parts - 1, -1, -1):      # workers wait for the first one, so it is opened last
        set_ticket(&segments[i].ticket, (job << CHUNK_BITS) | <uint64_t>(i * chunks // parts))


cdef bint claim_and_run(Py_ssize_t own) noexcept nogil:
    """Run one chunk of the open job, of a thread's own segment while there is one; false if there
    is none left."""
    cdef Py_ssize_t parts = atomic_get(&job_segments), i, first = own % parts
    for i in range(first, parts):
        if claim_in(i):
            return True
    for i in range(first):
        if claim_in(i):
            return True
    return False


cdef bint claim_in(Py_ssize_t segment) noexcept nogil:
    """Run one chunk of a segment of the open job; false if there is none left."""
    cdef uint64_t* ticket = &segments[segment].ticket
    cdef uint64_t seen = get_ticket(ticket)
    cdef range_fn fn
    cdef void* context
    cdef Py_ssize_t chunk, n, grain, chunks, parts
    while True:
        chunk = <Py_ssize_t>(seen & CHUNK_MASK)
        fn = <range_fn>get_pointer(&job_fn)
        context = get_pointer(&job_context)
        n = atomic_get(&job_n)
        grain = atomic_get(&job_grain)
        chunks = atomic_get(&job_chunks)
        parts = atomic_get(&job_segments)
        if segment >= parts or chunk >= (segment + 1) * chunks // parts:
            return False                    # the segment may be left from a job with more
        if swap_ticket(ticket, &seen, seen + 1):
            break
    fn(context, chunk * grain, min((chunk + 1) * grain, n))
    atomic_add(&done, 1)
    return True


cdef void wait_for_claimed(Py_ssize_t chunks) noexcept nogil:
    cdef Py_ssize_t spins = 0
    while atomic_get(&done) < chunks:
        spins += 1
        if spins < SPINS_BEFORE_YIELD:
            cpu_relax()
        else:
            sched_yield()


cdef void wake_workers() noexcept nogil:
    """Wake sleeping workers; start missing ones."""
    if atomic_get(&sleepers) == 0 and atomic_get(&started) >= atomic_get(&threads) - 1:
        return
    pthread_mutex_lock(&pool_mutex)
    if sleepers > 0:
        pthread_cond_broadcast(&pool_wake)
    # If the system refuses a thread, the caller and the running workers do the work.
    while started < atomic_get(&threads) - 1 and not pool_start_thread(work):
        atomic_add(&started, 1)
    pthread_mutex_unlock(&pool_mutex)


cdef bint is_new(uint64_t seen, uint64_t last) noexcept nogil:
    """Whether a ticket is of another job than `last`, and open.

    Both matter: a job that is still being written already has its number. A worker that looked at
    the number alone found no chunk, took the job for done, and missed it.
    """
    return seen >> CHUNK_BITS != last and seen & CHUNK_MASK != CHUNK_MASK


cdef Py_ssize_t own_segment() noexcept nogil:
    """A segment that no other thread owns; the caller's if there is none."""
    cdef Py_ssize_t i
    for i in range(1, MOST_SEGMENTS):
        if not atomic_replace(&taken[i], 1):
            return i
    return 0


cdef void* work(void* unused) noexcept nogil:
    """The loop of a worker: runs chunks while there are any, waits for the next job, sleeps."""
    cdef uint64_t last = 0         # the job before; the first one has the number 1
    cdef uint64_t seen
    cdef Py_ssize_t own = own_segment()
    cdef long long wait = SHORTEST_WAIT
    while True:
        if comes_in_time(last, wait):
            wait = min(2 * wait, <long long>LONGEST_WAIT)
        else:
            wait = max(wait // 2, <long long>SHORTEST_WAIT)
            if sleep_until_called(last):
                atomic_set(&taken[own], 0)
                return NULL
        seen = get_ticket(&segments[0].ticket)
        if not is_new(seen, last):
            continue               # the next one is being written already
        last = seen >> CHUNK_BITS
        while atomic_get(&started) < atomic_get(&threads) and claim_and_run(own):
            atomic_add(&shared, 1)


cdef bint comes_in_time(uint64_t last, long long wait) noexcept nogil:
    """Spin for `wait` nanoseconds until there is a new job; whether one came."""
    cdef long long end = 0
    cdef int look
    while True:
        for look in range(LOOKS):
            if is_new(get_ticket(&segments[0].ticket), last):
                return True
            cpu_relax()
        if end == 0:
            end = pool_nanoseconds() + wait
        elif pool_nanoseconds() > end:
            return False


cdef bint sleep_until_called(uint64_t last) noexcept nogil:
    """Sleep until there is a new job; true if this worker is one too many and shall end."""
    cdef bint surplus
    pthread_mutex_lock(&pool_mutex)
    # A worker counts itself, then looks for a job; a caller opens its job, then reads the count:
    # one of them sees the other.
    atomic_add(&sleepers, 1)
    while started < atomic_get(&threads) and not is_new(
            get_ticket(&segments[0].ticket), last):
        pthread_cond_wait(&pool_wake, &pool_mutex)
    atomic_add(&sleepers, -1)
    surplus = started >= atomic_get(&threads)
    if surplus:
        atomic_add(&started, -1)
    pthread_mutex_unlock(&pool_mutex)
    return surplus


cdef void reset_segments() noexcept nogil:
    """Close all tickets and free all segments."""
    cdef Py_ssize_t i
    for i in range(MOST_SEGMENTS):
        segments[i].ticket |= CHUNK_MASK
        taken[i] = 0


cdef void forget_workers() noexcept nogil:
    """Reset the pool in a forked child, where the workers of the parent do not exist."""
    global started, sleepers, busy
    pool_renew_locks()
    started = 0
    sleepers = 0
    busy = 0
    reset_segments()


# Functions called with each new number of threads, such as the one that sets it for the BLAS.
followers = []


def get_num_threads():
    """The number of threads that one operation may use, the caller's among them."""
    return threads


def set_num_threads(n):
    """Let one operation use up to n threads, the caller's among them; results do not depend on n.

    Raises: TypeError if n is not an integer, RuntimeError if it is not positive or too large.
    """
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    if not 1 <= n <= MOST_THREADS:
        raise RuntimeError(
            f"set_num_threads expects a positive integer, at most {MOST_THREADS}, but got {n}")
    atomic_set(&threads, n)
    with nogil:
        pthread_mutex_lock(&pool_mutex)
        pthread_cond_broadcast(&pool_wake)  # those that are too many end
        pthread_mutex_unlock(&pool_mutex)
    for follow in followers:
        follow(n)


def chunks_by_workers():
    """How many chunks workers have done in this process: callers did the others themselves."""
    return atomic_get(&shared)


def usable_processors():
    """How many processors this process may keep busy: CPU affinity and cgroup limits."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, min([count] + list(_cgroup_limits())))


def _cgroup_limits():
    """The processors granted by the cgroups of this process and their parents, version 1 or 2."""
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = "/sys/fs/cgroup" + ("/cpu" if controllers else "")
        while True:
            folder = root + path.rstrip("/")
            limit = _read(folder + "/cpu.max") or " ".join(
                _read(f"{folder}/cpu.cfs_{name}_us") for name in ("quota", "period"))
            match limit.split():
                case [quota, period] if quota.isdigit():  # unlimited is "max" or -1
                    yield -(-int(quota) // int(period))
            if path in ("", "/"):
                break
            path = os.path.dirname(path)


def _read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _initial_threads():
    asked = os.environ.get("TENSORLIB_NUM_THREADS")
    if asked is None:
        return usable_processors()
    if not asked.isdecimal() or not 1 <= int(asked) <= MOST_THREADS:
        raise ImportError(f"TENSORLIB_NUM_THREADS={asked!r} is not a positive integer")
    return int(asked)


reset_segments()
pthread_atfork(NULL, NULL, forget_workers)
threads = _initial_threads()
