"""Jacobians of a trace: by rows in reverse mode, by columns in forward mode.

Each block has the shape of an output followed by that of an input.
"""

from tensorlib.ops.declare import FUNCTIONS

stack = FUNCTIONS["stack"]


def rows_of(trace, place):
    """The Jacobians of the output at `place` with respect to each input of a trace."""
    out = trace.outputs[place]
    rows = []
    for unit in one_hots(out.detach()):
        gradients = [None] * len(trace.outputs)
        gradients[place] = unit
        rows.append(trace.pull(gradients, True))
    if not rows:
        return [x.new_zeros(out.shape + x.shape) for x in trace.inputs]
    return [stack(column).reshape(out.shape + x.shape)
            for column, x in zip(zip(*rows), trace.inputs)]


def columns_of(trace):
    """For each output of a trace, its Jacobians with respect to each input."""
    path = trace.path()
    blocks = [[] for _ in trace.outputs]
    for place, x in enumerate(trace.inputs):
        columns = []
        for unit in one_hots(x.detach()):
            tangents = [None] * len(trace.inputs)
            tangents[place] = unit
            columns.append(trace.push(path, tangents))
        for k, out in enumerate(trace.outputs):
            shape = out.shape + x.shape
            blocks[k].append(
                stack([column[k] for column in columns], -1).reshape(shape)
                if columns else out.detach().new_zeros(shape))
    return blocks


def one_hots(x):
    """For each element of `x` a tensor like it that is 1 there and 0 elsewhere."""
    for i in range(x.numel()):
        unit = x.new_zeros((x.numel(),))
        unit[i] = 1
        yield unit.reshape(x.shape)
