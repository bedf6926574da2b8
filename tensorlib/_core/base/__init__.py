"""What needs no tensor: element types, sizes, memory, threads."""
