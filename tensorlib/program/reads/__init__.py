"""What a captured function reads, recorded as it reads it.

`scopes` and `instrumenting` instrument the syntax tree of a function, `sources` finds the tree and
installs the new code, `hooks` are the functions which that code calls, `observer` instruments what
the function runs, `recorder` and `calls` say what is recorded for each kind of read, `read_log`
keeps it and makes guards of it, and `known` lists functions outside of Python that are known to be
harmless. `graph_breaks` splits a function around what can't be captured.
"""
