"""What a captured function reads, recorded as it reads it.

`scopes` and `rewriting` instrument a function's syntax tree, `sources` finds the tree and installs
the new code, `hooks` are the functions that the new code calls, `recorder` records what they
report, and `known` lists functions outside of Python that are known to be harmless.
"""
