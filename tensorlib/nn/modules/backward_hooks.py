"""Calls of modules that have backward hooks: nodes on inputs and outputs that run the hooks."""

from tensorlib import Tensor
from tensorlib.autograd import Function


class Passing(Function):
    """Tensors that pass unchanged; their gradients are shown to a function on their way back."""

    @staticmethod
    def forward(ctx, seen, *tensors):
        ctx.seen = seen
        ctx.set_materialize_grads(False)
        return tuple(x.view_as(x) for x in tensors)

    @staticmethod
    def backward(ctx, *grads):
        return None, *ctx.seen(grads)


class Passage:
    """One call of a module that has backward hooks: where its gradients come in and go out."""

    def __init__(self, module, before, after):
        self.module, self.before, self.after = module, before, after
        self.grad_output = None

    def into(self, args):
        """The arguments, so linked that their gradients are seen."""
        args, self.inputs = linked(args, self.leave)
        self.input_count = len(args)
        self.zeros = {i: x.new_zeros(()).expand(x.shape) for i, x in enumerate(args)
                      if isinstance(x, Tensor) and i not in self.inputs} if self.inputs else {}
        return args

    def out_of(self, output):
        """The output, so linked that its gradients are seen."""
        several = isinstance(output, tuple)
        outputs, self.outputs = linked(output if several else (output,), self.enter)
        self.output_count = len(outputs)
        if not several:
            return outputs[0]
        return output._make(outputs) if hasattr(output, "_make") else outputs   # a named tuple

    def enter(self, grads):
        """Runs the hooks on the gradients of the outputs, once all have arrived."""
        full = placed(grads, self.outputs, self.output_count)
        for hook in self.before:
            result = hook(self.module, full)
            if result is not None:
                full = checked(result, full, "backward pre-hook")
        self.grad_output = full
        if not self.inputs:          # no input gets a gradient
            self.leave(())
        return tuple(full[i] for i in self.outputs)

    def leave(self, grads):
        """Runs the hooks on the gradients of the inputs, once all have arrived."""
        if self.grad_output is None:     # outputs in other containers, such as a dict, have no node
            return grads
        full = placed(grads, self.inputs, self.input_count)
        full = tuple(self.zeros.get(i, grad) for i, grad in enumerate(full))
        for hook in self.after:
            result = hook(self.module, full, self.grad_output)
            if result is not None and self.inputs:
                full = checked(result, full, "backward hook")
        return tuple(full[i] for i in self.inputs)


def linked(values, seen):
    """Values, the tensors that require gradients linked to a function; and their positions."""
    positions = [i for i, value in enumerate(values)
                 if isinstance(value, Tensor) and value.requires_grad]
    if not positions:
        return values, []
    passed = list(values)
    for i, value in zip(positions, Passing.apply(seen, *[values[i] for i in positions])):
        passed[i] = value
    return tuple(passed), positions


def placed(grads, positions, count):
    """Gradients at their positions among `count`, with None elsewhere."""
    full = [None] * count
    for i, grad in zip(positions, grads):
        full[i] = grad
    return tuple(full)


def checked(result, old, what):
    """New gradients in a tuple. Raises: RuntimeError where they are not as many as before."""
    result = result if isinstance(result, tuple) else (result,)
    if len(result) != len(old):
        raise RuntimeError(f"{what}: returned {len(result)} gradients for {len(old)}")
    return result
