"""A way to read: what is there, what reads it, and a change. `y` is a tensor made from the argument
`x`; the tables are in files of their own, by sections of Python's language reference.
"""

from typing import NamedTuple

IMPORTS = """import abc, bisect, builtins, collections, contextlib, copy, dataclasses, enum
import functools
import heapq, io, itertools, json, math, operator, os, random, re, string, struct, sys, time, types
import typing, weakref
import numpy as np
import tensorlib as tl
from tensorlib import nn
F = nn.functional
"""


class Way(NamedTuple):
    """outer: at the top of the module. inner: in the function around `f`, where names are cells."""

    read: str
    change: str
    outer: str = ""
    inner: str = ""
    signature: str = "x"
    given: str = ""


CLASS = """
class C:
    k = 2
    def m(self):
        return self.k
    @classmethod
    def made(cls):
        return cls.k
    @staticmethod
    def plain():
        return 2
    @property
    def p(self):
        return self.k
class D(C):
    def m(self):
        return super().m() * 2
o = C()
d = D()
"""


def text_of(way, changed=True):
    """The module that reads in this way, with calls before and after the change, or without it."""
    def inside(text, depth):
        return "".join(" " * 4 * depth + line + "\n" for line in text.split("\n") if line)

    call = "dict(also=given, x=tl.tensor([0.3, -0.7, 1.1]))"
    steps = [call, call, *["change"] * changed, call, call, call]
    return (IMPORTS + way.outer + "\ndef build():\n" + inside(way.inner, 1)
            + inside(f"def f({way.signature}):", 1) + inside("y = x * 1", 2) + inside(way.read, 2)
            + inside("return y", 2) + inside(f"given = dict({way.given})", 1)
            + inside("def change():", 1) + inside(way.change, 2)
            + inside(f"return f, [{', '.join(steps)}], lambda: None", 1))
