"""Jacobians of a recorded run: by rows in reverse mode, by columns in forward mode.

Each block has the shape of an output followed by that of an input. Many rows or columns go through
the graph as one batch; few, and those of rules that take no batch, one by one.
"""

from tensorlib._core.sweep import graph_reader
from tensorlib.autograd.pullback import path_takes_batches
from tensorlib.autograd.batch import Batched, Level, batch_of
from tensorlib.ops.declare import FUNCTIONS

cat, stack, zeros = FUNCTIONS["cat"], FUNCTIONS["stack"], FUNCTIONS["zeros"]

# The numbers from which a batch is faster. A sweep of one row is compiled, while a batch runs the
# rules in Python; tangents are propagated in Python either way.
ROWS_TOGETHER = 16
COLUMNS_TOGETHER = 5
# The largest number of elements of an intermediate value, for all rows or columns of a batch.
ELEMENTS_TOGETHER = 1 << 24


def rows_of(recording, place, chunk_size=None, batched=None):
    """The Jacobians of the output at `place` with respect to each input of a recorded run.

    chunk_size: how many rows are computed at once; by default so many that the widest value inside
    has about ELEMENTS_TOGETHER elements for all of them.
    batched: whether as batches; by default where that is faster and the rules can.
    """
    out, inputs = recording.outputs[place], recording.inputs
    n = out.numel()

    def pulled(unit):
        return recording.pull(alone(unit, place, len(recording.outputs)), True)

    if not n:
        return [x.new_zeros(out.shape + x.shape) for x in inputs]
    together = n if batched is not None else min(
        n, chunk_size or at_once(recording.pullback().nodes))
    if batched is None:
        batched = together >= ROWS_TOGETHER and recording.pullback().takes_batches
    if batched:
        columns = together_in_parts(pulled, out, together)
    else:
        columns = [stack(column) for column in zip(*map(pulled, one_hots(out.detach())))]
    return [x.reshape(out.shape + like.shape) for x, like in zip(columns, inputs)]


def columns_of(recording, batched=None):
    """For each output of a recorded run, its Jacobians with respect to each input.

    batched: whether columns as batches; by default where that is faster and the rules can.
    """
    path = recording.path()
    can = batched is None and path_takes_batches(path)
    blocks = [[] for _ in recording.outputs]
    for place, x in enumerate(recording.inputs):
        def pushed(unit, place=place):
            return recording.push(path, alone(unit, place, len(recording.inputs)))

        n = x.numel()
        if n and (batched or can and n >= COLUMNS_TOGETHER):
            together = at_once([node for node, _ in path.steps])
            columns = [found.movedim(0, -1) for found in together_in_parts(pushed, x, together)]
        else:
            columns = [stack(found, -1) for found in zip(*map(pushed, one_hots(x.detach())))]
        for k, out in enumerate(recording.outputs):
            shape = out.shape + x.shape
            blocks[k].append(columns[k].reshape(shape) if n else out.detach().new_zeros(shape))
    return blocks


def alone(direction, place, n):
    """A list of n directions, of which only the one at `place` is not None."""
    return [None] * place + [direction] + [None] * (n - place - 1)


def at_once(nodes):
    """How many rows or columns to take through these nodes at once."""
    return max(ROWS_TOGETHER, ELEMENTS_TOGETHER // max(1, graph_reader.widest(nodes)))


def together_in_parts(derivative, like, step):
    """The results of a derivative for the one-hot directions of `like`, as batches."""
    n, parts = like.numel(), []
    for begin in range(0, n, step):
        count = min(step, n - begin)
        units = zeros((count, n), dtype=like.dtype)
        units.diagonal(begin).fill_(1)
        parts.append(together(derivative, units.reshape((count, *like.shape))))
    return parts[0] if len(parts) == 1 else [cat(part) for part in zip(*parts)]


def together(derivative, directions):
    """The results of a derivative for directions as one batch."""
    with Level(len(directions)) as level:
        return [batch_of(x, level) for x in derivative(Batched(directions, level))]


def one_hots(x):
    """For each element of `x` a tensor like it that is 1 there and 0 elsewhere."""
    for i in range(x.numel()):
        unit = x.new_zeros((x.numel(),))
        unit[i] = 1
        yield unit.reshape(x.shape)
