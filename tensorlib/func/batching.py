"""Derivatives of a function of one example, taken for the whole batch at once."""

from tensorlib.autograd.transform import Trace
from tensorlib.batch import Batched, raised, running_levels, spread


class BatchedTrace:
    """A `Trace` inside of `vmap`: of whole batches, seen by its user as one example.

    Examples do not mix, so what is pulled back or pushed forward for the batch is that of each.
    """

    def __init__(self, tensors, forward, levels):
        self.levels = levels
        self.trace = Trace([self.lowered(x) for x in tensors], forward)
        self.inputs = self.raised(self.trace.inputs)

    def lowered(self, x):
        """The Tensor of all examples at all levels; `x` may be one of a batch begun since."""
        if x is None:
            return None
        if type(x) is Batched and x.level not in self.levels:
            return Batched(self.lowered(x.value).movedim(len(self.levels), 0), x.level)
        for level in reversed(self.levels):
            x = spread(x, level)
        return x

    def raised(self, tensors):
        """Each Tensor of all examples, or batch of such, as one example."""
        return [self.raised_one(x) for x in tensors]

    def raised_one(self, x):
        if type(x) is Batched:
            return Batched(self.raised_one(x.value.movedim(0, len(self.levels))), x.level)
        return raised(x, self.levels)

    def __enter__(self):
        self.trace.__enter__()
        return self

    def __exit__(self, *error):
        self.trace.__exit__(*error)

    linked = property(lambda self: self.trace.linked)

    def finish(self, outputs, beside=()):
        """As `Trace.finish`, of examples."""
        found = self.trace.finish([self.lowered(x) for x in outputs],
                                  [self.lowered(x) for x in beside])
        self.outputs = self.raised(self.trace.outputs)
        return self.raised(found)

    def pull(self, gradients, retain_graph):
        """As `Trace.pull`, of examples."""
        return self.raised(self.trace.pull([self.lowered(g) for g in gradients], retain_graph))

    def pullback(self):
        """As `Trace.pullback`."""
        return self.trace.pullback()

    def path(self):
        """As `Trace.path`."""
        return self.trace.path()

    def push(self, path, tangents):
        """As `Trace.push`, of examples."""
        return self.raised(self.trace.push(path, [self.lowered(t) for t in tangents]))


def traced(tensors, forward):
    """The trace of a function's inputs: that of whole batches where there are such now."""
    levels = running_levels()
    return BatchedTrace(tensors, forward, levels) if levels else Trace(tensors, forward)
