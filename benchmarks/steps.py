"""Where the time of a training step goes, and the least that it could take.

    python -m benchmarks.steps                       # the steps of NAMES
    python -m benchmarks.steps --only GPT            # those with "GPT" in their names

With one thread. Of each step: its time; the least time, of its multiplications at the speed of a
product that stays in the caches, and of the bytes that all other operations read and write at the
speed of a copy of as many; the share of products; that of other operations; and the rest, which is
Python, the graph and memory. The first is of steps by themselves, the shares are of a profile.
"""

import argparse
from time import perf_counter_ns, thread_time_ns

import tensorlib as tl
from benchmarks.cases import in_order
from benchmarks.limits import least, machine
from tensorlib._core.interpreters.stack import Interpreter
from tensorlib.profiler import profile
from tensorlib.utils.flop_counter import FlopCounterMode

NAMES = ("encoder layer", "attention of 128", "GPT 4 layers", "LSTM of 64", "nn 784-512-10",
         "nn two convolutions")
REPEATS = 60
PRODUCT = (252, 256, 128)           # sizes of a product that stays in the caches


PRODUCTS = {op.name for op in tl.ops.registry.values() if op.multiplications is not None}
OTHERS = {op.name for op in tl.ops.registry.values()} - PRODUCTS


class Moves(Interpreter):
    """The nanoseconds in which a copy moves the bytes that operations other than products read and
    write; views move none."""

    def __init__(self, limits):
        self.limits, self.total = limits, 0.0

    def call(self, op, args, kwargs):
        result = self.below(op, args, kwargs)
        given = [x for x in args if isinstance(x, tl.Tensor)]
        made = result if isinstance(result, tuple) else (result,)
        made = [x for x in made if isinstance(x, tl.Tensor)]
        places = {x.data_ptr() for x in given}
        if op.name not in PRODUCTS and not any(x.data_ptr() in places for x in made):
            count = sum([x.numel() * x.element_size() for x in given + made])
            self.total += least(self.limits, count, 0, 1) - self.limits["call"]
        return result


def best(step):
    """The nanoseconds of the fastest step, without those in which other programs ran."""
    times = []
    for _ in range(REPEATS):
        begin = thread_time_ns()
        step()
        times.append(thread_time_ns() - begin)
    return min(times)


def shares(step):
    """Those of products and of other operations in the fastest of several profiles."""
    found = []
    for _ in range(REPEATS):
        with profile() as prof:
            begin = perf_counter_ns()
            step()
            taken = perf_counter_ns() - begin
        times = [(row.key, 1e3 * row.self_cpu_time_total) for row in prof.key_averages()]
        found.append((taken, *[sum([time for key, time in times if key in names]) / taken
                               for names in (PRODUCTS, OTHERS)]))
    return min(found)[1:]


def peak():
    """Multiplications in a nanosecond, of a product that stays in the caches."""
    m, k, n = PRODUCT
    a, b = tl.rand(m, k), tl.rand(k, n)
    return m * k * n / best(lambda: a @ b)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="benchmarks.steps", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="steps with this in their names")
    wanted = parser.parse_args(arguments).only
    tl.set_num_threads(1)
    speed, limits = peak(), machine()
    print(f"a product in the caches does {speed:.1f} multiplications in a nanosecond")
    print(f"{'':40} {'ms':>7} {'least':>7} {'products':>9} {'others':>7} {'rest':>6}")
    for case in in_order():
        if case.group == "memory" or wanted not in case.name or not case.name.startswith(NAMES):
            continue
        step = case.prepare(tl).result
        for _ in range(3):
            step()
        with FlopCounterMode(display=False) as counter, Moves(limits) as moves:
            step()
        time, (products, others) = best(step), shares(step)
        bound = counter.get_total_flops() / 2 / speed + moves.total
        print(f"{case.name:40} {time / 1e6:7.2f} {bound / 1e6:7.2f} {products:9.0%} "
              f"{others:7.0%} {1 - products - others:6.0%}", flush=True)


if __name__ == "__main__":
    main()
