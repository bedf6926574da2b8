"""The most memory that training steps add to a process, the model and its optimiser among it."""

from functools import partial

from benchmarks import sequences, training
from benchmarks.case import measured
from benchmarks.resident import forget_peak, peak_bytes, resident_bytes

STEPS = 10
TRAINED = {
    "nn 784-512-10 with Adam, batch 128": training.wide_with_adam,
    "nn two convolutions, 28 x 28, batch 64": training.convolutional,
    "LSTM of 64, 16 x 32": partial(sequences.recurrent_step, kind="LSTM"),
    "GPT 4 layers of 128, 8 x 64": sequences.larger_gpt,
}


def peak_of(make, lib):
    """The most bytes that are resident in ten steps beyond those before, and the last result."""
    (lib.ones(64, 64, requires_grad=True) @ lib.ones(64, 64)).sum().backward()    # what this loads
    forget_peak()
    before = resident_bytes()
    step = make(lib)
    for _ in range(STEPS):
        result = step()
    return {"peak": peak_bytes() - before}, result


for name, make in TRAINED.items():
    measured("memory", name + ", peak", partial(peak_of, make))
