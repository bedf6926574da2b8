"""Allocations that fail: every one of this thread from the n-th on, or that one alone.

With a C compiler a small library is put before the C library's `malloc` and its kin, so that the
core's own allocations fail as well as Python's; without one only Python's do.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static __thread long left __attribute__((tls_model("initial-exec"))) = 0;   /* 0: none fails */
static __thread int once __attribute__((tls_model("initial-exec"))) = 0;
void fuzz_arm(long n, int only_one) { left = n; once = only_one; }
long fuzz_left(void) { return left; }
static int fails(void) {
    if (left == 0) return 0;
    if (left > 1) { left--; return 0; }
    if (once) left = 0;
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
    built = library(folder)
    if built is None:
        return {}
    return {"LD_PRELOAD": str(built), "PYTHONMALLOC": "malloc"}


try:
    _arm = ctypes.PyDLL(None).fuzz_arm
    _arm.argtypes = (ctypes.c_long, ctypes.c_int)
except AttributeError:
    def _arm(n, only_one):
        import _testcapi
        if n:
            _testcapi.set_nomemory(n, n + 1 if only_one else 0)
        else:
            _testcapi.remove_mem_hooks()


@contextlib.contextmanager
def allocations(n, once):
    """Within, the n-th allocation of this thread fails, and unless `once` all after it."""
    _arm(n, once)
    try:
        yield
    finally:
        _arm(0, 0)
