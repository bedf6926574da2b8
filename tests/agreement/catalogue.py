"""`python -m tests.agreement.catalogue`: the samples of PyTorch's own test catalogue, here as well.

PyTorch's tests are made from a list of operations with sample inputs (`op_db`), which its package
carries. Each sample is called in both libraries; compared are values, dtypes, shapes, which results
belong to the graph, and gradients. What differs on purpose is in `differences.py`, with the reason.
It needs PyTorch, and `expecttest`, which its catalogue imports.
"""

import argparse
import inspect
import itertools
import re
import types
import warnings
from collections import Counter
from operator import methodcaller

import numpy as np
import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo import core

import tensorlib as tl
from tests.peer import flat, same_kind, summary, values_of

from .differences import NO_COUNTERPART, reason_for
from .outcome import far, inside, tensors_in

DTYPES = ("float64", "float32", "float16", "int64", "int32", "uint8", "bool", "complex128",
          "complex64")
FEW = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
DRAWS = re.compile(r"rand|normal|fractional_max|bernoulli|multinomial|dropout|empty|exponential"
                   r"|cauchy|geometric|uniform|poisson|rrelu|svd_lowrank|pca_lowrank|resize")


# For each sample PyTorch looks for the test of its own that calls, of which there is none, and for
# each frame of the stack that is of no file through all modules; and at each seed it notes the
# stack for devices that are not there. Together these were nine tenths of the time.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None
for devices in (torch.cuda, torch.xpu, torch.mtia):
    devices.manual_seed_all = lambda seed: None


class Unknown(Exception):
    """An argument that tensorlib has no counterpart of."""


def entries():
    """(name, its record, our function) for each record of the catalogue that there is here."""
    for record in op_db:
        if record.name in NO_COUNTERPART:
            continue
        ours = counterpart(record)
        if ours is not None:
            variant = record.variant_test_name
            yield record.name + (f" ({variant})" if variant else ""), record, ours


def counterpart(record):
    """Our function: of the same name, or the catalogue's own with tensorlib for torch."""
    function = record.op
    if isinstance(function, types.FunctionType) and not function.__module__.startswith(
            ("torch.nn", "torch.functional", "torch._", "torch.linalg", "torch.functional")):
        own = {**function.__globals__, "torch": tl, "F": tl.nn.functional}
        if "common_methods" in function.__module__ or "opinfo" in function.__module__:
            return types.FunctionType(function.__code__, own, function.__name__,
                                      function.__defaults__, function.__closure__)
    for place in ("", "Tensor"):
        found = inside(inside(tl, place), record.name)
        if callable(found):
            return found
    return None


def converted(value, made):
    """A sample's argument as ours; `made` collects pairs of a tensor and its counterpart."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_quantized:
            raise Unknown(value.dtype)
        made.append((value, same_tensor(value)))
        return made[-1][1]
    if isinstance(value, torch.dtype):
        return ours_of(value)
    if isinstance(value, (torch.layout, torch.memory_format)):
        return ours_of(value)
    if isinstance(value, torch.device):
        return tl.device(value.type)
    if isinstance(value, torch.Size):
        return tl.Size(value)
    if isinstance(value, (list, tuple)):
        parts = [converted(part, made) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {name: converted(part, made) for name, part in value.items()}
    if isinstance(value, (torch.nn.Module, torch.Generator)):
        raise Unknown(value)
    return value


def ours_of(value):
    """What has the name of a dtype, a layout or a memory format in tensorlib."""
    found = getattr(tl, str(value).rpartition(".")[2], None)
    if found is None:
        raise Unknown(value)
    return found


def same_tensor(x):
    """A tensor with the values, dtype and strides of PyTorch's."""
    name = str(x.dtype).rpartition(".")[2]
    if not hasattr(tl, name):
        raise Unknown(name)
    plain = x.detach().resolve_neg().resolve_conj()
    wide = plain.float() if name in ("float16", "bfloat16") else plain
    y = tl.from_numpy(np.array(wide.numpy(force=True), order="K")).to(getattr(tl, name))
    return y.requires_grad_(x.requires_grad)


def few_values(x):
    """A tensor of a sample with few numbers for its elements, so that some are equal, or at kinks.
    """
    if not isinstance(x, torch.Tensor) or x.dtype != torch.float64 or x.layout != torch.strided:
        return x
    drawn = np.random.choice(FEW, tuple(x.shape))
    return x.detach().clone().copy_(torch.from_numpy(np.asarray(drawn))).requires_grad_(
        x.requires_grad)


def calls(record, dtype, most=None, ties=False):
    """(arguments for PyTorch, for tensorlib, pairs of tensors) of each sample in a dtype."""
    kind = getattr(torch, dtype)
    if kind not in record.dtypes:
        return
    with_gradient = dtype in ("float64", "complex128") and kind in record.backward_dtypes and (
        record.supports_autograd)
    torch.manual_seed(0)
    np.random.seed(0)
    try:
        samples = list(itertools.islice(
            record.sample_inputs("cpu", kind, requires_grad=with_gradient), most))
    except Exception:                               # the catalogue has none in this dtype
        return
    for sample in map(methodcaller("transform", few_values), samples) if ties else samples:
        pairs = []
        try:
            args = converted([sample.input, *sample.args], pairs)
            kwargs = converted(sample.kwargs, pairs)
        except Unknown:
            continue
        yield ((sample.input, *sample.args), sample.kwargs), (args, kwargs), pairs


def outcome(library, function, args, kwargs, tensors):
    """("raised", error), or ("returned", results, which belong to the graph, gradients)."""
    library.default_generator.manual_seed(0)
    try:
        result = function(*args, **kwargs)
        results = tensors_in(library, result)
        number = isinstance(result, (bool, int, float, complex))
        found = flat(results or ([result] if number else []))
    except Exception as error:
        return "raised", error
    linked = tuple(y.requires_grad for y in results)
    return "returned", found, linked, gradients(library, results, tensors)


def gradients(library, results, tensors):
    """The gradients of the sum of the results with weights, or an error."""
    wanted = [x for x in tensors if x.requires_grad]
    if not wanted:
        return []
    total = None
    for y in results:
        if y.requires_grad and (y.dtype.is_floating_point or y.dtype.is_complex):
            rng = np.random.default_rng(y.numel())
            weights = rng.uniform(0.5, 1.5, tuple(y.shape))
            if y.dtype.is_complex:
                weights = weights + 1j * rng.uniform(0.5, 1.5, tuple(y.shape))
            part = (y * library.from_numpy(np.asarray(weights)).to(y.dtype)).sum().real
            total = part if total is None else total + part
    if total is None:
        return []
    try:
        grads = library.autograd.grad(total, wanted, allow_unused=True)
    except Exception as error:
        return error
    return [None if g is None else values_of(g) for g in grads]


def differs(mine, other, dtype, draws):
    """A text that says how two outcomes differ, or None."""
    if mine[0] != other[0]:
        return (f"error: tensorlib {mine[0]} {summary(mine[1])}, "
                f"PyTorch {other[0]} {summary(other[1])}")
    if mine[0] == "raised":
        return None if same_kind(mine[1], other[1]) else (
            f"kind of error: tensorlib {summary(mine[1])}, PyTorch {summary(other[1])}")
    if len(mine[1]) != len(other[1]):
        return f"count: {len(mine[1])} results, PyTorch gives {len(other[1])}"
    for (kind, shape, values), (their_kind, their_shape, their_values) in zip(mine[1], other[1]):
        if kind != their_kind:
            return f"dtype: {kind}, PyTorch's {their_kind}"
        if shape != their_shape:
            return f"shape: {shape}, PyTorch's {their_shape}"
        half = dtype in ("float16", "bfloat16")
        if not draws and (text := far(values, their_values, kind, "product", half)):
            return f"values: {text}"
    if mine[2] != other[2]:
        return f"graph: requires_grad {mine[2]}, PyTorch's {other[2]}"
    return None if draws else gradients_differ(mine[3], other[3])


def gradients_differ(mine, other):
    """How gradients differ, or None. None in the one stands for zeros in the other."""
    if isinstance(other, Exception):
        return None
    if isinstance(mine, Exception):
        return f"gradient: tensorlib raised {summary(mine)}"
    for g, h in zip(mine, other):
        if (g is None) != (h is None) and (h if g is None else g).any():
            return f"gradient: {g} beside {h}"
        if g is not None and h is not None and (text := far(g, h, "float64", "gradient")):
            return f"gradient: {text}"
    return None


def differences(name, record, ours, dtype, most=None, ties=False):
    """(calls, a text for each difference without a reason) of one entry in one dtype."""
    count, found = 0, []
    for theirs, (args, kwargs), pairs in calls(record, dtype, most, ties):
        count += 1
        other = outcome(torch, record.op, *theirs, [x for x, _ in pairs])
        mine = outcome(tl, ours, args, kwargs, [y for _, y in pairs])
        text = differs(mine, other, dtype, DRAWS.search(record.name) or kwargs.get("dropout_p"))
        if text and reason_for(name, dtype, text, ties) is None:
            found.append(f"{name} {dtype}: {text}\n    {shown(args, kwargs)}")
    return count, found


def shown(args, kwargs):
    """The arguments of a call, tensors by dtype and shape."""
    def one(value):
        if isinstance(value, tl.Tensor):
            name = str(value.dtype).rpartition(".")[2]
            return f"{name}{list(value.shape)}{' grad' * value.requires_grad}"
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(one, value))}]"
        return repr(value)
    return ", ".join([*map(one, args), *(f"{k}={one(v)}" for k, v in kwargs.items())])[:300]


@np.errstate(all="ignore")
def main(argv=None):
    """Compares, and prints what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.agreement.catalogue",
                                     description=inspect.getdoc(inspect.getmodule(main)))
    parser.add_argument("--only", help="the name of one operation")
    parser.add_argument("--most", type=int, help="samples of each operation and dtype")
    parser.add_argument("--examples", type=int, default=1, help="calls shown of each operation")
    parser.add_argument("--ties", action="store_true", help="elements of few values, in float64")
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    counts, differing = Counter(), set()
    for name, record, ours in entries():
        if given.only and record.name != given.only:
            continue
        counts["entries"] += 1
        for dtype in ("float64",) if given.ties else DTYPES:
            n, found = differences(name, record, ours, dtype, given.most, given.ties)
            counts["samples"] += n
            counts["differ"] += len(found)
            if found:
                differing.add(name)
                print(f"({len(found)} of {n})", "\n".join(found[:given.examples]), flush=True)
    print(f"{counts['samples']:,} samples of {counts['entries']} entries: {counts['differ']:,} "
          f"differ, in {len(differing)} entries")


if __name__ == "__main__":
    main()
