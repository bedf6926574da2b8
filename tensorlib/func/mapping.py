"""`vmap`: a function of one example, run on a whole batch at once."""

import functools

from tensorlib._core.base.importing import deferred
from tensorlib.func.arguments import entry

vectorized_call = deferred("tensorlib.func.batching", "vectorized_call")


@entry
def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that does `func` for every example of a batch, by operations on the whole batch.

    in_dims: the dim of each argument that counts the examples, or None for what all share; an int,
    or a tuple like the arguments. out_dims: where that dim is in each result. Keyword arguments are
    shared. randomness: what drawing numbers is, an "error", the "same" for all examples or
    "different" for each. chunk_size: how many examples to run at once.

    Inside, operations without a batching rule run example by example, with one warning; values
    that differ between examples decide no `if`. Transforms can be inside and outside:
    `vmap(grad(loss), (None, 0))(weights, xs)` are the gradients of each example.

    Shapes: inside, a tensor has its shape without the dim at in_dims; a result has its shape with
    the number of examples at out_dims.
    Raises: ValueError for dims that do not fit the arguments or the results, for examples of
    different numbers, or for results that are not tensors; RuntimeError for another randomness, for
    numbers drawn where it is "error", and for control flow on values that differ.

    >>> xs = tensorlib.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> vmap(tensorlib.dot)(xs, xs)
    tensor([ 5., 25.])
    >>> from tensorlib.func import grad
    >>> vmap(grad(lambda x: (x * x).sum()))(xs)
    tensor([[2., 4.],
            [6., 8.]])
    """
    check_randomness(randomness)
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0, got {chunk_size}")

    @entry
    @functools.wraps(func)
    def vectorized(*args, **kwargs):
        return vectorized_call(func, args, kwargs, in_dims, out_dims, randomness, chunk_size)
    return vectorized


def check_randomness(randomness):
    """Raises RuntimeError for what is no way to draw."""
    if randomness not in ("error", "same", "different"):
        raise RuntimeError("vmap: Only allowed values for randomness are 'error', 'different', or "
                           f"'same'. Got {randomness}")
