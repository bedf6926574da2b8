"""Batching rules of operations that are one kernel: by the operations that they stand for."""

from tensorlib.func import vmap


def stands_for(formula):
    """Makes `formula`, of the arguments of an operation, what a batch of it is computed by."""
    def decorate(function):
        def batching(info, dims, *values, **attributes):
            mapped = vmap(lambda *xs: formula(*xs, **attributes), dims, randomness=info.randomness)
            return mapped(*values), 0
        function.batching = batching
        return function
    return decorate
