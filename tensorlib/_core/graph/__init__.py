"""The autograd graph: operations, the nodes of their calls, and the values that nodes save."""
