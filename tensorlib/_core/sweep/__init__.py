"""The backward sweep: gradients carried through the graph, and the graph as others read it."""
