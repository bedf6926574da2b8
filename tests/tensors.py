"""Tensors that many tests begin with."""

import tensorlib as tl


def leaf(*values):
    """A leaf of these numbers in float64, which requires a gradient."""
    return tl.tensor(values, dtype=tl.float64, requires_grad=True)
