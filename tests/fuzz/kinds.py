"""How a call of each kind is made, from a seed and a number alone, and run.

A maker gives a call as texts; a runner says what is wrong with it, or None.
"""

import copy
import gc
import io
import pickle
import random
import sys
import threading
import traceback

import numpy as np

import tensorlib as tl

from . import failing, judge, targets, values
from .programs import PROGRAMS, STEPS, text_of
from .replaced import replaced_call, run_replaced


def random_for(kind, seed, number):
    """The random numbers of one call: the same whatever was called before."""
    return random.Random(f"{kind} {seed} {number}")


def reentrant_value(rng):
    """A plain value, or one that runs code on the tensors of the call."""
    return values.liar(rng) if rng.random() < 0.4 else values.plain_tensor(rng)


def collecting_call(rng):
    """A call in which collections run code on its tensors."""
    target, args, named = targets.odd_call(rng, values.plain_value)
    act, skip = rng.choice(["resize", "transpose", "reinit", "cache"]), rng.choice([0, 0, 1, 2, 5])
    return f"liars.Collecting({target}, {act!r}, {skip})", args, named


# ---- threads -------------------------------------------------------------------------------------

def thread_call(rng):
    """Programs of three threads over the same tensors."""
    return ("run_threads", [repr([rng.choice(STEPS) for _ in range(20)]) for _ in range(3)], {})


def run_threads(call):
    """Runs each list of steps on a thread of its own, all over the same tensors."""
    w = tl.rand(5, requires_grad=True)
    shared = {"tl": tl, "gc": gc, "copy": copy, "pickle": pickle, "x": tl.rand(4, 5),
              "y": tl.rand(5), "z": [], "w": w, "v": w * 2, "loss": (w * w).sum().exp(),
              "h": w.register_hook(lambda g: g), "rng": random.Random(3)}
    wrong = []

    def work(steps):
        for step in steps:
            try:
                exec(step, shared)
            except SystemError as error:
                wrong.append(f"SystemError in {step}: {error}")
            except Exception:
                pass

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work, args=(eval(steps),), daemon=True) for steps in call[1]]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
        judge.reset()
    return wrong[0] if wrong else None


# ---- allocations that fail -----------------------------------------------------------------------

def failing_call(rng):
    """A program, how many allocations in a row fail in it, and from which on that is tried."""
    return ("run_failing", [rng.choice(PROGRAMS)],
            {"length": str(rng.choice([1, 1, 2, 5, 50])), "first": str(rng.randint(1, 200))})


def is_numpys(error):
    """Whether an error comes from NumPy, which does not stand failing allocations everywhere.

    Its `ufunc.reduce` returns nothing and sets no error.
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    return ("numpy" in str(error) or "numpy" in last.filename or "np." in (last.line or ""))


def run_failing(call):
    """Runs a program with its n-th allocation failing, for many n: MemoryError or all is well."""
    program, length, first = text_of(call[1][0]), int(call[2]["length"]), int(call[2]["first"])
    judge.evaluated(program)                     # what is made once is there
    code = compile(program, "<program>", "eval")
    for n in range(first, first + 40):
        raised = failing.run(code, {**values.NAMES}, n, length)
        if isinstance(raised, SystemError) and not is_numpys(raised):
            return f"allocation {n} failed\n{''.join(traceback.format_exception(raised))}"
        judge.reset()
        try:
            judge.assert_works_still()
        except Exception:
            return (f"after allocation {n} failed the library does not work:\n"
                    f"{traceback.format_exc()}(what failed: {raised!r})")
    return None


# ---- pickles and copies --------------------------------------------------------------------------

REACHABLE = [
    "tl.rand(3, 4)", "tl.rand(3, requires_grad=True)", "tl.rand(3, requires_grad=True).tanh()",
    "tl.rand(3, requires_grad=True).tanh().grad_fn", "tl.Generator()", "tl.float32", "tl.bfloat16",
    "tl.Size([1, 2])", "tl.device('cpu')", "ops.registry['add']", "ops.registry['add'].gradient",
    "ops.registry['sum'].rules", "ops.registry['tanh'].rules[0]", "ops.call('tanh', tl.ones(2))",
    "ops.call('gather', tl.ones(2), dim=0, index=tl.tensor([1]))", "ops.registry", "tl.tanh",
    "tl.Tensor.tanh", "tl.Tensor.detach", "tl.no_grad()", "tl.Tensor", "tl.ones(2).detach",
    "tl.rand(2, requires_grad=True).register_hook(print)", "tl.default_generator",
    "ops.build_grad_op(ops.call('sum', tl.ones(2), dim=0))", "tl.ones(2)[None].expand(4, 2)",
    "tl.autograd.graph.get_gradient_edge(tl.rand(2, requires_grad=True) * 2)",
    "tl.ones(3, dtype=tl.bfloat16)", "tl.zeros(0, 3)", "liars.Odd([1.0, 2.0])",
    "type(tl.rand(3, requires_grad=True).tanh().grad_fn)", "tl.ones(4).bool()",
    "tl.ones(2, 3).T", "liars.inference(tl.ones(2))", "liars.readonly(tl.ones(2).numpy())"]

WAYS = ["copy", "deepcopy", "pickle", "flip", "cut", "argument", "new", "init"]


def pickle_call(rng):
    """Something that can be reached, a way to copy it, and what is wrong with the copy."""
    return ("run_pickle", [rng.choice(REACHABLE), repr(rng.choice(WAYS)), str(rng.randint(0, 5)),
                           str(rng.getrandbits(32)), values.odd_value(rng)], {})


class Careful(pickle.Unpickler):
    """Finds nothing but what tensors and arrays are made of: flipped bytes may name anything."""

    def find_class(self, module, name):
        if module.partition(".")[0] in ("tensorlib", "numpy", "copyreg", "_codecs", "fuzz"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def copied(thing, way, protocol, rng, odd):
    """A copy of a thing, by a way that may spoil it."""
    if way == "copy":
        return copy.copy(thing)
    if way == "deepcopy":
        return copy.deepcopy(thing)
    if way == "new":
        kind = thing if isinstance(thing, type) else type(thing)
        return kind.__new__(kind)
    if way == "init":
        thing.__init__(odd)
        return thing
    if way == "argument":
        made = thing.__reduce_ex__(protocol)
        args = list(made[1])
        args[rng.randrange(len(args))] = odd
        return made[0](*args)
    data = bytearray(pickle.dumps(thing, protocol))
    if way == "flip":
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif way == "cut":
        del data[rng.randrange(len(data)):rng.randrange(len(data)) + 4]
    return Careful(io.BytesIO(bytes(data))).load()


def run_pickle(call):
    """Copies, and uses the copy."""
    thing, way, protocol, bits, odd = call[1]
    try:
        whole = judge.evaluated(thing)
        if isinstance(whole, np.ndarray):
            return None                          # NumPy's own pickles crash it when they are cut
        found = copied(whole, eval(way), int(protocol), random.Random(int(bits)),
                       judge.evaluated(odd))
        for text in ("repr(x)", "x + 1", "x.sum()", "x(tl.ones(2))", "x.name()", "x.clone()",
                     "x.next_functions", "x.data_ptr()", "tl.rand(2, generator=x)",
                     "tl.ones(2, dtype=x)", "x.__reduce_ex__(2)", "x.saved_values", "x.itemsize"):
            try:
                eval(text, {"x": found, "tl": tl})
            except SystemError:
                raise
            except Exception:
                pass
    except SystemError as error:
        return f"SystemError: {error}"
    except BaseException:
        pass
    judge.reset()
    return judge.used(None)


# ---- all of them ---------------------------------------------------------------------------------

KINDS = {
    "odd": (lambda rng: targets.odd_call(rng, values.odd_value), judge.judged),
    "reentrant": (lambda rng: targets.odd_call(rng, reentrant_value), judge.judged),
    "edges": (lambda rng: targets.odd_call(rng, values.edge_value), judge.judged),
    "collecting": (collecting_call, judge.judged),
    "threads": (thread_call, run_threads),
    "replaced": (replaced_call, run_replaced),
    "failing": (failing_call, run_failing),
    "pickles": (pickle_call, run_pickle),
}


# Calls that are wrong on purpose, by their number: what the fuzzer itself is tried on.
FAULTS = [
    ("abs", ["3"], {}),
    ("__import__('ctypes').string_at", ["0"], {}),
    ("__import__('time').sleep", ["60"], {}),
    ("liars.raise_system_error", [], {}),
    ("liars.write_and_raise", ["tl.ones(2)"], {}),
    ("liars.raise_attribute_error", [], {}),
    ("tl.ones", ["2"], {}),
]


def made(kind, seed, number):
    """The call of a kind with this seed and number."""
    if kind == "faults":
        return FAULTS[number]
    return KINDS[kind][0](random_for(kind, seed, number))


def run(kind, call):
    """What is wrong with a call, or None."""
    tl.manual_seed(1)
    wrong = KINDS[kind][1](call) if kind in KINDS else judge.judged(call)
    try:
        judge.assert_works_still()
    except Exception as error:
        return wrong or f"afterwards the library does not work: {error!r}"
    return wrong


def text(call):
    """A call as it would be written."""
    function, args, kwargs = call
    return f"{function}({', '.join([*args, *(f'{k}={v}' for k, v in kwargs.items())])})"
