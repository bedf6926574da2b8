"""Arguments that are nested deeply, or hold themselves, are errors and no crash."""

import re
from pathlib import Path

import pytest
from process import run_forked

import tensorlib as tl

HEAD = r"^(?= {0,4}(?:cdef|cpdef|def) [^=(\n]*\()"      # of a function or method

# Where compiled functions call themselves without a look at Python's limit, and why they end.
END = {
    "convert.pyx": "no deeper than a tensor has dims",
    "numbers.pyx": "once, with a number; no deeper than a tensor has dims",
    "operands.pyx": "once, with a tensor", "keys.pyx": "once, with float32",
    "column_norm.pyx": "once, with float32",
    "tensor.pyx": "a function of the same name",
    "guarded.pyx": "into tuples that were compared before",
    "draws.pyx": "once, with the real parts", "schedule.pyx": "once, with real and imaginary parts",
    "arrange.pyx": "once, with the last dims", "by_cast.pyx": "with half of the rows",
    "ranges.pyx": "once, with the real and with the imaginary bounds",
}


def functions(text):
    """(name, body) of the functions and methods of a Cython module."""
    for part in re.split(HEAD, text, flags=re.MULTILINE):
        head = re.match(r"( *)(?:cdef|cpdef|def) [^=(\n]*?(\w+) *\(.*?:\n", part, re.DOTALL)
        if head:
            body = re.match(rf"(?:{head[1]} .*\n|\n)*", part[head.end():])[0]
            yield head[2], re.sub(r'""".*?"""', "", body, flags=re.DOTALL)


def test_compiled_functions_that_call_themselves_look_at_the_limit():
    found = {path.name for path in Path(tl.__file__).parent.rglob("*.pyx")
             for name, body in functions(path.read_text())
             if "enter(" not in body and re.search(rf"(?:(?<![\w.\"])|self\.){name}\(", body)}
    assert found == set(END)


DEEP = """
import signal, sys, threading, types, warnings
import tensorlib as tl
from tensorlib.ops.lazy import declare_all

def nest(wrap, depth=100_000):
    value = tl.ones(2)
    for _ in range(depth):
        value = wrap(value)
    return value

def within(kind):
    held = kind()
    held.append(held) if kind is list else held.update(a=held)
    return held

declare_all()
warnings.simplefilter("ignore")
odd = [nest(lambda x: [x]), nest(lambda x: {"a": x}), nest(slice, 5000), within(list), within(dict)]
functions = [op.function for op in tl.ops.registry.values()]
for place in tl, tl.func, tl.autograd, tl.program, tl.linalg, tl.utils, tl.data, tl.nn.utils:
    functions += [value for name in dir(place)
                  if isinstance(value := getattr(place, name), types.FunctionType)]
functions += [
    tl.compile(lambda x: x), tl.compile(lambda x: tl.ones(2) + 1), tl.vmap(lambda x: x),
    tl.func.grad(lambda x: tl.ones(())), lambda x: tl.program.trace(lambda y: tl.ones(2), x),
    lambda x: tl.ones(2)[x], lambda x: tl.save(x, "/dev/null")]
def run():
    ended = 0
    for function in functions:
        for value in odd:
            for args in (value,), (tl.ones(2), value):
                try:
                    function(*args)
                except Exception:
                    pass
                ended += 1
    print(ended > 5000)

if sys.version_info < (3, 14):
    run()
else:      # as deep as the stack has room: of 8 MiB, the text of a list takes Python two seconds
    threading.stack_size(2**19)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
"""


def test_what_is_nested_deeply_or_holds_itself():
    """A tuple is left out: Python itself crashes where it looks up one that is so deep. Nor is a
    slice as deep as others, which can be looked up as well from Python 3.12 on."""
    assert run_forked(DEEP) == "True\n"


LENT = """
import sys, threading
import numpy as np
import tensorlib as tl

WAYS = {
    "dlpack": tl.from_dlpack, "numpy": lambda x: tl.from_numpy(x.numpy()),
    "numpy's dlpack": lambda x: tl.from_numpy(np.from_dlpack(x)),
    "dlpack of numpy": lambda x: tl.from_dlpack(x.numpy()),
    "buffer": lambda x: tl.frombuffer(memoryview(x), dtype=tl.float32),
    "view": lambda x: tl.from_dlpack(x[:]),
}
chains = []
for take in WAYS.values():
    x = tl.ones(2)
    for _ in range(20_000):              # frames of 7 bytes would fill the stack below
        x = take(x)
    chains.append(x)
assert sum(x.sum().item() for x in chains) == 12
del x
threading.stack_size(128 * 1024)
thread = threading.Thread(target=chains.clear)
thread.start()
thread.join()
x = tl.ones(3) + 1
print(len(chains), x.sum().item())
"""


def test_memory_that_was_lent_on_many_times_is_given_back_one_after_the_other():
    assert run_forked(LENT) == "0 6.0\n"


def test_compiled_functions_take_what_is_in_itself_eagerly_and_programs_say_so():
    held = []
    held.append(held)
    assert tl.compile(lambda x: x)(held) is held
    with pytest.raises(RecursionError):
        tl.program.ir.nested.gather(held, [])
