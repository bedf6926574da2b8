"""A first use that an interrupt or a lack of memory ends: the next one finds everything there."""

from process import run_python

# In children of a process, an error at one of many calls; then the same once more.
ENDED = """
import os, random, sys
import numpy
tries, imported, sources = int(sys.argv[1]), sys.argv[2] == "imported", sys.argv[3:]
if imported:
    import tensorlib

def count_calls(fails_at=None, error=None):
    calls = 0
    def tracer(frame, event, argument):
        nonlocal calls
        calls += "tensorlib" in frame.f_code.co_filename
        if calls == fails_at:
            sys.settrace(None)
            raise error
    sys.settrace(tracer)
    try:
        exec(source, {})
    except (KeyboardInterrupt, MemoryError, RecursionError):
        pass
    sys.settrace(None)
    return calls

def value():
    names = {}
    exec(source, names)
    return repr(names["r"])

def in_child(function):
    read, write = os.pipe()
    if not (pid := os.fork()):
        try:
            os.write(write, str(function()).encode())
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(write)
    said = os.fdopen(read).read()
    os.waitpid(pid, 0)
    return said

def counted():
    return f"{count_calls()} {value()}"

def ended(place):
    count_calls(place, random.choice([KeyboardInterrupt, MemoryError, RecursionError])())
    return value()

for source in sources:
    random.seed(7)
    calls, right = in_child(counted).split(" ", 1)
    for place in random.sample(range(1, int(calls)), tries):
        said = in_child(lambda: ended(place))
        if said != right:
            print(source, place, said)
"""
USES = [
    "from tensorlib import nn, ones\nr = nn.Linear(2, 3)(ones(1, 2)).shape",
    """
import tensorlib as tl
x = tl.tensor([-1.0], requires_grad=True)
x.celu().sum().backward()
r = x.grad, tl.nn.functional.gelu(x)""",
    "import tensorlib as tl\nr = tl.linalg.inv(2 * tl.eye(2))",
    "import tensorlib as tl\nr = tl.special.erf(tl.ones(1)), tl.ones(2).deg2rad()",
    "import numpy as np, tensorlib as tl\nr = np.sum(np.exp(tl.ones(2)))",
    "import tensorlib as tl\nr = tl.vmap(tl.sin)(tl.ones(3))",
    "import tensorlib as tl\nr = len(tl.ops.registry)",
]


def test_a_first_use_that_was_interrupted_can_be_repeated():
    assert run_python(ENDED, "5", "imported", *USES) == ""


def test_an_import_of_the_package_that_was_interrupted_can_be_repeated():
    source = "import tensorlib as tl\nr = tl.ones(2).celu().sum(), tl.memory.__name__"
    assert run_python(ENDED, "6", "new", source) == ""


def test_a_family_that_was_interrupted_shows_nothing_of_itself():
    """An operation whose gradient was not declared yet would have none, and say nothing."""
    assert run_python("""
import tensorlib as tl
import sys
def tracer(frame, event, argument):
    if frame.f_code.co_name == "declared":
        raise KeyboardInterrupt
before = dict(vars(tl.Tensor)), dict(vars(tl)), set(tl._core.graph.op.declared)
sys.settrace(tracer)
try:
    tl.nn.functional.celu
except KeyboardInterrupt:
    print("interrupted")
sys.settrace(None)
print(before == (dict(vars(tl.Tensor)), dict(vars(tl)), set(tl._core.graph.op.declared)))
x = tl.tensor([-1.0], requires_grad=True)
x.celu().sum().backward()
print(round(x.grad.item(), 3))
""").split() == ["interrupted", "True", "0.368"]
