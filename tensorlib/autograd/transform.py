"""`Recording`: runs and records a function on fresh tensors, the first step of every transform.

`Run` (run.py) is the same for functions of nested containers.
"""

import itertools

from tensorlib._core.base.settings import Setting
from tensorlib._core.graph.node import recorded_so_far
from tensorlib._core.interpreters.capture import NOTHING, capture
from tensorlib._core.layout.views import zeros_like
from tensorlib._core.sweep import graph_reader
from tensorlib.autograd.forward import LinearizedGraph
from tensorlib.autograd.gradients import grad
from tensorlib.autograd.modes import is_grad_enabled
from tensorlib.autograd.pullback import Pullback, each, path_takes_batches
from tensorlib.autograd.batch import Batched


class Recording(Setting):
    """A function's inputs as fresh tensors, its recorded run, and the derivative in both modes.

    `with Recording(tensors) as recording:` the function is run on `recording.inputs`, which share
    the memory of the tensors given. They are linked to the graph of these where there is one and
    the caller records, so that transforms can be nested. With `forward_mode` nodes keep what
    forward-mode rules need as well.
    """

    def __init__(self, tensors, forward_mode=False):
        self.caller_records = is_grad_enabled()
        self.forward_mode = forward_mode
        self.since = recorded_so_far()
        self.linked = self.caller_records and True in [x.requires_grad for x in tensors]
        self.capture = capture() or NOTHING
        self.inputs = [
            x.view(x.shape) if self.caller_records and x.requires_grad
            else self.capture.entered(x) for x in tensors]
        self.nodes = [graph_reader.gradient_place(x)[0] for x in self.inputs]    # kept alive

    swaps = (graph_reader.set_transform,)

    @property
    def values(self):
        return (graph_reader.wanted_by_transform(self.forward_mode),)

    def finish(self, outputs, beside=()):
        """Records the outputs and returns them, outside of the graph unless the caller needs it.

        The caller needs it if grad mode is on and they, or the tensors `beside` them, depend on
        inputs or captured tensors that require a gradient.
        """
        self.outputs, self.backwards = outputs, None
        roots = [graph_reader.gradient_place(x)[0] for x in (*outputs, *beside) if x.requires_grad]
        self.linked = self.caller_records and (
            self.linked or graph_reader.leads_outside(roots, self.nodes, self.since))
        return list(outputs) if self.linked else list(map(self.capture.left, outputs))

    def pull(self, gradients, retain_graph):
        """The gradients of the inputs from those of the outputs; zeros where there is none."""
        found = self.gradients(gradients, retain_graph)
        return [zeros_like(x) if g is None else g for x, g in zip(self.inputs, found)]

    def gradients(self, gradients, retain_graph):
        """The gradients of the inputs from those of the outputs; None where there is none."""
        if Batched in map(type, gradients):
            return self.batch_pulled(gradients)
        outputs = self.outputs
        reached = [x.requires_grad and g is not None for x, g in zip(outputs, gradients)]
        create_graph = self.needs_graph(gradients)
        if False in reached:
            outputs = list(itertools.compress(outputs, reached))
            gradients = list(itertools.compress(gradients, reached))
        if not outputs:
            return [None] * len(self.inputs)
        return grad(outputs, self.inputs, gradients, retain_graph or create_graph, create_graph,
                    allow_unused=True)

    def pullback(self):
        """The graph between inputs and outputs, for gradients of which there are many."""
        if self.backwards is None:
            self.capture.walked(self.nodes, self.since)
            self.backwards = Pullback(self.inputs, self.outputs, self.since)
        return self.backwards

    def batch_pulled(self, gradients):
        """`gradients` for batches, one by one if a rule takes no batch."""
        pullback = self.pullback()
        if pullback.takes_batches:
            return pullback.pull(gradients, self.needs_graph(gradients))
        return each("vjp", lambda given: self.gradients(given, True), gradients)

    def path(self):
        """The graph between inputs and outputs, for `push`."""
        self.capture.walked(self.nodes, self.since)
        places = [graph_reader.gradient_place(x) for x in self.inputs]
        return LinearizedGraph(places, self.outputs, self.since)

    def push(self, path, tangents):
        """The tangents of the outputs from those of the inputs; zeros where they depend on none."""
        if Batched in map(type, tangents) and not path_takes_batches(path):
            found = each("jvp", lambda given: self.push(path, given), tangents)
        else:
            graph = self.needs_graph(tangents)
            noted = not graph and self.capture.differentiates and self.caller_records
            found = path.push(tangents, graph or noted)
            if noted:
                found = [None if t is None else self.capture.left(t) for t in found]
        return [zeros_like(x) if t is None else t for x, t in zip(self.outputs, found)]

    def depends(self, x, place):
        """Whether tensor `x` was computed in this run from the input at `place`."""
        if not x.requires_grad:
            return False
        start, root = self.nodes[place], graph_reader.gradient_place(x)[0]
        return root is start or bool(graph_reader.nodes_between([start], [root], self.since))

    def needs_graph(self, directions):
        """Whether derivatives in these directions will themselves be differentiated."""
        return is_grad_enabled() and (
            self.linked or True in [x is not None and x.requires_grad for x in directions])
