"""A call of a function that `vmap` made: arguments become batches, results tensors again."""

from numpy import ndarray

from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import wrap
from tensorlib._core.create.generator import default_generator
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tree import NodeStructure, Structure, as_leaf, flatten, unflatten
from tensorlib.autograd.batch import Batched, Level, batch_of, is_at
from tensorlib.ops.declare import FUNCTIONS

cat = FUNCTIONS["cat"]


def vectorized_call(func, args, kwargs, in_dims, out_dims, randomness, chunk_size):
    """What `vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)` gives for a call."""
    leaves, structure = flatten(args, "vmap: the container of arguments", nodes=True)
    leaves = [as_leaf(x) if isinstance(x, ndarray) else x for x in leaves]
    dims = placed_dims(in_dims, leaves, structure)
    size = batch_size(leaves, dims)
    batches = [x.movedim(d, 0) if d else x for x, d in zip(leaves, dims)]

    def run(begin, length):
        part = [x if d is None or length == size else x.narrow(0, begin, length)
                for x, d in zip(batches, dims)]
        return mapped(func, part, dims, structure, kwargs, length, out_dims, randomness)

    step = chunk_size or size
    if size <= step:
        results, shape, places = run(0, size)
    else:
        chunks = in_chunks(run, size, step, randomness == "same")
        _, shape, places = chunks[0]
        results = [parts[0] if d is None else cat(parts) for d, *parts in zip(
            places, *[found for found, _, _ in chunks])]
    return unflatten(shape, [x.movedim(0, d) if d else x for x, d in zip(results, places)])


def in_chunks(run, size, step, same):
    """What `run(begin, length)` gives for each `step` examples; with `same`, the same is drawn."""
    state = default_generator.get_state()
    chunks = []
    for begin in range(0, size, step):
        if same:
            default_generator.set_state(state)
        chunks.append(run(begin, min(step, size - begin)))
    return chunks


def mapped(func, batches, dims, structure, kwargs, size, out_dims, randomness):
    """The results of one run on a batch, their structure, and the dims where they want the batch.

    The results have it as dim 0.
    """
    with Level(size, randomness) as level:
        given = [x if d is None else Batched(x, level) for x, d in zip(batches, dims)]
        result = by_name(func)(*unflatten(structure, given), **kwargs)
        outputs, shape = flatten(result, "vmap: the container of results", nodes=True)
        for x in outputs:
            if not isinstance(x, Tensor):
                raise ValueError("vmap: the function must only return Tensors, got "
                                 f"{type_name(x)}")
        places = spread_dims("out_dims", out_dims, shape)
        for x, place in zip(outputs, places):
            if place is None and is_at(x, level):
                raise ValueError("vmap: can not return a BatchedTensor when out_dim is None: "
                                 "the result differs between examples")
        places = [None if d is None else wrap("vmap", d, x.ndim + 1)
                  for x, d in zip(outputs, places)]
        return [x if d is None else batch_of(x, level)
                for x, d in zip(outputs, places)], shape, places


def by_name(func):
    """A method of Tensor that takes nothing else, such as `Tensor.__add__`, as one of its name."""
    name = getattr(func, "__name__", None)
    if hasattr(func, "op") or getattr(Tensor, str(name), None) is not func:
        return func
    return lambda self, *args, **kwargs: getattr(self, name)(*args, **kwargs)


def placed_dims(in_dims, leaves, structure):
    """For each leaf the dim that counts its examples, from the front, or None."""
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError("vmap: expected `in_dims` to be int or a (potentially nested) tuple "
                         f"matching the structure of inputs, got: {type(in_dims).__name__}")
    if not leaves:
        raise ValueError("vmap: got no inputs. Maybe you forgot to add inputs, or you are "
                         "trying to vmap over a function with no inputs")
    found = spread_dims("in_dims", in_dims, structure)
    for i, (x, d) in enumerate(zip(leaves, found)):
        if d is None:
            continue
        if not isinstance(x, Tensor):
            raise ValueError(f"vmap: in_dim={d} for an input that is of type {type(x).__name__}; "
                             "None is the in_dim of what is not a Tensor")
        if not -x.ndim <= d < x.ndim:
            raise ValueError(f"vmap: in_dim={d} for some input, but that input is a Tensor of "
                             f"dimensionality {x.ndim} so expected in_dim to satisfy "
                             f"-{x.ndim} <= in_dim < {x.ndim}")
        found[i] = d % x.ndim
    return found


def batch_size(leaves, dims):
    """How many examples there are. Raises: ValueError where there is no answer or several."""
    sizes = [x.shape[d] for x, d in zip(leaves, dims) if d is not None]
    if not sizes:
        raise ValueError("vmap: at least one input must be mapped over: all in_dims are None")
    if len(set(sizes)) > 1:
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped "
                         f"dimension, got sizes {sizes} for the mapped dimension")
    return sizes[0]


def spread_dims(name, dims, structure):
    """A dim for each leaf of a structure from dims that may be one for a whole part of it."""
    if dims is None or (isinstance(dims, int) and not isinstance(dims, bool)):
        return [dims] * structure.count
    if structure.kind is dict and isinstance(dims, dict) and set(dims) == set(structure.keys):
        parts = [dims[key] for key in structure.keys]
    elif type(structure) is NodeStructure and type(dims) is structure.kind:
        parts, context = structure.node.flatten_fn(dims)
        if context != structure.context or len(parts) != len(structure.children):
            raise unfit(name, dims, structure)
    elif isinstance(dims, (tuple, list)) and structure.kind not in (None, dict) and (
            type(structure) is Structure and len(dims) == len(structure.children)):
        parts = dims
    elif name == "out_dims" and structure.kind is None and (
            isinstance(dims, tuple) and len(dims) == 1):
        return spread_dims(name, dims[0], structure)        # f returns one tensor, out_dims=(d,)
    else:
        raise unfit(name, dims, structure)
    return [d for part, child in zip(parts, structure.children)
            for d in spread_dims(name, part, child)]


def unfit(name, dims, structure):
    """The error of dims that are of another structure."""
    return ValueError(f"vmap: {name} is not compatible with the structure of what it is for: "
                      f"{dims!r} for {structure}")
