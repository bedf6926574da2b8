"""An epoch of batches from a DataLoader over tensors, in a fixed order that jumps about."""

import importlib

from benchmarks.case import case, uniform


def epoch(lib, examples, width, batch=64):
    """A function that goes through all batches and returns the last."""
    data = importlib.import_module(f"{lib.__name__}.utils.data")
    dataset = data.TensorDataset(uniform(lib, examples, width), lib.arange(examples))
    order = [i * 7919 % examples for i in range(examples)]      # 7919 is prime
    loader = data.DataLoader(dataset, batch, sampler=order)

    def run():
        for x, _ in loader:
            pass
        return x
    return run


@case("loading", "1,797 x 64 in batches of 64", target=5)
def digits_epoch(lib):
    return epoch(lib, 1797, 64)


@case("loading", "6,400 x 784 in batches of 64", target=5)
def pictures_epoch(lib):
    return epoch(lib, 6400, 784)
