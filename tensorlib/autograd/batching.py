"""Transforms inside `vmap`: derivatives of a function of one example for a whole batch at once."""

from tensorlib._core.base.settings import Setting
from tensorlib._core.interpreters.levels import running_levels
from tensorlib.autograd.transform import Recording
from tensorlib.autograd.batch import Batched, as_example, batch_of


class BatchRecording(Setting):
    """A `Recording` inside `vmap`: it records whole batches, and is used with single examples.

    Examples do not mix, so gradients and tangents of the batch are those of each example.
    """

    def __init__(self, tensors, forward_mode, levels):
        self.levels = levels
        self.recording = Recording([self.whole(x) for x in tensors], forward_mode)
        self.inputs = self.examples(self.recording.inputs)

    def whole(self, x):
        """The Tensor of all examples at all levels; `x` may be one of a batch begun since."""
        if x is None:
            return None
        if type(x) is Batched and x.level not in self.levels:
            return Batched(self.whole(x.value).movedim(len(self.levels), 0), x.level)
        for level in reversed(self.levels):
            x = batch_of(x, level)
        return x

    def examples(self, tensors):
        """Each Tensor of all examples, or batch of such, as one example."""
        return [self.example(x) for x in tensors]

    def example(self, x):
        """The Tensor of all examples, or a batch of such, as one example."""
        if type(x) is Batched:
            return Batched(self.example(x.value.movedim(0, len(self.levels))), x.level)
        return as_example(x, self.levels)

    swaps = Recording.swaps
    values = property(lambda self: self.recording.values)
    linked = property(lambda self: self.recording.linked)

    def finish(self, outputs, beside=()):
        """As `Recording.finish`, of examples."""
        found = self.recording.finish([self.whole(x) for x in outputs],
                                      [self.whole(x) for x in beside])
        self.outputs = self.examples(self.recording.outputs)
        return self.examples(found)

    def pull(self, gradients, retain_graph):
        """As `Recording.pull`, of examples."""
        return self.examples(self.recording.pull([self.whole(g) for g in gradients], retain_graph))

    def pullback(self):
        """As `Recording.pullback`."""
        return self.recording.pullback()

    def path(self):
        """As `Recording.path`."""
        return self.recording.path()

    def push(self, path, tangents):
        """As `Recording.push`, of examples."""
        return self.examples(self.recording.push(path, [self.whole(t) for t in tangents]))

    def depends(self, x, place):
        """As `Recording.depends`, of an example."""
        return self.recording.depends(self.whole(x), place)


def recording_of(tensors, forward_mode):
    """The recording of a function's inputs: that of whole batches where there are such now."""
    levels = running_levels()
    return (BatchRecording(tensors, forward_mode, levels) if levels
            else Recording(tensors, forward_mode))
