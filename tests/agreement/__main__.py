"""`python -m tests.agreement --calls N --seed S`: how many calls agree with PyTorch's.

Every operation is called with its samples, varied, in both libraries; compared are values, dtypes,
shapes, the strides of views, derivatives to second order and the types of errors. What disagrees is
listed by operation, with one call of each; the last line counts. It needs PyTorch beside tensorlib.
"""

import argparse
import zlib
from collections import Counter, defaultdict

import numpy as np
import torch

import tensorlib as tl
from tensorlib.ops import registry
from tensorlib.testing.catalogue import kind_of_work

from .arguments import declared, varied
from .excuses import NEVER_RETURNS, excuse
from .outcome import differs, inside, outcome

OTHER_PLACES = {"unfold": ("Tensor",)}       # of which `nn.functional` has another
PLACES = ("nn.functional", "", "linalg", "special", "Tensor")


def found(op):
    """(name, our function, PyTorch's) for an operation, or None where PyTorch has none."""
    for place in OTHER_PLACES.get(op.name, PLACES):
        plain = op.name.removeprefix(place + "_") if place in ("linalg", "special") else op.name
        pair = [getattr(inside(library, place), plain, None) for library in (tl, torch)]
        if all(map(callable, pair)):
            return f"{place}.{plain}".lstrip("."), *pair
    return None


def calls(op, function, seed, n):
    """Pairs of a number and the varied call."""
    forms = declared(op, function)
    for number in range(n):
        rng = np.random.default_rng([seed, zlib.crc32(op.name.encode()), number])
        yield number, varied(rng, forms[number % len(forms)], function)


def main():
    """Compares, and prints what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.agreement", description=__doc__)
    parser.add_argument("--calls", type=int, default=100, help="calls of each operation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="the name of one operation")
    parser.add_argument("--examples", type=int, default=1, help="calls shown of each difference")
    parser.add_argument("--excused", action="store_true", help="lists excuses and their counts")
    given = parser.parse_args()
    torch.set_num_threads(1)
    counts, excuses, functions = Counter(), Counter(), 0
    for op in sorted(registry.values(), key=lambda op: op.name):
        pair = found(op)
        if given.only and op.name != given.only or pair is None or not op.testing.get("samples"):
            continue
        name, ours, theirs = pair
        functions += 1
        shown = defaultdict(list)
        for number, call in calls(op, ours, given.seed, given.calls):
            mine = outcome(tl, ours, call)
            if name in NEVER_RETURNS and NEVER_RETURNS[name](call):
                continue
            other = outcome(torch, theirs, call)
            text = differs(mine, other, kind_of_work(op), call, op.random)
            reason = text and excuse(name, call, mine, other, text)
            counts["agree" if not text else "excused" if reason else "differ"] += 1
            excuses[reason] += 1
            if text and not reason:
                shown[text.partition(":")[0]].append((number, call, text))
        for kind, each in shown.items():
            for number, call, text in each[:given.examples]:
                print(f"{name}, call {number} ({len(each)} like it): {text}\n    {call}",
                      flush=True)
    if given.excused:
        for reason, count in excuses.most_common():
            if reason:
                print(f"{count:7,} {reason}")
    total = sum(counts.values())
    print(f"agreement: {counts['agree']:,} of {total:,} calls of {functions} operations agree, "
          f"{counts['excused']:,} differ on purpose, {counts['differ']:,} differ")


if __name__ == "__main__":
    main()
