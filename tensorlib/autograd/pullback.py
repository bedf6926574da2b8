"""Reverse mode on batches: many gradients at once go through a recorded graph, node by node.

The backward sweep takes Tensors alone. Here the same rules are evaluated on `Batched` gradients,
each once however many gradients there are.
"""

from tensorlib._core.interpreters.capture import capture
from tensorlib._core.sweep import graph_reader
from tensorlib._core.sweep.rules import gradients as gradients_of
from tensorlib.autograd.modes import set_grad_enabled
from tensorlib.autograd.batch import Batched, has_rule, innermost, is_at, warn_of_loop
from tensorlib.ops.complete import is_ours
from tensorlib.ops.declare import FUNCTIONS

stack = FUNCTIONS["stack"]


class Pullback:
    """The part of a graph through which outputs depend on inputs, as a linear map of gradients.

    `inputs` and `outputs` are tensors; no node from before number `since` is visited.
    """

    def __init__(self, inputs, outputs, since):
        self.starts = [graph_reader.gradient_place(x) for x in inputs]
        self.ends = [graph_reader.gradient_place(x) if x.requires_grad else None for x in outputs]
        starts = [node for node, _ in self.starts]
        self.nodes = graph_reader.nodes_between(starts, [end[0] for end in self.ends if end], since)
        passed = {*starts, *self.nodes}
        self.steps = [(node, graph_reader.operation(node), node.next_functions)
                      for node in reversed(self.nodes)]
        self.wanted = [tuple(edge[0] in passed for edge in edges) for *_, edges in self.steps]
        self.takes_batches = all(map(graph_reader.takes_batches, passed))

    def pull(self, gradients, recorded):
        """The gradients of the inputs from those of the outputs; None for those without.

        With `recorded` they can be differentiated.
        """
        known = {}
        for end, g in zip(self.ends, gradients):
            if end is not None and g is not None:
                add(known, end, g)
        with set_grad_enabled(recorded):
            for (node, op, edges), wanted in zip(self.steps, self.wanted):
                n_outputs = graph_reader.count_outputs(node)
                gs = tuple(known.pop((node, k), None) for k in range(n_outputs))
                if all(g is None for g in gs):
                    continue
                g = gs[0] if len(gs) == 1 else gs
                grads = gradients_of(node, op, wanted, g, recorded)
                for edge, grad in zip(edges, grads):
                    if grad is not None:
                        add(known, edge, grad)
        return [known.get(start) for start in self.starts]


def add(known, edge, g):
    """Adds a gradient to what has arrived at an edge."""
    known[edge] = g if edge not in known else known[edge] + g


def are_batches(gradients):
    """Whether there is an example of a batch among what was given as gradients."""
    return Batched in map(type, gradients)


def grads_of_examples(outputs, inputs, gradients, recorded, grad):
    """The result of `autograd.grad` under `vmap` for Batched gradients, for all at once.

    grad: that of one example, for graphs with rules that take no batch. What nodes keep is kept.
    Raises: RuntimeError for another number or other shapes of gradients than of outputs.
    """
    shapes = [g.shape for g in gradients]
    if shapes != [x.shape for x in outputs]:
        raise RuntimeError(f"grad: got gradients of shapes {[tuple(each) for each in shapes]} for "
                           f"tensors of shapes {[tuple(x.shape) for x in outputs]}")
    around = capture()
    if around is not None and not around.ends_for("autograd.grad of a batch of gradients"):
        raise RuntimeError("grad: a batch of gradients can't be captured")
    pullback = Pullback(inputs, outputs, 0)
    gradients = [g if g.dtype is x.dtype else g.to(x.dtype) for x, g in zip(outputs, gradients)]
    if pullback.takes_batches:
        return tuple(pullback.pull(gradients, recorded))
    return tuple(each("autograd.grad", grad, gradients))


# ---- one by one ----------------------------------------------------------------------------------

def path_takes_batches(path):
    """Whether the forward-mode rules along a path can run on a batch of tangents at once.

    Rules from outside may do anything.
    """
    return all(known_forward(graph_reader.operation(node)) for node, _ in path.steps)


def known_forward(op):
    """Whether the forward-mode rule of an operation runs on batches."""
    if op.linearity == "jvp":
        return is_ours(op.tangent_rule.function) and has_rule(op)
    return op.linearity in ("linear", "multilinear", "deriv") and has_rule(op)


def each(name, derivative, directions):
    """The results of a derivative for a batch of directions, one by one, with one warning."""
    level = innermost(directions)
    warn_of_loop(f"{name} through an operation from outside", level)
    rows = [derivative([x.value[i] if is_at(x, level) else x for x in directions])
            for i in range(level.size)]
    return [None if column[0] is None else Batched(stack(column), level) for column in zip(*rows)]
