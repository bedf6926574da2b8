"""What every transform shares: which arguments are differentiated, and runs over containers."""

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.func.batching import traced
from tensorlib.func.tree import flatten, flatten_tensors, unflatten


class WrongArgument(ValueError, TypeError):
    """A leaf that is no Tensor: ValueError is PyTorch's error for it, TypeError what it is."""


def places_of(name, argnums, count):
    """The positions that `argnums` names among `count` positional arguments, and if it is one.

    Raises: RuntimeError where it names none, one twice or one that is not there.
    """
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,), True
    single = isinstance(argnums, int) and not isinstance(argnums, bool)
    if not single and not isinstance(argnums, (tuple, list)):
        raise RuntimeError(f"{name}: argnums must be int or a tuple of int, got "
                           f"{type(argnums).__name__}")
    given = (argnums,) if single else tuple(argnums)
    if not given:
        raise RuntimeError(f"{name}: argnums must be non-empty")
    for place in given:
        if not isinstance(place, int) or isinstance(place, bool):
            raise RuntimeError(f"{name}: argnums must be int or a tuple of int, got {argnums!r}")
        if not -count <= place < count:
            raise RuntimeError(f"{name}: got argnum={place}, but only {count} positional inputs")
    places = [place % count for place in given]
    if len(set(places)) != len(places):
        raise RuntimeError(f"{name}: argnums elements must be unique, got {argnums!r}")
    return places, single


def checked_inputs(name, container):
    """The tensors in a container that is differentiated, and its structure.

    Raises: WrongArgument for what is no Tensor, RuntimeError for tensors that are not floating.
    """
    leaves, structure = flatten(container, f"{name}: the container of arguments")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise WrongArgument(f"{name}: the arguments that are differentiated must be Tensors or "
                                f"containers of Tensors; got {type(leaf).__name__}")
        if not leaf.is_floating_point():
            raise RuntimeError(f"{name}: only Tensors of floating point dtype can require "
                               f"gradients; got {leaf.dtype}")
    return leaves, structure


class Run:
    """A run of `function(*args, **kwargs)` that is differentiated by the arguments at `places`.

    `outputs` are the tensors of what it returned, `structure` how they were contained there; `aux`
    is what came with them.
    """

    def __init__(self, name, function, args, kwargs, places, has_aux, forward=False):
        self.name = name
        tensors, self.inputs = checked_inputs(name, tuple([args[place] for place in places]))
        with traced(tensors, forward) as self.trace:
            args = list(args)
            for place, x in zip(places, unflatten(self.inputs, self.trace.inputs)):
                args[place] = x
            result = function(*args, **kwargs)
        self.has_aux = has_aux
        if not has_aux:
            outputs, self.structure = flatten_tensors(name, "the function's outputs", result)
            self.outputs = self.trace.finish(outputs)
            return
        if not isinstance(result, tuple) or len(result) != 2:
            raise RuntimeError(f"{name}: output of function should be a tuple (output, aux) if "
                               "has_aux is True")
        result, aux = result
        outputs, self.structure = flatten_tensors(name, "the function's outputs", result)
        beside, aux_structure = flatten(aux, f"{name}: what comes with the output")
        self.outputs = self.trace.finish(outputs, [x for x in beside if isinstance(x, Tensor)])
        if not self.trace.linked:
            beside = [x.detach() if isinstance(x, Tensor) else x for x in beside]
        self.aux = unflatten(aux_structure, beside)

    def value(self):
        """What the function returned, without what was for the graph alone."""
        return unflatten(self.structure, self.outputs)

    def by_argument(self, tensors, single):
        """Tensors in the containers of the inputs: a tuple with one for each, or the only one."""
        found = unflatten(self.inputs, tensors)
        return found[0] if single else found

    def with_aux(self, *results):
        """The results, followed by what came with the output if there is such; alone if one."""
        results = (*results, self.aux) if self.has_aux else results
        return results if len(results) > 1 else results[0]
