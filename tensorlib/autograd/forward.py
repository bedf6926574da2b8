"""Forward mode over a recorded graph: tangents go from inputs to outputs, oldest node first.

The graph is recorded once, by a `Recording` (transform.py) that has nodes keep what forward-mode
rules need, and tangents can be pushed through it any number of times.
"""

from tensorlib._core.sweep import graph_reader
from tensorlib.autograd.modes import set_grad_enabled
from tensorlib.autograd.tangent import tangent_of


class LinearizedGraph:
    """The part of a graph through which outputs depend on inputs, as a linear map of tangents.

    It goes from `starts`, each a node and the number of one of its outputs, to the tensors
    `outputs`; no node from before number `since` is visited.
    """

    def __init__(self, starts, outputs, since):
        self.starts = starts
        self.ends = [graph_reader.gradient_place(x) if x.requires_grad else None for x in outputs]
        nodes = graph_reader.nodes_between(
            [node for node, _ in self.starts], [end[0] for end in self.ends if end], since)
        self.steps = [(node, node.next_functions) for node in nodes]
        self.freed = last_uses([edges for _, edges in self.steps], self.ends)

    def push(self, tangents, recorded):
        """The tangents of the outputs from those of the inputs; None for those without.

        With `recorded` they can be differentiated.
        """
        known = dict(zip(self.starts, tangents))
        with set_grad_enabled(recorded):
            for (node, edges), freed in zip(self.steps, self.freed):
                given = [known.get(edge) for edge in edges]
                if any(tangent is not None for tangent in given):
                    out = tangent_of(graph_reader.operation(node), node, given)
                    for k, tangent in enumerate(out if isinstance(out, tuple) else (out,)):
                        known[node, k] = tangent
                for edge in freed:
                    known.pop(edge, None)
        return [known.get(end) for end in self.ends]

    def independent_outputs(self):
        """The numbers of the outputs that depend on no input."""
        reached = {*self.starts, *[(node, k) for node, _ in self.steps
                                   for k in range(graph_reader.count_outputs(node))]}
        return [i for i, end in enumerate(self.ends) if end not in reached]


def last_uses(uses, kept):
    """For each step of a sequence of `uses`, the items that it is the last one to use."""
    last = {}
    for step, used in enumerate(uses):
        last.update((use, step) for use in used)
    freed = [[] for _ in uses]
    for use, step in last.items():
        if use not in kept:
            freed[step].append(use)
    return freed
