"""The values that are held, and what a function does with one: `{p}` reads it, `y` is a tensor."""

from typing import NamedTuple


class Leaf(NamedTuple):
    """made: expressions. used: statements that change `y`. changed: statements that change a value
    in place, where `{p}` is the path to it."""

    made: tuple
    used: tuple
    changed: tuple = ()


NUMBER = Leaf(
    ("2", "3", "2.0", "-1", "1", "True", "1.0", "0.0", "-0.0", "float('nan')", "np.float32(2)",
     "np.int64(3)", "2.0000000000000004", "0", "10**30", "1e300"),
    ("y = y * {p}", "y = y + {p}", "y = {p} - y", "y = y * 2 if {p} > 1.5 else y + 1",
     "y = y.sin() if {p} else y.cos()", "y = y * math.copysign(1.0, {p})", "y = y + len(str({p}))",
     "y = y.clamp(max={p})", "y = y * (1 if {p} == 2 else 4)", "y = y * (type({p}) is int) + 1",
     "for n in range(int(min(abs({p}), 4))): y = y.sin()\n", "y = y * int({p} != {p}) + 1",
     "y = y * (3 if isinstance({p}, float) else 5)", "y = y * len(f'{{{p}!r}}')",
     "y = y.double() + {p}", "y = y + round(float({p}) * 2, 1)", "y = y * min({p}, 3)",
     "y = y * (1 if {p} in (1, 3) else 2)", "y = y + bool({p} and 3)", "y = y * (-{p})",
     "y = y + {{1: 2, 3: 4}}.get({p}, 6)", "y = y ** min({p}, 2)", "y *= {p}"))

TEXT = Leaf(("'sin'", "'cos'", "'tanh'", "'Sin'", "str('si' + 'n')", "''", "'exp'"),
    (
        "y = getattr(y, {p} or 'abs')() if {p} != 'Sin' else y",
        "y = y * (2 if {p} == 'sin' else 3)", "y = y * len({p})",
        "y = y + (2 if {p}.startswith('s') else 1)", "y = y + hash({p} == 'cos')",
        "y = y * (2 if {p} in ('sin', 'cos') else 5)", "y = y * len(f'{{{p}}}..')",
        "y = y + sum(map(ord, {p}))", "y = y + (3 if 's' in {p} else 4)",
        "y = y * (2 if {p} is not None and {p}.islower() else 7)",
        "match {p}:\n    case 'sin': y = y.sin()\n    case 'cos' | 'tanh': y = y.cos()\n    case "
        "_: y = y + 1", "y = y + {{'sin': 2, 'cos': 3}}.get({p}, 1)"))

TRUTH = Leaf(("None", "True", "False", "0", "()", "[]", "''", "[0]", "1", "{{}}"),
    (
        "y = y.sin() if {p} else y.cos()", "y = y * (2 if {p} is None else 3)",
        "y = y * (2 if {p} is not None else 3)", "y = y + (not {p})",
        "y = y * (2 if {p} is True else 3)", "while {p}:\n    y = y * 2\n    break",
        "y = y + bool({p} or False)",
        "if {p} is None: y = y.sin()\nelif not {p}: y = y.cos()\nelse: y = y.tanh()",
        "y = y.sum(0, keepdim=bool({p}))", "y = y * (2 if {p} == 0 else 3)",
        "assert not {p}\ny = y * 2", "y = y * len(repr({p}))", "y = y + any([{p}]) + all([{p}])"))

TENSOR = Leaf(
    ("tl.tensor([1.0, 2.0, 3.0])", "tl.tensor([-1.0, 0.5, 2.0])", "tl.tensor(2.0)", "tl.ones(3)",
     "tl.ones(3, dtype=tl.float64)", "tl.tensor([1, 2, 3])", "tl.ones(2, 3)",
     "tl.ones(3, requires_grad=True)", "tl.arange(6.0)[::2]", "tl.tensor([1.0]).expand(3)",
     "nn.Parameter(tl.full((3,), 0.5))"),
    ("y = y * {p}", "y = y + {p}", "y = y + {p}.shape[-1] if {p}.ndim else y", "y = y * {p}.sum()",
     "y = y * (2 if {p}.requires_grad else 3)", "y = y.to({p}.dtype)", "y = y + {p}.numel()",
     "y = y * {p}.detach()", "y = y + ({p} * 2).mean()", "y = {p}.where(y > 0, y)",
     "y = y * (2 if {p}.dtype is tl.float32 else 3)", "y = y + {p}.stride(-1) if {p}.ndim else y"),
    ("{p}.data.mul_(2)", "{p}.data.add_(1)", "{p}.data = {p}.data * 3", "{p}.requires_grad_(True)",
     "{p}.detach()[..., :1].fill_(4)", "{p}.data = tl.ones(3)", "{p}.detach_()"))

FUNCTION = Leaf(
    (
        "tl.sin", "tl.cos", "(lambda z: z * 2)", "(lambda z: z + 1)", "doubled", "tripled",
        "functools.partial(tl.mul, other=2)", "tl.Tensor.tanh", "nn.Sigmoid()", "Times(2)",
        "Times(3)", "Times(2).call", "math_of"),
    (
        "y = {p}(y)", "y = (lambda g: g(y))({p})",
        "y = functools.reduce(lambda a, g: g(a), [{p}] * 2, y)", "y = list(map({p}, [y]))[0]",
        "y = y * (2 if callable({p}) else 3)", "y = y * (2 if {p} is tl.sin else 3)",
        "y = y * len(getattr({p}, '__name__', 'no'))"),
    (
        "doubled.__code__ = tripled.__code__", "doubled.__code__ = (lambda z: z * 5).__code__",
        "Times.__call__ = lambda self, z: z * 7", "Times.call = lambda self, z: z + self.by",
        "if isinstance({p}, Times): {p}.by = 9",       # no function of the library, which all share
        "globals().update(doubled=tripled)"))

SEQUENCE = Leaf(
    (
        "[1, 2, 3]", "[2, 1, 3]", "[1, 2]", "[]", "(1, 2, 3)", "[1, 2.0, 3]", "list(range(5))",
        "[True, 2, 3]", "[1, [2], 3]", "collections.deque([1, 2, 3])"),
    (
        "for k in {p}:\n    y = y + (k if type(k) is not list else k[0])", "y = y * len({p})",
        "y = y + sum(k for k in {p} if type(k) is not list)", "y = y * (2 if 2 in {p} else 3)",
        "y = y + ({p}[-1] if {p} else 5)", "first, *rest = [*{p}, 0]\ny = y * (first + len(rest))",
        "y = y + max([0, *[k for k in {p} if type(k) is not list]])",
        "y = y * (2 if {p} == [1, 2, 3] else 3)", "y = y * len([*{p}, *{p}])",
        "y = y + sum(i * 2 for i, k in enumerate({p}))", "y = y * len(list({p})[1:])",
        "y = y + sum(a for a, b in zip(range(9), {p}))", "y = y * (2 if {p} else 3)",
        "y = y + len(str({p}))", "y = y * len(sorted({p}, key=str))", "y = y * len({p} + {p})",
        "y = y * (2 if not {p} else 1)",
        "match {p}:\n    case [a, b, c]: y = y * 2\n    case [a, *_]: y = y * 3\n    case _: y = "
        "y * 4",
        "k = iter({p})\ny = y + (next(k, 0) if True else 0) * 1.0 if {p} and type(list({p})[0]) "
        "is not list else y",
        "for k in reversed({p}):\n    if k == 2: break\n    y = y.sin()\nelse:\n    y = y.cos()"),
    (
        "{p}.append(4)", "{p}.insert(0, 9)", "{p}.pop()", "{p}[0] = 5", "{p}.reverse()",
        "{p}.clear()", "del {p}[0]", "{p}.extend([7, 8])", "operator.iadd({p}, [1])",
        "{p}[0] = {p}[0] * 1.0", "{p}[1].append(2)"))

MAPPING = Leaf(
    (
        "dict(a=1, b=2)", "dict(b=2, a=1)", "dict(a=1)", "dict()", "dict(a=1, b=2, c=3)",
        "dict(a=1.0, b=2)", "collections.Counter('aab')", "collections.OrderedDict(a=1, b=2)"),
    (
        "for k in {p}:\n    y = y * 2 + ord(k)", "for k, v in {p}.items():\n    y = y * v + len(k)",
        "y = y + sum({p}.values())", "y = y * len({p})", "y = y * (2 if 'b' in {p} else 3)",
        "y = y + {p}.get('b', 7)",
        "y = y + (lambda a=5, b=6, **more: a * 10 + b + len(more))(**{p})",
        "y = y * (2 if {p} == dict(a=1, b=2) else 3)", "y = y + len(''.join({p}))",
        "y = y + list({p}.values())[-1] if {p} else y",
        "try:\n    y = y * {p}['b']\nexcept KeyError:\n    y = y + 100",
        "match {p}:\n    case dict(a=1): y = y\n    case {{'b': v}}: y = y * v\n    case _: y = "
        "y + 50", "y = y + {p}.get('c', 0) + {p}.get('zz', 1)",
        "y = y * len({p}.keys() & {{'a', 'b'}})", "y = y + (2 if {p} else 3)",
        "y = y + sum(ord(k) for k in sorted({p}))"),
    (
        "{p}['c'] = 5", "{p}['a'] = 7", "{p}.pop('a')", "{p}.clear()", "{p}.update(b=9)",
        "del {p}['b']", "{p}['zz'] = 8", "{p}['a'] = {p}.pop('a')", "{p}.setdefault('c', 2)"))

SET = Leaf(
    ("{{1, 2}}", "{{1}}", "set()", "frozenset((1, 2))", "{{1, 2, 3}}"),
    ("y = y * (2 if 2 in {p} else 3)", "y = y * len({p})", "y = y + sum({p})",
     "y = y * (2 if {p} == {{1, 2}} else 3)", "y = y + len({p} & {{1, 3}})", "y = y + bool({p})",
     "for k in sorted({p}):\n    y = y * k"),
    ("{p}.add(5)", "{p}.discard(2)", "{p}.clear()", "{p}.update((2, 7))"))

ARRAY = Leaf(
    ("np.array([1.0, 2.0, 3.0], 'float32')", "np.array([4.0, 5.0, 6.0])", "np.arange(3)",
     "np.array(2.0)", "np.arange(6.0)[::2]"),
    ("y = y * float({p}.ravel()[0])", "y = y * {p}", "y = y + tl.from_numpy({p})",
     "y = y + tl.as_tensor({p})", "y = y + tl.tensor({p})", "y = y + float({p}.sum())",
     "y = y * {p}.size", "y = y * (2 if {p}.max() > 3 else 1)", "y = y + sum({p}.ravel().tolist())",
     "y = y * len({p}.shape)", "y = y + sum(float(k) for k in {p}.ravel())"),
    ("{p}[...] = 5", "{p}.ravel()[0] = 9", "operator.iadd({p}, 1)", "{p}.fill(3)"))

KIND = Leaf(
    ("tl.float64", "tl.float32", "tl.int64"),
    ("y = y.to({p})", "y = y + tl.ones(3, dtype={p})", "y = y * (2 if {p} is tl.float64 else 3)",
     "y = y * (2 if {p}.is_floating_point else 3)", "y = y.sum(dtype={p})"))

CLASS = Leaf(
    (
        "Times", "Plus",
        "type('Times', (), dict(__init__=lambda s, by: None, __call__=lambda s, z: z * 4))"),
    (
        "y = {p}(2)(y)", "y = y * (2 if isinstance(Times(1), {p}) else 3)",
        "y = y + len({p}.__name__)", "y = y * (2 if issubclass({p}, Times) else 3)",
        "y = y * (2 if {p} is Times else 3)"),
    (
        "{p}.__call__ = lambda self, z: z * 11",
        "{p}.__init__ = lambda self, by: setattr(self, 'by', 8)",
        "{p}.__new__ = lambda cls, by: (lambda z: z * 6)"))

MODULE = Leaf(
    ("linear(1)", "linear(2)", "nn.Sequential(linear(1), nn.Tanh())", "nn.Dropout(0.5)",
     "nn.Identity()", "nn.LayerNorm(3)", "nn.BatchNorm1d(3)"),
    ("y = {p}(y) if type({p}) is not nn.BatchNorm1d else {p}(y.expand(2, 3))",
     "y = y * (2 if {p}.training else 3)", "y = y * (len(list({p}.parameters())) + 1)",
     "y = y * (len({p}.state_dict()) + 1)", "y = y + sum(k.sum() for k in {p}.parameters())"),
    ("{p}.train()", "{p}.eval()", "[k.data.mul_(2) for k in {p}.parameters()]",
     "{p}.load_state_dict({{k: v * 3 for k, v in {p}.state_dict().items()}})",
     "{p}.append(nn.ReLU())", "{p}[1] = nn.ReLU()", "{p}.weight = nn.Parameter(tl.ones(3, 3))",
     "{p}.p = 0.1", "{p}.eps = 0.5", "{p}.bias = None", "{p}.requires_grad_(False)",
     "{p}.register_forward_hook(lambda m, a, out: out * 2)", "{p}.forward = lambda z: z * 3",
     "vars({p})['forward'] = lambda z: z * 4", "{p}.double().float()", "{p}._buffers.clear()",
     "{p}.momentum = 0.9", "type({p}).extra = 3", "{p}.__class__ = nn.Identity"))

CONSUMED = Leaf(
    (
        "iter([2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])", "itertools.count(1)", "Counting()",
        "random.Random(1)", "np.random.RandomState(2)", "[0]", "dict(n=0)",
        "types.SimpleNamespace(n=0)"),
    (
        "y = y * (next({p}, 1.0) if hasattr({p}, '__next__') else 2)",
        "y = y * ({p}.random() if hasattr({p}, 'random') else 2)",
        "y = y * ({p}.rand() if hasattr({p}, 'rand') else 2)",
        "y = y * ({p}() if callable({p}) else 2)",
        "k = {p}\nif isinstance(k, list): k[0] += 1\ny = y * (k[0] if isinstance(k, list) else 2)",
        "k = {p}\nif isinstance(k, dict): k['n'] += 1\ny = y + (k['n'] if isinstance(k, dict) "
        "else 2)",
        "k = {p}\nif hasattr(k, 'n') and not callable(k):\n    k.n = getattr(k, 'n') + 1\n    y "
        "= y * k.n",
        "k = {p}\nif hasattr(k, 'n') and not callable(k):\n    y = y + (2 if k.n == 0 else 3)\n  "
        "  k.n = 1",
        "k = {p}\nif isinstance(k, list): k.append(len(k))\ny = y + (len(k) if isinstance(k, "
        "list) else 2)",
        "k = {p}\nif isinstance(k, dict) and 'kept' not in k: k['kept'] = y.detach()\ny = y + "
        "(k['kept'] if isinstance(k, dict) else 2)", "y = y * random.random()",
        "y = y * np.random.rand()", "y = y + tl.rand(3)",
        "y = y * int(os.environ.get('DRAWN', '2'))", "y = y + (2 if 'DRAWN' in os.environ else 3)"),
    ("os.environ['DRAWN'] = '5'", "os.environ.pop('DRAWN', None)", "random.seed(9)"))

LEAVES = {name.lower(): value for name, value in list(globals().items())
          if isinstance(value, Leaf)}
DEFINED = """
def doubled(z):
    return z * 2
def tripled(z):
    return z * 3
def math_of(z):
    return z * math.pi
class Times:
    def __init__(self, by):
        self.by = by
    def __call__(self, z):
        return z * self.by
    def call(self, z):
        return z * self.by * 2
class Plus:
    def __init__(self, by):
        self.by = by
    def __call__(self, z):
        return z + self.by
class Counting:
    n = 0
    def __call__(self):
        self.n += 1
        return self.n
def linear(seed):
    made = nn.Linear(3, 3)
    with tl.no_grad():
        made.weight.copy_(tl.arange(9.0).reshape(3, 3) * 0.1 * seed)
        made.bias.fill_(0.5)
    return made
"""
