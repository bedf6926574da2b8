"""References of gradients in NumPy, by finite differences of the reference of the function."""

import numpy as np


def slopes(function, x, g, step=1e-6):
    """The derivative of the sum of function(x) * g by each element of the array x."""
    found = np.zeros(x.shape, g.dtype)
    for place in np.ndindex(*x.shape):
        moved = np.zeros(x.shape)
        moved[place] = step
        found[place] = ((function(x + moved) - function(x - moved)) * g).sum() / (2 * step)
    return found


def adjoint(function, like, g):
    """The adjoint of a linear function of arrays of the shape `like`, at `g`: exact."""
    return slopes(function, np.zeros(like), g, 1.0)


def gradients(reference, count=1):
    """The reference of a backward operation: it takes the gradient of the result, then the
    arguments, for the first `count` of which it gives the gradients."""
    def backward(g, *args):
        found = tuple(slopes(lambda x: reference(*args[:i], x, *args[i + 1:]), args[i], g)
                      for i in range(count))
        return found if count > 1 else found[0]
    return backward
