"""A recorded run of a function and its derivatives, by which all transforms are implemented.

`func` and `autograd.functional` are two interfaces to it, as in PyTorch: they select the arguments
that are differentiated, check them, and choose what to return.
"""

from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.batching import recording_of
from tensorlib.autograd.jacobians import columns_of, rows_of
from tensorlib.autograd.tree import as_leaf, flatten, flatten_tensors, unflatten
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.errors import WrongArgument

ones_like = FUNCTIONS["ones_like"]


def checked_inputs(name, container):
    """The tensors in a container that is differentiated, and its structure.

    Numbers and arrays in it become tensors.
    Raises: WrongArgument for what is not a Tensor, RuntimeError for tensors that are not floating.
    """
    leaves, structure = flatten(container, f"{name}: the container of arguments", nodes=True)
    leaves = [as_leaf(leaf) for leaf in leaves]
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise WrongArgument(f"{name}: the arguments that are differentiated must be Tensors, "
                                "numbers, arrays or containers of these; got "
                                f"{type_name(leaf)}")
        if not has_gradients(leaf.dtype):
            raise RuntimeError(f"{name}: only Tensors of floating point dtype can require "
                               f"gradients; got {leaf.dtype}")
    return leaves, structure


class Run:
    """A run of `function(*args, **kwargs)` that is differentiated by the arguments at `places`.

    `outputs` are the tensors of what it returned, `structure` how they were contained there; `aux`
    is what came with them, where the function `has_aux`. Directions, gradients and tangents, are
    lists with one tensor for each output or input.
    """

    def __init__(self, name, function, args, kwargs, places, has_aux=False, forward_mode=False):
        tensors, self.inputs = checked_inputs(name, tuple([args[place] for place in places]))
        with recording_of(tensors, forward_mode) as self.recording:
            args = list(args)
            for place, x in zip(places, unflatten(self.inputs, self.recording.inputs)):
                args[place] = x
            result = function(*args, **kwargs)
        self.name, self.has_aux = name, has_aux
        if not has_aux:
            outputs, self.structure = flatten_tensors(name, "the function's outputs", result)
            self.outputs = self.recording.finish(outputs)
            return
        if not isinstance(result, tuple) or len(result) != 2:
            raise RuntimeError(f"{name}: output of function should be a tuple (output, aux) if "
                               "has_aux is True")
        result, aux = result
        outputs, self.structure = flatten_tensors(name, "the function's outputs", result)
        beside, aux_structure = flatten(
            aux, f"{name}: what comes with the output", nodes=True)
        self.outputs = self.recording.finish(
            outputs, [x for x in beside if isinstance(x, Tensor)])
        if not self.recording.linked:
            beside = [x.detach() if isinstance(x, Tensor) else x for x in beside]
        self.aux = unflatten(aux_structure, beside)

    # ---- derivatives

    def gradients(self):
        """The gradient of each input, of the sum of all elements of the outputs."""
        return self.recording.pull([ones_like(out) for out in self.outputs], False)

    def pull(self, gradients, retain_graph=False):
        """The gradients of the inputs from those of the outputs: products with the Jacobian."""
        return self.recording.pull(cast_like(gradients, self.outputs), retain_graph)

    def path(self):
        """The graph between inputs and outputs, for `push`."""
        return self.recording.path()

    def push(self, path, tangents):
        """The tangents of the outputs from those of the inputs: products with the Jacobian."""
        return self.recording.push(path, cast_like(tangents, self.recording.inputs))

    def jacobians(self, forward_mode=False, chunk_size=None, holomorphic=False):
        """For each output a list of its Jacobians with respect to each input.

        forward_mode: by columns. chunk_size: how many rows to compute at once in reverse mode.
        holomorphic: all inputs and outputs are complex, and the function has complex derivatives.
        Raises: RuntimeError for complex numbers of which one direction does not tell all.
        """
        self.check_directions(forward_mode, holomorphic)
        if forward_mode:
            return columns_of(self.recording)
        found = [rows_of(self.recording, place, chunk_size) for place in range(len(self.outputs))]
        if holomorphic:      # a gradient is the conjugate of the derivative
            return [[block.conj() for block in blocks] for blocks in found]
        return found

    def check_directions(self, forward_mode, holomorphic):
        """Raises RuntimeError where a number has two directions, and a Jacobian room for one."""
        inputs, outputs = self.recording.inputs, self.outputs
        if holomorphic:
            for x in (*inputs, *outputs):
                if not x.is_complex():
                    raise RuntimeError(f"{self.name}: holomorphic=True takes functions of complex "
                                       f"tensors that give such, got one of {x.dtype}")
            return
        what = "inputs" if forward_mode else "outputs"
        for place, x in enumerate(inputs if forward_mode else outputs):
            if x.is_complex():
                raise RuntimeError(
                    f"{self.name}: expected all {what} to be real, got {x.dtype} at place {place}; "
                    "view_as_real gives the parts, and holomorphic=True in jacfwd and jacrev the "
                    "complex derivative of a function that has one")

    # ---- containers

    def value(self):
        """What the function returned, without what was for the graph alone."""
        return unflatten(self.structure, self.outputs)

    def by_output(self, found):
        """Values, one for each output, in the container that the function returned."""
        return unflatten(self.structure, found)

    def contained(self, jacobians, single):
        """The result of `jacobians`: the container of outputs, with that of inputs inside."""
        return self.by_output([self.by_argument(found, single) for found in jacobians])

    def by_argument(self, found, single):
        """Values, one for each input, in the containers of these; `single`: of the only one."""
        found = unflatten(self.inputs, found)
        return found[0] if single else found

    def with_aux(self, *results):
        """The results, followed by `aux` if there is one; not a tuple if it is only one."""
        results = (*results, self.aux) if self.has_aux else results
        return results if len(results) > 1 else results[0]


def cast_like(directions, tensors):
    """Each direction in the dtype of the tensor that it belongs to."""
    return [x if x.dtype is like.dtype else x.to(like.dtype)
            for x, like in zip(directions, tensors)]
