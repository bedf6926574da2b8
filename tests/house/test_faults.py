"""The faults that `python -m tools.mutants` puts into the package."""

from pathlib import Path

import pytest
from tools.faults import faults

ROOT = Path(__file__).parents[2]

CYTHON = '''"""a < b"""
cdef enum:
    LINE = 64
cdef extern from "x.h":
    int f(float* x, int n)

cdef int g(float* x, int n=3) except -1:
    cdef int i, size = n + 1    # n - 1
    cdef float* y = <float*>x
    if n < size and x != NULL:
        raise ValueError(f"{n} < {size}")
    for i in range(n):
        y[i] += x[i]
    with nogil:
        h(x, y)
    return -1
'''


def changes(text):
    """The lines before and after each fault."""
    found = []
    for fault in sum(faults("x.pyx", text), []):
        number = text.count("\n", 0, fault.start)
        found.append((text.splitlines()[number].strip(),
                      fault.apply(text).splitlines()[number].strip()))
    return found


def test_the_faults_of_a_piece_of_cython():
    n_plus_1 = "cdef int i, size = n + 1    # n - 1"
    check, loop, sums = "if n < size and x != NULL:", "for i in range(n):", "y[i] += x[i]"
    assert sorted(changes(CYTHON)) == sorted([
        (n_plus_1, "cdef int i, size = n - 1    # n - 1"),
        (n_plus_1, "cdef int i, size = n + 2    # n - 1"),
        (n_plus_1, "cdef int i, size = n + 0    # n - 1"),
        (check, "if n <= size and x != NULL:"), (check, "if n < size or x != NULL:"),
        (check, "if n < size and x == NULL:"), (check, "if False:"), (check, "if True:"),
        ('raise ValueError(f"{n} < {size}")', "pass"), (loop, "for i in range(n - 1):"),
        (sums, "y[i] -= x[i]"), (sums, "pass"), ("with nogil:", "if True:"),
        ("h(x, y)", "pass"), ("h(x, y)", "h(y, x)"),
        ("return -1", "return 1"), ("return -1", "return -0"), ("return -1", "return -2"),
    ])


@pytest.mark.parametrize("line, after", [
    ("x = y is None", {"x = y is not None"}), ("x = y is not None", {"x = y is None"}),
    ("x = y in z", {"x = y not in z"}), ("x = not y", {"x = y"}), ("return -x", {"return x"}),
    ("x = [True, 0.25]", {"x = [False, 0.25]", "x = [True, 0.23]"}),
    ("def f(x, *, dim=0):", {"def f(x, *, dim=1):"}), ("continue", {"pass"}),
    ("@op(linear=True, n=3)", {"@op(linear=False, n=3)"}), ("self.a = b", {"pass"}),
    ("import a", set()), ("class A(B):", set()), ("f(*args, **kwargs)", {"pass"}),
    ("BAD = refusals((ValueError, 1))", set()),
    ("f(x, samples=g(1, 2), n=3)", {"pass", "f(x, samples=g(1, 2), n=4)",
                                    "f(x, samples=g(1, 2), n=2)"}),
    ("x = 0xFF", {"x = 0xF3"}), ("y = <size_t>&f[float]", set()), ("x = a[1:]", {
        "x = a[0:]", "x = a[2:]"})])
def test_the_faults_of_a_line(line, after):
    assert {new.replace("  ", " ") for _, new in changes(line + "\n")} == after


def test_every_part_of_the_package_has_faults_that_change_it():
    for folder in ("_core", "_kernels", "ops", "autograd", "batch"):
        for path in (ROOT / "tensorlib" / folder).rglob("*.pyx"):
            text = path.read_text()
            assert all(fault.apply(text) != text for fault in sum(faults(str(path), text), []))
