"""Ways to read: what objects are made of, and special methods (chapter 3 of the reference)."""

from .reads import CLASS, Way

SPECIAL = "class S:\n    k = 2\n    def {name}(self, *a):\n        return {give}\no = S()"


def special(name, read, give="self.k", change="S.k = 3"):
    """A special method that reads an attribute of its class."""
    return Way(read, change, SPECIAL.format(name=name, give=give))


def replaced(name, read, before, after):
    """A special method that is another one later."""
    return Way(read, f"S.{name} = lambda self, *a: {after}", SPECIAL.format(name=name, give=before))


WAYS = {
    # ---- 3.1, 3.2: objects, values and types
    "3.1 type": Way("y = y * (2 if type(o) is int else 3)", "global o; o = 1.0", "o = 1"),
    "3.1 value under the same identity": Way("y = y * o[0]", "o[0] = 5", "o = [1]"),
    "3.2 None": Way("y = y if o is None else y * 2", "global o; o = 0", "o = None"),
    "3.2 NotImplemented": Way("y = y * (2 if o is NotImplemented else 3)", "global o; o = 1",
                              "o = NotImplemented"),
    "3.2 Ellipsis": Way("y = y[o]", "global o; o = 0", "o = ..."),
    "3.2 int": Way("y = y * o", "global o; o = 3", "o = 2"),
    "3.2 bool for int": Way("y = y * len(str(o))", "global o; o = True", "o = 1"),
    "3.2 float for int": Way("y = y * len(str(o))", "global o; o = 1.0", "o = 1"),
    "3.2 minus zero": Way("y = y * math.copysign(1, o)", "global o; o = -0.0", "o = 0.0"),
    "3.2 nan": Way("y = y * (2 if o != o else 3)", "global o; o = 1.0", "o = float('nan')"),
    "3.2 complex": Way("y = y * o.imag", "global o; o = 2j", "o = 1j"),
    "3.2 str": Way("y = getattr(y, o)()", "global o; o = 'cos'", "o = 'sin'"),
    "3.2 equal str of another class": Way("y = y * (2 if type(o) is str else 3)",
                                          "global o; o = T('a')", "class T(str): pass\no = 'a'"),
    "3.2 bytes": Way("y = y * o[0]", "global o; o = b'\\3'", "o = b'\\2'"),
    "3.2 tuple of lists": Way("y = y * o[0][0]", "o[0][0] = 3", "o = ([2],)"),
    "3.2 list": Way("y = y * o[1]", "o[1] = 3", "o = [1, 2]"),
    "3.2 list of lists": Way("y = y * o[1][0]", "o[1][0] = 3", "o = [1, [2]]"),
    "3.2 range": Way("y = y * o[-1]", "global o; o = range(4)", "o = range(3)"),
    "3.2 frozenset": Way("y = y * len(o)", "global o; o = frozenset((1, 2))",
        "o = frozenset((1,))"),
    "3.2 dict": Way("y = y * o['k']", "o['k'] = 3", "o = dict(k=2)"),
    "3.2 dict in a dict": Way("y = y * o['k']['l']", "o['k']['l'] = 3", "o = dict(k=dict(l=2))"),
    "3.2 dict by a computed key": Way("y = y * o['a' + 'b']", "o['ab'] = 3", "o = dict(ab=2)"),
    "3.2 dict by a key from outside": Way("y = y * o[k]", "global k; k = 'b'",
                                          "o = dict(a=1, b=2); k = 'a'"),
    "3.2 closure cell": Way("y = y * c", "nonlocal c; c = 3", inner="c = 2"),
    "3.2 cell of another": Way("y = y * g()", "nonlocal c; c = 3",
        inner="c = 2\ndef g(): return c"),
    "3.2 cell_contents": Way("y = y * g()", "g.__closure__[0].cell_contents = 3",
                             inner="c = 2\ndef g(): return c"),
    "3.2 cell_contents that can be called": Way(
        "y = y * g.__closure__[0].cell_contents(2, 3)", "g.__closure__[0].cell_contents = max",
        inner="c = min\ndef g(): return c"),
    **{f"3.3 slot that can be called, by {text}": Way(
        f"y = y * {text}(2, 3)", "o.k = max",
        "class P:\n    __slots__ = ('k',)\no = P()\no.k = min") for text in (
            "o.k", "getattr(o, 'k')", "getattr(o, 'k', 1)", "o.__getattribute__('k')",
            "object.__getattribute__(o, 'k')", "operator.attrgetter('k')(o)")},
    **{f"3.3 slot that is filled later, by {text}": Way(
        f"try:\n    y = y * {text}\nexcept AttributeError:\n    y = y + 5", "o.k = 3",
        "class P:\n    __slots__ = ('k',)\no = P()") for text in (
            "o.k", "(hasattr(o, 'k') + 1)", "getattr(o, 'k', 2)")},
    "3.3.2.2 super() of other bases": Way("y = y * E().m()", "E.__bases__ = (F,)", CLASS +
        "class E(D):\n    def m(self): return super().m()\n"
        "class F(D):\n    def m(self): return super().m() + 1"),
    "3.3.3 class that is made of one outside": Way(
        "y = y * type('E', (C,), {})().k", "C.k = 3", CLASS),
    "3.3.3 class statement inside": Way(
        "class E(D): pass\ny = y * E().m()", "C.k = 3", CLASS),
    "3.3.1 __subclasses__": Way("y = y * len(C.__subclasses__())",
        "o.k = type('E', (C,), {})", CLASS),
    "3.3.1 __getstate__": Way("y = y * len(o.__reduce_ex__(2)[2] or ())", "o.k = 3", CLASS),
    "3.3.2 class attribute that the library reads": Way("y = d(y)", "D.eps = 5.0",
        "class D(nn.LayerNorm): pass\nd = D(3)\ndel vars(d)['eps']\nD.eps = 0.1"),
    "3.3.2 class attribute that NumPy reads": Way("y = y * float(np.asarray(o).sum())",
        "S.__array_interface__ = b.__array_interface__", "a, b = np.ones(3), np.zeros(3)\n"
        "class S:\n    __array_interface__ = a.__array_interface__\no = S()"),
    "3.3.1 __post_init__": Way("y = y * S().j", "S.__post_init__ = lambda self: None",
        "@dataclasses.dataclass\nclass S:\n    j: int = 2\n"
        "    def __post_init__(self): self.j = 3"),
    "3.3.4 protocol": Way("y = y * (2 if isinstance(o, P) else 3)", "C.named = 1", CLASS + """
@typing.runtime_checkable
class P(typing.Protocol):
    def named(self): ..."""),
    "3.3.4 protocol of an attribute": Way("y = y * (2 if isinstance(o, P) else 3)", "o.named = 1",
        CLASS + """
@typing.runtime_checkable
class P(typing.Protocol):
    named: int"""),
    "3.2 empty cell": Way("try:\n    y = y * c\nexcept NameError:\n    y = y + 5",
                          "nonlocal c; c = 3", inner="if False: c = 1"),
    "3.2 generator function": Way("y = y * sum(g())", "G.append(2)",
                                  "G = [1, 2]\ndef g():\n    for k in G: yield k"),
    "3.2 built-in function": Way("y = y * g([2, 3])", "global g; g = min", "g = max"),
    "3.2 class as a function": Way("y = y * o(2.5)", "global o; o = float", "o = int"),
    "3.2 attribute that is uncovered": Way("y = y * o.k", "del o.k", CLASS + "o.k = 5"),
    "3.2 traceback": Way("try:\n    1 / o\nexcept ZeroDivisionError as e:\n    y = y * "
                         "(e.__traceback__.tb_lineno > 0) * 3", "global o; o = 1", "o = 0"),
    "3.2 slice object": Way("y = y[o]", "global o; o = slice(0, 2)", "o = slice(0, 1)"),
    # ---- 3.3: special methods
    "3.3.12 looked up on the class only": Way("y = y * len(o)", "o.__len__ = lambda: 5",
                                              "class S:\n    def __len__(self): return 2\no = S()"),
}
