"""Thirty ordinary kinds of functions under `compile`: which are captured, whole or in parts.

`python -m benchmarks.ordinary [KIND ...]` prints for each how it runs and the least time of a call
in microseconds, eager and compiled in turn. A function that can't be captured whole runs in parts:
what lies around the statement that refuses is captured.
"""

import argparse
import os
import random
import time
import warnings

import numpy as np

import tensorlib as tl
from tensorlib import nn, optim

F = nn.functional
KINDS = {}


def kind(make):
    """Notes a kind: a function that gives a function, or a module, and its arguments."""
    KINDS[make.__name__.replace("_", " ")] = make
    return make


def perceptron(out=1):
    return nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
                         nn.Linear(64, out))


def training():
    """A model, its optimiser, and a batch."""
    model = perceptron()
    return model, optim.SGD(model.parameters(), lr=0.01), (tl.randn(32, 64), tl.randn(32, 1))


@kind
def forward_of_a_model():
    return perceptron(), (tl.randn(32, 64),)


@kind
def training_step():
    model, updates, batch = training()

    def step(x, y):
        updates.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        updates.step()
        return loss.detach()

    return step, batch


@kind
def accumulation_in_a_loop():
    model, updates, batch = training()

    def step(x, y):
        updates.zero_grad()
        for part, wanted in zip(x.split(8), y.split(8)):
            (F.mse_loss(model(part), wanted) / 4).backward()
        updates.step()

    return step, batch


@kind
def copy_into_a_parameter():
    model, slow = perceptron(), perceptron()

    def f(x):
        y = model(x)
        with tl.no_grad():
            for p, q in zip(slow.parameters(), model.parameters()):
                p.copy_(0.9 * p + 0.1 * q)
        return y.detach() + slow(x).detach()

    return f, (tl.randn(32, 64),)


@kind
def clipped_gradients():
    model, updates, batch = training()

    def step(x, y):
        updates.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        updates.step()
        return loss.detach()

    return step, batch


@kind
def dropout_and_batch_norm():
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Dropout(), nn.Linear(64, 1))
    return lambda x: model(x).mean(), (tl.randn(32, 64),)


@kind
def gradient_penalty():
    model = perceptron()

    def f(x):
        x = x.detach().requires_grad_()
        slope, = tl.autograd.grad(model(x).sum(), x, create_graph=True)
        return (slope.norm(2, dim=1) - 1).square().mean().detach()

    return f, (tl.randn(32, 64),)


@kind
def transforms_of_functions():
    w = tl.randn(64, 64)

    def f(x):
        return tl.func.grad(lambda w: (x @ w).tanh().sum())(w).sum()

    return f, (tl.randn(32, 64),)


@kind
def distributions():
    mean = perceptron()

    def f(x):
        policy = tl.distributions.Normal(mean(x), 0.5)
        return policy.log_prob(policy.sample()).sum() + policy.entropy().sum()

    return f, (tl.randn(32, 64),)


@kind
def loss_item_at_the_end():
    model, updates, batch = training()

    def step(x, y):
        updates.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        updates.step()
        return loss.item()

    return step, batch


@kind
def losses_in_a_list():
    model, losses = perceptron(), []

    def f(x, y):
        loss = F.mse_loss(model(x), y)
        losses.append(loss.item())

    return f, (tl.randn(32, 64), tl.randn(32, 1))


@kind
def printed_progress():
    out = open(os.devnull, "w")
    model, updates, batch = training()

    def step(x, y):
        updates.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        updates.step()
        print(f"{loss.item():.3f}", file=out)

    return step, batch


@kind
def accuracy():
    model, wanted = perceptron(10), tl.randint(0, 10, (32,))

    def f(x):
        found = model(x).argmax(-1)
        right = (found == wanted).sum().item()
        return right / len(wanted)

    return f, (tl.randn(32, 64),)


@kind
def branch_on_a_value():
    model, updates, batch = training()

    def step(x, y):
        found = model(x)
        loss = F.mse_loss(found, y)
        if loss > 10:
            loss = F.l1_loss(found, y)
        updates.zero_grad()
        loss.backward()
        updates.step()
        return loss.detach()

    return step, batch


@kind
def break_on_a_value():
    model = perceptron().requires_grad_(False)

    def f(x):
        for _ in range(10):
            x = x + 0.1 * model(x)
            size = x.abs().max()
            if size > 3.5:
                break
        return x.tanh()

    return f, (tl.randn(32, 64),)


@kind
def loop_until_it_converges():
    matrix = tl.randn(256, 256) * 0.02

    def f(x):
        error = tl.tensor(1.0)
        while error > 1e-3:
            y = (matrix @ x).tanh() * 0.5 + 0.1
            error = (y - x).abs().max()
            x = y
        return x

    return f, (tl.randn(256),)


@kind
def check_for_nan():
    model, updates, batch = training()

    def step(x, y):
        loss = F.mse_loss(model(x), y)
        if not tl.isfinite(loss):
            raise FloatingPointError("the loss is not finite")
        updates.zero_grad()
        loss.backward()
        updates.step()
        return loss.detach()

    return step, batch


@kind
def mask():
    model = perceptron()

    def f(x):
        y = model(x)
        z = y[y > 0]
        return z.sum() * 2 + y.mean()

    return f, (tl.randn(32, 64),)


@kind
def multinomial():
    model = perceptron(10)

    def f(x):
        chances = model(x).softmax(-1)
        chosen = tl.multinomial(chances, 1)
        return chances.gather(1, chosen).log().mean()

    return f, (tl.randn(32, 64),)


@kind
def numpy_in_the_middle():
    model, last = perceptron(64), nn.Linear(64, 1)

    def f(x):
        y = model(x).detach()
        array = np.clip(y.numpy(), -0.5, 0.5)
        y = tl.from_numpy(array)
        return last(y * 2).tanh().sum()

    return f, (tl.randn(32, 64),)


@kind
def scheduler_inside():
    model, updates, batch = training()
    schedule = optim.lr_scheduler.ExponentialLR(updates, 0.99)

    def step(x, y):
        updates.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        updates.step()
        schedule.step()
        return loss.detach()

    return step, batch


@kind
def scaled_gradients():
    model, updates, batch = training()
    scaler = tl.amp.GradScaler("cpu")

    def step(x, y):
        updates.zero_grad()
        loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(updates)
        scaler.update()
        return loss.detach()

    return step, batch


@kind
def averaged_model():
    model, updates, batch = training()
    average = optim.swa_utils.AveragedModel(model)

    def step(x, y):
        updates.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        updates.step()
        average.update_parameters(model)
        return loss.detach()

    return step, batch


@kind
def accumulation_over_calls():
    model, updates, batch = training()
    calls = [0]

    def step(x, y):
        loss = F.mse_loss(model(x), y) / 4
        loss.backward()
        calls[0] += 1
        if calls[0] % 4 == 0:
            updates.step()
            updates.zero_grad()
        return loss.detach()

    return step, batch


@kind
def epoch_over_a_loader():
    model, updates, (x, y) = training()
    loader = tl.utils.data.DataLoader(tl.utils.data.TensorDataset(x, y), batch_size=8)

    def epoch():
        total = 0.0
        for part, wanted in loader:
            updates.zero_grad()
            loss = F.mse_loss(model(part), wanted)
            loss.backward()
            updates.step()
            total += loss.item()
        return total

    return epoch, ()


@kind
def clock_around_a_step():
    times = []
    model, updates, batch = training()

    def step(x, y):
        begun = time.perf_counter()
        updates.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        updates.step()
        times.append(time.perf_counter() - begun)
        return loss.detach()

    return step, batch


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.model, self.places = perceptron(), None

    def forward(self, x):
        if self.places is None:
            self.places = tl.arange(64.0) / 64
        return self.model(x + self.places)


@kind
def cached_attribute():
    return Cached(), (tl.randn(32, 64),)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.last = nn.GRUCell(64, 64), nn.Linear(64, 1)
        self.state = tl.zeros(32, 64)

    def forward(self, x):
        state = self.cell(x, self.state)
        self.state = state.detach()
        return self.last(state.tanh()).sum()


@kind
def state_of_its_own():
    return Recurrent(), (tl.randn(32, 64),)


@kind
def counter():
    model, calls = perceptron(), [0]

    def f(x):
        calls[0] += 1
        return model(x).tanh().sum() * 2

    return f, (tl.randn(32, 64),)


@kind
def random_numbers_of_python():
    model = perceptron()

    def f(x):
        if random.random() < 0.5:
            x = x.flip(0)
        x = x + tl.randn_like(x) * 0.1
        return model(x).mean()

    return f, (tl.randn(32, 64),)


def made(name):
    """A function of a kind and its arguments; random numbers begin anew."""
    tl.manual_seed(0)
    random.seed(0)
    return KINDS[name]()


def captured(compiled):
    """How much of a compiled function is replayed: "whole", a number of its parts, or "none"."""
    if not compiled._eager and any(way.replay is not None for way in compiled._entries):
        return "whole"
    count = sum(captured(part) != "none" for parted in compiled._parts.values()
                if parted is not None for part in parted.parts)
    return f"{count} part{'s' * (count != 1)}" if count else "none"


def timed(name, repeats):
    """How a kind runs, and the least time of a call, eager and compiled in turn."""
    calls = [made(name), made(name)]
    compiled = tl.compile(calls[1][0])
    calls[1] = compiled, calls[1][1]
    least = [float("inf")] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(20):
            compiled(*calls[1][1])
        for _ in range(repeats):
            for k, (f, args) in enumerate(calls):
                begun = time.perf_counter()
                f(*args)
                least[k] = min(least[k], time.perf_counter() - begun)
    return captured(compiled), *(1e6 * x for x in least)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ordinary", description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []])
    parser.add_argument("--repeats", type=int, default=200)
    given = parser.parse_args()
    tl.set_num_threads(1)
    print("| | captured | eager | compiled |\n|---|---|---:|---:|")
    for name in given.kinds or KINDS:
        how, eager, compiled = timed(name, given.repeats)
        print(f"| {name} | {how} | {eager:.0f} | {compiled:.0f} |", flush=True)


if __name__ == "__main__":
    main()
