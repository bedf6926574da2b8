"""What holds a value: how one is made around it, the ways to read it back, and to put another in.

In the texts `{h}` is the holder and `{v}` the value.
"""

from typing import NamedTuple


class Holder(NamedTuple):
    """made: an expression. read: expressions. written: statements. defined: of what it needs."""

    made: str
    read: tuple
    written: tuple = ()
    defined: str = ""


MAPPING_READS = (
    "{h}['k']", "{h}.get('k')", "{h}.get('k', 5)", "dict({h})['k']", "{{**{h}}}['k']",
    "next(iter({h}.values()))", "list({h}.values())[0]", "(lambda k, **rest: k)(**{h})",
    "[v for k, v in {h}.items() if k == 'k'][0]", "{{k: v for k, v in {h}.items()}}['k']",
    "operator.itemgetter('k')({h})", "{h}.__getitem__('k')", "({h}['k'] if 'k' in {h} else 3)",
    "{h}[list({h})[0]]", "{h}[min({h})]", "[{h}[k] for k in {h}][0]",
    "dict(zip({h}, {h}.values()))['k']")
DICT_WRITES = (
    "{h}['k'] = {v}", "{h}.update(k={v})", "{h}.update([('k', {v})])",
    "{h}.pop('k'); {h}['k'] = {v}", "{h}.clear(); {h}.update(k={v})", "{h}.__setitem__('k', {v})",
    "operator.ior({h}, {{'k': {v}}})", "operator.setitem({h}, 'k', {v})",
)
SEQUENCE_READS = (
    "{h}[0]", "{h}[-2]", "list({h})[0]", "[v for v in {h}][0]", "[*{h}][0]",
    "(lambda v, *rest: v)(*{h})", "next(iter({h}))", "operator.itemgetter(0)({h})",
    "{h}.__getitem__(0)", "tuple({h})[0]", "[v for i, v in enumerate({h}) if i == 0][0]",
    "[a for a, b in zip({h}, range(2))][0]", "list(reversed(list({h})))[-1]", "{h}[len({h}) - 2]",
    "list(map(lambda v: v, {h}))[0]", "functools.reduce(lambda a, b: a, {h})",
    "list(itertools.islice({h}, 1))[0]")
LIST_WRITES = (
    "{h}[0] = {v}", "{h}.__setitem__(0, {v})", "{h}.insert(0, {v}); {h}.pop(1)",
    "{h}.pop(0); {h}.insert(0, {v})", "{h}.clear(); {h}.extend([{v}, 7])",
)
NAMED_READS = (
    "{h}.k", "getattr({h}, 'k')", "getattr({h}, 'k', 4)", "operator.attrgetter('k')({h})",
    "({h}.k if hasattr({h}, 'k') else 2)", "[o.k for o in [{h}]][0]",
)
NAMED_WRITES = ("{h}.k = {v}", "setattr({h}, 'k', {v})", "{h}.__setattr__('k', {v})")
DICT_OF_NAMES_READS = ("vars({h})['k']", "{h}.__dict__['k']", "vars({h}).get('k')",
                       "{h}.__getattribute__('k')")
DICT_OF_NAMES_WRITES = ("vars({h})['k'] = {v}", "{h}.__dict__.update(k={v})",
                        "object.__setattr__({h}, 'k', {v})", "{h}.__dict__ = dict(k={v})",
                        "del {h}.k; {h}.k = {v}")


def named(made, defined, reads=(), writes=NAMED_WRITES + DICT_OF_NAMES_WRITES,
          base=NAMED_READS):
    return Holder(made, base + reads, writes, defined)


HOLDERS = {
    "dict": Holder("{{'k': {v}, 'other': 7}}", MAPPING_READS + (
        "{h}.setdefault('k', 1)", "{h}.copy()['k']", "({h} | {{}})['k']", "('k' and {h}['k'])"),
        DICT_WRITES),
    "dict by number": Holder("{{1: {v}, 2: 7}}", ("{h}[1]", "{h}.get(1)", "{h}[True]", "{h}[1.0]"),
                             ("{h}[1] = {v}", "{h}[True] = {v}", "{h}.update({{1: {v}}})")),
    "dict by tuple": Holder("{{('a', 1): {v}}}", ("{h}['a', 1]", "{h}[('a', 1)]"),
                            ("{h}['a', 1] = {v}",)),
    "ordered dict": Holder("collections.OrderedDict(k={v}, other=7)", MAPPING_READS, DICT_WRITES),
    "default dict": Holder("collections.defaultdict(lambda: 7, k={v}, other=2)",
                           MAPPING_READS, DICT_WRITES),
    "chain map": Holder("collections.ChainMap({{'k': {v}}}, {{'k': 7}})", (
        "{h}['k']", "{h}.get('k')", "{h}.maps[0]['k']"),
        ("{h}['k'] = {v}", "{h}.maps[0]['k'] = {v}", "{h}.maps.insert(0, {{'k': {v}}})")),
    "proxy": Holder("types.MappingProxyType({{'k': {v}, 'other': 7}})", MAPPING_READS),
    "user dict": Holder("collections.UserDict(k={v}, other=7)", MAPPING_READS,
                        DICT_WRITES[:3] + ("{h}.data['k'] = {v}",)),
    "kind of dict": Holder("DictOf(k={v}, other=7)", MAPPING_READS + (
        "({h}['k'] if {h} else 3)", "({h} or {{'k': 5}})['k']", "((not {h}) or {h}['k'])"),
        DICT_WRITES + ("{h}.clear()",), """
class DictOf(dict):
    def __missing__(self, key):
        return 7
"""),
    "list": Holder("[{v}, 7]", SEQUENCE_READS, LIST_WRITES + ("{h}[:1] = [{v}]",
                                                             "{h}[:] = [{v}, 7]",
                                                             "{h}.reverse(); {h}[0] = {v}")),
    "tuple": Holder("({v}, 7)", SEQUENCE_READS),
    "kind of list": Holder("ListOf([{v}, 7])", SEQUENCE_READS, LIST_WRITES, """
class ListOf(list):
    pass
"""),
    "deque": Holder("collections.deque([{v}, 7])", (
        "{h}[0]", "list({h})[0]", "next(iter({h}))", "[*{h}][0]"),
        ("{h}[0] = {v}", "{h}.popleft(); {h}.appendleft({v})")),
    "kind of deque": Holder("QueueOf([{v}, 7])", (
        "{h}[0]", "list({h})[0]", "next(iter({h}))", "[*{h}][0]", "({h}[0] if {h} else 3)",
        "{h}[len({h}) - 2]", "(lambda v, *rest: v)(*{h})", "({h} or [5])[0]"),
        ("{h}[0] = {v}", "{h}.popleft(); {h}.appendleft({v})", "{h}.appendleft({v})"), """
class QueueOf(collections.deque):
    pass
"""),
    "named tuple": Holder("Pair({v}, 7)", SEQUENCE_READS[:6] + NAMED_READS + (
        "{h}._asdict()['k']",), (), "Pair = collections.namedtuple('Pair', 'k other')"),
    "namespace": named("types.SimpleNamespace(k={v})", "", DICT_OF_NAMES_READS),
    "python module": Holder("module_of(k={v})", NAMED_READS + DICT_OF_NAMES_READS[:3], NAMED_WRITES
                            + ("vars({h})['k'] = {v}",), """
def module_of(**given):
    made = types.ModuleType('made')
    vars(made).update(given)
    return made
"""),
    "object": named("Plain({v})", """
class Plain:
    def __init__(self, k):
        self.k = k
    def got(self):
        return self.k
    def __call__(self):
        return self.k
    def __getitem__(self, name):
        return getattr(self, name)
    def __iter__(self):
        yield self.k
    def __enter__(self):
        return self.k
    def __exit__(self, *_):
        pass
""", DICT_OF_NAMES_READS + ("{h}.got()", "{h}()", "{h}['k']", "list({h})[0]", "{h}.got.__call__()",
                            "operator.methodcaller('got')({h})", "{h}.__class__.got({h})",
                            "entered({h})")),
    "slots": named("Slotted({v})", """
class Slotted:
    __slots__ = ('k', '__weakref__')
    def __init__(self, k):
        self.k = k
""", ("Slotted.k.__get__({h})",), NAMED_WRITES + (
        "del {h}.k; {h}.k = {v}", "Slotted.k.__set__({h}, {v})")),
    "dataclass": named("Data({v})", """
@dataclasses.dataclass
class Data:
    k: object
    other: int = 7
""", DICT_OF_NAMES_READS + ("dataclasses.astuple({h})[0]", "dataclasses.replace({h}).k",
                            "next(getattr({h}, n.name) for n in dataclasses.fields({h}))",)),
    "frozen dataclass": Holder("Frozen({v})", NAMED_READS,
                               ("object.__setattr__({h}, 'k', {v})",), """
@dataclasses.dataclass(frozen=True)
class Frozen:
    k: object
"""),
    "property": named("Proper({v})", """
class Proper:
    def __init__(self, k):
        self._k = k
    @property
    def k(self):
        return self._k
    @k.setter
    def k(self, value):
        self._k = value
""", ("{h}._k", "type({h}).k.fget({h})"), NAMED_WRITES + ("{h}._k = {v}", "vars({h})['_k'] = {v}")),
    "cached property": named("Cached({v})", """
class Cached:
    def __init__(self, k):
        self._k = k
    @functools.cached_property
    def k(self):
        return self._k
""", (), ("{h}._k = {v}", "{h}._k = {v}; vars({h}).pop('k', None)", "{h}.k = {v}")),
    "getattr": named("Answering({v})", """
class Answering:
    def __init__(self, k):
        self.kept = {'k': k}
    def __getattr__(self, name):
        if name in vars(self).get('kept', ()):
            return vars(self)['kept'][name]
        raise AttributeError(name)
""", (), ("{h}.kept['k'] = {v}", "{h}.kept = {{'k': {v}}}", "{h}.k = {v}")),
    "getattribute": named("Always({v})", """
class Always:
    def __init__(self, k):
        self.kept = k
    def __getattribute__(self, name):
        return object.__getattribute__(self, 'kept' if name == 'k' else name)
""", (), ("{h}.kept = {v}", "vars({h})['kept'] = {v}")),
    "slot of a descriptor": named("Described({v})", """
class Field:
    def __set_name__(self, owner, name):
        self.name = '_' + name
    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name)
    def __set__(self, instance, value):
        setattr(instance, self.name, value)
class Described:
    k = Field()
    def __init__(self, k):
        self.k = k
""", (), NAMED_WRITES + ("{h}._k = {v}",)),
    "class": named("class_of({v})", """
def class_of(k):
    return type('Made', (), {'k': k})
""", ("{h}().k", "vars({h})['k']", "{h}.__dict__['k']"), NAMED_WRITES[:2] + (
        "type.__setattr__({h}, 'k', {v})",)),
    "base class": named("below({v})()", """
def below(k):
    return type('Below', (type('Above', (), {'k': k}),), {})
""", ("type({h}).k", "super(type({h}), {h}).k", "{h}.__class__.__mro__[1].k"),
        ("type({h}).k = {v}", "type({h}).__mro__[1].k = {v}", "{h}.k = {v}",
         "type({h}).__bases__ = (type('New', (), {{'k': {v}}}),)", "{h}.__class__ = below({v})")),
    "method": Holder("class_with({v})()", ("{h}.k()", "type({h}).k({h})", "{h}()"),
                     ("type({h}).k = lambda self, kept={v}: kept",
                      "{h}.k = lambda kept={v}: kept"), """
def class_with(k):
    class Made:
        def k(self):
            return k
        def __call__(self):
            return self.k()
    return Made
"""),
    "nn module": named("Part({v})", """
class Part(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
    def forward(self, y=None):
        return self.k
""", ("(vars({h}).get('k', None) if 'k' in vars({h}) else {h}.k)", "{h}()"), NAMED_WRITES),
    "closure": Holder("held({v})[0]", ("{h}()", "{h}.__closure__[0].cell_contents"),
                      ("{h}.__closure__[0].cell_contents = {v}",), """
def held(k):
    def got():
        return k
    return got, k
"""),
    "default": Holder("defaulted({v})", ("{h}()", "{h}.__defaults__[0]"),
                      ("{h}.__defaults__ = ({v},)",), """
def defaulted(given):
    def got(k=given):
        return k
    return got
"""),
    "keyword default": Holder("keyed({v})", ("{h}()", "{h}.__kwdefaults__['k']"),
                              ("{h}.__kwdefaults__ = dict(k={v})",
                               "{h}.__kwdefaults__['k'] = {v}"), """
def keyed(given):
    def got(*, k=given):
        return k
    return got
"""),
    "attribute of a function": named("with_name({v})", """
def with_name(k):
    def got():
        return 1
    got.k = k
    return got
""", DICT_OF_NAMES_READS[:3], NAMED_WRITES),
    "partial": Holder("functools.partial(same, {v})", ("{h}()", "{h}.args[0]"),
                      ("{h}.__setstate__((same, ({v},), {{}}, {{}}))",), """
def same(k):
    return k
"""),
    "generator function": Holder("yielding({v})", ("next({h}())", "list({h}())[0]",
                                                   "[*{h}()][0]", "[v for v in {h}()][0]"),
                                 ("{h}.__closure__[0].cell_contents = {v}",), """
def yielding(k):
    def got():
        yield k
    return got
"""),
    "weak reference": Holder("weak({v})", ("{h}().k",), ("{h}().k = {v}",), """
KEPT = []
class Kept:
    pass
def weak(k):
    KEPT.append(Kept())
    KEPT[-1].k = k
    return weakref.ref(KEPT[-1])
"""),
    "context variable": Holder("variable({v})", ("{h}.get()",), ("{h}.set({v})",), """
def variable(k):
    made = contextvars.ContextVar('k')
    made.set(k)
    return made
"""),
    "object array": Holder("filled({v})", ("{h}[0]", "{h}.tolist()[0]", "{h}.item(0)"),
                           ("{h}[0] = {v}",), """
def filled(k):
    made = np.empty(1, dtype=object)
    made[0] = k
    return made
"""),
}
ENTERED = """
def entered(h):
    with h as k:
        return k
"""
