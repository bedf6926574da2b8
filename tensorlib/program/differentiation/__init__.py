"""The backward part of a program: gradients, as calls that are added to it."""
