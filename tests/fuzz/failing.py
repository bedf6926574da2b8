"""Allocations that fail: the n-th of this thread from now on, and some after it.

With a C compiler a small library is put before the C library's `malloc` and the like, so that the
core's own allocations fail as well as Python's; without one only Python's do.
"""

import ctypes
import os
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
/* How many allocations of this thread until one fails (0: none will), and how many do then. */
static __thread long counts[2] __attribute__((tls_model("initial-exec"))) = {0, 0};
long *fuzz_counts(void) { return counts; }
static int fails(void) {
    if (counts[0] == 0) return 0;
    if (counts[0] > 1) { counts[0]--; return 0; }
    if (--counts[1] <= 0) counts[0] = 0;
    errno = ENOMEM;
    return 1;
}
void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return fails() ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
int posix_memalign(void **p, size_t alignment, size_t n) {
    if (fails()) return ENOMEM;
    *p = __libc_memalign(alignment, n);
    return *p ? 0 : ENOMEM;
}
"""


def library(folder):
    """The path of the library of failing functions, compiled into a folder; None where it can't be.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or os.uname().sysname != "Linux":
        return None
    source, built = Path(folder, "failing.c"), Path(folder, "failing.so")
    source.write_text(SOURCE)
    done = subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", built, source],
                          capture_output=True, check=False)
    return built if done.returncode == 0 else None


def environment(folder):
    """What a process needs in its environment so that allocations can fail in it."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return {}                        # it has the allocations already: Python's alone fail
    built = library(folder)
    if built is None:
        return {}
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return {"LD_PRELOAD": str(built)}      # Python has an allocator of its own there, always
    return {"LD_PRELOAD": str(built), "PYTHONMALLOC": "malloc"}


class Counts:
    """How many allocations of this thread may pass until so many fail, by the library above.

    To set them takes no allocation, so that they can be set back whatever fails.
    """

    def __init__(self):
        place = ctypes.PyDLL(None).fuzz_counts
        place.restype = ctypes.POINTER(ctypes.c_long)
        self.place = place()

    def arm(self, n, length):
        """Has `length` allocations fail, the n-th from now on and those after it."""
        self.place[1] = length
        self.place[0] = n

    def disarm(self):
        """No allocation fails any more."""
        self.place[0] = 0


class PythonsOwn:
    """The same for Python's allocations alone, by its own tests' functions."""

    def arm(self, n, length):
        """Has `length` allocations fail, the n-th from now on and those after it."""
        import _testcapi
        _testcapi.set_nomemory(n, n + length)

    def disarm(self):
        """No allocation fails any more."""
        import _testcapi
        _testcapi.remove_mem_hooks()


@cache
def counts():
    """What makes allocations of this process fail."""
    try:
        return Counts()
    except AttributeError:
        return PythonsOwn()


def run(code, names, n, length):
    """Runs compiled code with failing allocations; what it raises, or None."""
    fails = counts()
    try:
        fails.arm(n, length)
        eval(code, names)
    except BaseException as error:
        fails.disarm()
        return error
    fails.disarm()
    return None
