"""The backward sweep, which carries gradients through the graph; and reading the graph."""
