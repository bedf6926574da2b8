"""What `tensorlib.compile` gains: a replay beside the eager call, and beside PyTorch's eager call.

`python -m benchmarks.programs [CASE ...]` prints for each case the least time of a call, in
microseconds (with one thread: of that thread), and the first, capturing call as a multiple of an
eager one: of the function that was captured first, and the least of a few more. With
`--peer torch`, run by an interpreter that has PyTorch, it prints PyTorch's eager times. JAX's time
for the perceptron of 3 layers is measured by `benchmarks.programs_jax`.

The cases of `MEMORY` are training steps of which the most memory in use is printed, what lasts
(parameters, their gradients of the step before, the state of the optimiser) included.
"""

import argparse
import gc
import importlib
import time
import timeit
from functools import partial


def library(name, threads=1):
    """tensorlib or PyTorch, on so many threads."""
    lib = importlib.import_module(name)
    lib.set_num_threads(threads)
    return lib


def stepping(lib, model, updates):
    """A training step of a classifier."""
    def step(x, y):
        updates.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        updates.step()
        return loss.detach()

    return step


def perceptron(lib, optimizer, sizes=(64, 128, 10), batch=32):
    lib.manual_seed(0)
    layers = [lib.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
    model = lib.nn.Sequential(*[part for layer in layers[:-1] for part in (layer, lib.nn.ReLU())],
                              layers[-1])
    updates = (lib.optim.SGD(model.parameters(), lr=0.1) if optimizer == "sgd"
               else lib.optim.Adam(model.parameters()))
    return stepping(lib, model, updates), (lib.randn(batch, sizes[0]),
                                           lib.randint(0, 10, (batch,)))


def logistic(lib):
    lib.manual_seed(0)
    w, b = lib.zeros(20, requires_grad=True), lib.zeros((), requires_grad=True)
    updates = lib.optim.SGD([w, b], lr=0.1)
    x, y = lib.randn(100, 20), lib.rand(100)

    def step(x, y):
        updates.zero_grad()
        loss = lib.nn.functional.binary_cross_entropy_with_logits(x @ w + b, y)
        loss.backward()
        updates.step()
        return loss.detach()

    return step, (x, y)


def recurrent(lib):
    lib.manual_seed(0)
    w, u = (lib.randn(16, 16).mul(0.2).requires_grad_() for _ in range(2))
    updates = lib.optim.SGD([w, u], lr=0.01)
    xs = lib.randn(64, 8, 16)

    def step(xs):
        updates.zero_grad()
        h = lib.zeros(8, 16)
        for x in xs:
            h = (x @ w + h @ u).tanh()
        loss = (h * h).mean()
        loss.backward()
        updates.step()
        return loss.detach()

    return step, (xs,)


def chain(lib):
    def run(x):
        for _ in range(25):
            x = x * 1.01
            x = x + 0.5
            x = x.tanh()
            x = x * x
        return x

    lib.manual_seed(0)
    return run, (lib.randn(65536) * 0.1,)


def long_chain(lib):
    """1,000 element-wise operations on a few elements, their gradient and an update."""
    lib.manual_seed(0)
    w = lib.randn(64).mul(0.1).requires_grad_()
    updates = lib.optim.SGD([w], lr=0.1)

    def step():
        updates.zero_grad()
        x = w
        for _ in range(250):
            x = x * 1.01
            x = x + 0.1
            x = x.tanh()
            x = x - 0.05
        loss = x.sum()
        loss.backward()
        updates.step()
        return loss.detach()

    return step, ()


def letters(lib, width=32, heads=4, length=16, codes=64):
    """A small GPT: 2 layers, on 4 sequences of 16 letters."""
    nn, functional = lib.nn, lib.nn.functional
    lib.manual_seed(0)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                            nn.Linear(4 * width, width))

        def forward(self, x):
            count, length, width = x.shape
            q, k, v = self.qkv(self.norm_a(x)).reshape(count, length, 3, heads, -1).permute(
                2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(count, length, width))
            return x + self.perceptron(self.norm_b(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.letter, self.place = nn.Embedding(codes, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(Block(), Block(), nn.LayerNorm(width))

        def forward(self, x):
            h = self.letter(x) + self.place(lib.arange(x.shape[1]))
            return functional.linear(self.blocks(h), self.letter.weight).flatten(0, 1)

    x, y = lib.randint(0, codes, (4, length)), lib.randint(0, codes, (4 * length,))
    model = Model()
    updates = lib.optim.Adam(model.parameters(), lr=1e-3)
    return stepping(lib, model, updates), (x, y)


CASES = {
    "perceptron, SGD": lambda lib: perceptron(lib, "sgd"),
    "perceptron, Adam": lambda lib: perceptron(lib, "adam"),
    "perceptron of 3 layers, Adam": lambda lib: perceptron(lib, "adam", (64, 128, 64, 10), 64),
    "logistic regression": logistic,
    "recurrent cell, 64 steps": recurrent,
    "chain of 100 on 65,536": chain,
    "chain of 1,000, gradient": long_chain,
    "GPT, 2 layers of 32": letters,
}


def trained(lib, model, x, y):
    return stepping(lib, model, lib.optim.SGD(model.parameters(), lr=0.1)), (x, y)


def deep(lib, activation, width, batch):
    lib.manual_seed(0)
    parts = [part for _ in range(5)
             for part in (lib.nn.Linear(width, width), getattr(lib.nn, activation)())]
    model = lib.nn.Sequential(*parts, lib.nn.Linear(width, 10))
    return trained(lib, model, lib.randn(batch, width), lib.randint(0, 10, (batch,)))


def by_hand(lib, width, batch):
    """A perceptron whose normalization and activation are written out."""
    lib.manual_seed(0)
    nn = lib.nn

    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(width, width)
            self.scale = nn.Parameter(lib.ones(width))

        def forward(self, x):
            h = self.linear(x)
            h = h * (h.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * self.scale
            return 0.5 * h * (1 + (0.7978845608 * (h + 0.044715 * h * h * h)).tanh())

    model = nn.Sequential(*[Part() for _ in range(5)], nn.Linear(width, 10))
    return trained(lib, model, lib.randn(batch, width), lib.randint(0, 10, (batch,)))


def images(lib):
    lib.manual_seed(0)
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(2048, 10))
    return trained(lib, model, lib.randn(32, 3, 32, 32), lib.randint(0, 10, (32,)))


MEMORY = {
    "6 layers of 512, ReLU": lambda lib: deep(lib, "ReLU", 512, 512),
    "6 layers of 512, GELU": lambda lib: deep(lib, "GELU", 512, 512),
    "6 layers of 128, batch 2048": lambda lib: deep(lib, "Sigmoid", 128, 2048),
    "5 layers of 128, by hand": lambda lib: by_hand(lib, 128, 2048),
    "two convolutions": images,
}


def peak(lib, call):
    """The most bytes in use during a call, and after two others."""
    call()
    call()
    gc.collect()
    lib.memory.reset_peak()
    call()
    return lib.memory.stats()["peak"]


def print_memory(name, lib):
    """Prints the peaks of a step that runs eagerly, replayed, and with values computed again."""
    step, args = MEMORY[name](lib)
    before = peak(lib, partial(step, *args))
    del step, args
    line = f"{name:28} eager {before / 1e6:8.2f} MB"
    for again in (False, True):
        step, args = MEMORY[name](lib)
        step = lib.compile(step, options={"recompute": again})
        after = peak(lib, lambda step=step, args=args: step(*args))
        del step, args
        kind = "recompute" if again else "replay"
        line += f"   {kind} {after / 1e6:8.2f} MB {after / before:6.2f}"
    print(line, flush=True)


def least(call, repeats, timer=time.thread_time):
    """The least time of a call, in microseconds: of this thread, or by another timer."""
    number = max(1, int(2e-3 / min(timeit.repeat(call, number=1, repeat=3))))
    return min(timeit.repeat(call, number=number, repeat=repeats, timer=timer)) / number * 1e6


def measure(name, lib, repeats):
    """The times of a case: eager, replayed, and of the first calls of compiled functions."""
    timer = time.thread_time if lib.get_num_threads() == 1 else time.perf_counter
    step, args = CASES[name](lib)
    eager = least(lambda: step(*args), repeats, timer)
    if lib.__name__ == "torch":
        return eager, None, []
    firsts = []
    for _ in range(4):
        step, args = CASES[name](lib)
        step(*args)
        compiled = lib.compile(step)
        begin = time.thread_time()
        compiled(*args)
        firsts.append((time.thread_time() - begin) * 1e6)
    compiled(*args)
    return eager, least(lambda: compiled(*args), repeats, timer), firsts


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--peer", default="tensorlib", choices=["tensorlib", "torch"])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args(arguments)
    lib = library(chosen.peer, chosen.threads)
    for name in chosen.cases or [*CASES, *(MEMORY if chosen.peer == "tensorlib" else ())]:
        if name in MEMORY:
            print_memory(name, lib)
            continue
        eager, replay, firsts = measure(name, lib, chosen.repeats)
        line = f"{name:28} eager {eager:8.1f} us"
        if replay is not None:
            line += (f"   replay {replay:8.1f} us   {eager / replay:5.2f} times"
                     f"   capture {firsts[0] / eager:5.1f} calls, {min(firsts) / eager:5.1f}")
        print(line, flush=True)


if __name__ == "__main__":
    main()
