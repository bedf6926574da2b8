"""What a captured function reads, recorded as it reads it.

`scopes` and `rewriting` make of a function's syntax tree one that tells what it reads, `sources`
finds the tree and puts the new code in the place of the old one, `hooks` are the functions that the
new code calls, `recorder` notes what they are told, and `known` lists the foreign code that is
known to be harmless.
"""
