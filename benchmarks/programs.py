"""What `tensorlib.compile` gains: a replay beside the eager call, and beside PyTorch's eager call.

`python -m benchmarks.programs [CASE ...]` prints for each case the least time of a call, in
microseconds of the thread, and the first, capturing call as a multiple of an eager one. With
`--peer torch`, run by an interpreter that has PyTorch, it prints PyTorch's eager times.
"""

import argparse
import time
import timeit


def library(name):
    """tensorlib or PyTorch, on one thread."""
    if name == "torch":
        import torch
        torch.set_num_threads(1)
        return torch
    import tensorlib
    tensorlib.set_num_threads(1)
    return tensorlib


def perceptron(lib, optimizer):
    lib.manual_seed(0)
    model = lib.nn.Sequential(lib.nn.Linear(64, 128), lib.nn.ReLU(), lib.nn.Linear(128, 10))
    updates = (lib.optim.SGD(model.parameters(), lr=0.1) if optimizer == "sgd"
               else lib.optim.Adam(model.parameters()))
    x, y = lib.randn(32, 64), lib.randint(0, 10, (32,))

    def step(x, y):
        updates.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        updates.step()
        return loss.detach()

    return step, (x, y)


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


CASES = {
    "perceptron, SGD": lambda lib: perceptron(lib, "sgd"),
    "perceptron, Adam": lambda lib: perceptron(lib, "adam"),
    "logistic regression": logistic,
    "recurrent cell, 64 steps": recurrent,
    "chain of 100 on 65,536": chain,
}


def least(call, repeats):
    """The least time of a call, in microseconds of this thread."""
    number = max(1, int(2e-3 / min(timeit.repeat(call, number=1, repeat=3))))
    return min(timeit.repeat(call, number=number, repeat=repeats, timer=time.thread_time)) / (
        number) * 1e6


def measure(name, lib, repeats):
    """The times of a case: eager, replayed, and of the first call of the compiled function."""
    step, args = CASES[name](lib)
    eager = least(lambda: step(*args), repeats)
    if lib.__name__ == "torch":
        return eager, None, None
    step, args = CASES[name](lib)
    step(*args)
    compiled = lib.compile(step)
    begin = time.thread_time()
    compiled(*args)
    first = (time.thread_time() - begin) * 1e6
    compiled(*args)
    return eager, least(lambda: compiled(*args), repeats), first


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--peer", default="tensorlib", choices=["tensorlib", "torch"])
    parser.add_argument("--repeats", type=int, default=20)
    chosen = parser.parse_args(arguments)
    lib = library(chosen.peer)
    for name in chosen.cases or CASES:
        eager, replay, first = measure(name, lib, chosen.repeats)
        line = f"{name:26} eager {eager:8.1f} us"
        if replay is not None:
            line += (f"   replay {replay:8.1f} us   {eager / replay:5.2f} times"
                     f"   capture {first / eager:5.1f} calls")
        print(line, flush=True)


if __name__ == "__main__":
    main()
