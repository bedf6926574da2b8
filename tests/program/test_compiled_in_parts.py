"""Functions in parts: what lies around a statement that can't be captured is replayed."""

import contextlib
import linecache
import sys
import warnings
from types import SimpleNamespace

import pytest

import tensorlib as tl
from benchmarks import ordinary
from cases import each
from tensorlib import nn

LOG = []


def plain(x):
    """A result as data, to the bit."""
    return x.detach().numpy().tobytes() if isinstance(x, tl.Tensor) else repr(x)


@each("name", ordinary.KINDS)
def test_ordinary_functions_are_captured_whole_or_in_parts(name):
    logs = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for wrap in (lambda f: f, tl.compile):
            f, args = ordinary.made(name)
            wrapped = wrap(f)
            logs.append([plain(wrapped(*args)) for _ in range(4)])
    assert logs[0] == logs[1]
    assert ordinary.captured(wrapped) != "none"


def in_parts(f):
    """A function compiled, which is expected to run in parts."""
    compiled = tl.compile(f)
    calls = []

    def call(*args):
        if calls:
            return compiled(*args)
        calls.append(1)
        with pytest.warns(RuntimeWarning, match="runs in parts: ") as told:
            found = compiled(*args)
        assert len(told) == 1
        return found

    call.compiled = compiled
    return call


def agree(f, *given):
    """A function in parts gives what it gives eagerly, for each of some arguments, twice."""
    compiled = in_parts(f)
    for args in [*given, *given]:
        args = args if isinstance(args, tuple) else (args,)
        wanted = f(*args)
        assert repr(compiled(*args)) == repr(wanted)
    return compiled.compiled


def early(x, flag):
    y = x * 2
    if y.sum() > 100:
        return y, "large"
    if flag:
        z = y + 1
        float(z.sum())
        return z * 2, flag
    try:
        z = y.reshape(5)
    except RuntimeError as error:
        z = y - len(str(error)[:3])
    return z.tanh()


def test_returns_and_branches_before_and_after():
    x = tl.ones(3)
    agree(early, (x, False), (x, True), (x * 100, False), (tl.ones(5), False))


def loops(x, n):
    total, last = 0.0, None
    for i in range(n):
        if i == 2:
            continue
        x = (x * 2).tanh()
        last = x + i
        total += last.sum().item()
        if total > 6:
            break
    else:
        x = x - 1
    while total > 1:
        total = total / 2
        x = x + 1
        int(x.sum())
    return x, total, last


def test_variables_that_loops_carry_on():
    agree(loops, (tl.ones(3), 1), (tl.ones(3), 5), (tl.zeros(3), 4), (tl.ones(2), 0))


def with_functions(x):
    scale = 2.0
    y = x * scale

    def scaled(z):
        return z * scale

    float(y.sum())
    scale = 3.0
    parts = [scaled(v) for v in (x, y)]
    weighted = sum(v * scale for v in parts)
    return weighted + (lambda v: v - scale)(y)


def test_a_part_that_is_taken_apart_once_more():
    kept = [iter([1.0])]

    def f(x):
        y = x * 1
        k = kept[0]
        if hasattr(k, "n") and not callable(k):        # what a namespace does is not known
            y = y + 2
        exec("", {})
        return y * 3

    compiled = tl.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in (kept[0], kept[0], *(SimpleNamespace(n=0) for _ in range(4)), kept[0]):
            kept[0] = k
            assert compiled(tl.ones(2)).tolist() == f(tl.ones(2)).tolist()


def test_several_statements_on_a_line():
    def f(x):
        y = x * 2; u = x * 3; exec("", {}); z = u + 1            # noqa: E702
        for i in range(3): z = z * 2; LOG.append(z.sum().item()); y = y + z      # noqa: E701, E702
        if z.sum().item() > 0: y = y * 2; z = z - y              # noqa: E701, E702
        return f"{y.sum() * 1:.3f} {(z * 2).sum():.3f}"

    agree(f, tl.ones(2), tl.zeros(2))


def test_variables_that_functions_inside_share():
    """Nobody takes a function apart in which a variable of an inner function is set anew."""
    f = tl.compile(with_functions)
    with pytest.warns(RuntimeWarning, match="with_functions runs eagerly: float"):
        f(tl.ones(3))
    assert f(tl.ones(3)).tolist() == with_functions(tl.ones(3)).tolist()


def unbound(x):
    if x.shape[0] > 2:
        y = x + 1
    float(x.sum())
    return y * 2


def test_a_variable_without_a_value_raises_as_it_does():
    f = tl.compile(unbound)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f(tl.ones(3)).tolist() == f(tl.ones(3)).tolist() == [4.0] * 3
        for _ in range(3):
            with pytest.raises(UnboundLocalError, match="y"):
                f(tl.ones(2))


class Base:
    def shifted(self, x):
        return x + self.__shift

    __shift = 1.0


class Model(Base):
    __scale = 3.0

    def call(self, x, *more, by=1, **named):
        y = x * self.__scale * by
        LOG.append(y.sum().item())
        y = super().shifted(y) + sum(more) + len(named)
        return y.tanh() * self.__scale


def test_methods_private_names_super_and_all_kinds_of_parameters():
    model = Model()
    f = tl.compile(model.call)
    with pytest.warns(RuntimeWarning, match="call runs in parts"):
        f(tl.ones(2))
    for args, named in (((), {}), ((1, 2), {}), ((1,), {"by": 3}), ((), {"other": 4})):
        x, length = tl.arange(2.0), len(LOG)
        wanted = model.call(x, *args, **named)
        for _ in range(2):
            assert f(x, *args, **named).tolist() == wanted.tolist()
        assert len(LOG) == length + 3
    Model._Model__scale = 5.0
    try:
        assert f(tl.ones(2)).tolist() == model.call(tl.ones(2)).tolist()
    finally:
        Model._Model__scale = 3.0


def recursive(x, depth=3):
    x = x * 2
    if float(x.sum()) < 0 or depth == 0:
        return x
    return recursive(x, depth - 1) + 1


def test_a_function_that_calls_itself():
    agree(recursive, tl.ones(2))


def test_another_code_and_other_defaults():
    def f(x, by=2):
        y = x * by
        float(y.sum())
        return y + 1

    def g(x, by=2):
        return x - by

    compiled = in_parts(f)
    assert compiled(tl.ones(1)).item() == compiled(tl.ones(1)).item() == 3
    f.__defaults__ = (5,)
    assert compiled(tl.ones(1)).item() == 6
    f.__code__ = g.__code__
    assert compiled(tl.ones(1)).item() == -4


class Doubling(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        y = self.inner(x) * 2
        LOG.append(float(y.sum()))
        return y.tanh()


def test_hooks_and_a_new_forward_of_a_module_in_parts():
    model = Doubling()
    compiled, x = tl.compile(model), tl.ones(1, 2)
    with pytest.warns(RuntimeWarning, match="Doubling runs in parts"):
        compiled(x)
    assert compiled(x).tolist() == model(x).tolist()
    handle = model.register_forward_hook(lambda module, args, out: out * 3)
    assert compiled(x).tolist() == model(x).tolist()
    handle.remove()
    assert compiled(x).tolist() == model(x).tolist()
    model.forward = lambda x: x - 1
    assert compiled(x).tolist() == [[0.0, 0.0]]


def test_gradients_pass_through_the_parts():
    w = tl.tensor([2.0, 3.0], requires_grad=True)

    def f(x):
        y = x * w
        size = y.sum().item()
        z = (y * size).sin()
        return z, y

    compiled = in_parts(f)
    for _ in range(3):
        found = []
        for g in (f, compiled):
            x = tl.tensor([0.5, 1.5], requires_grad=True)
            z, y = g(x)
            slopes = tl.autograd.grad(z.sum() + (y * y).sum(), (x, w), create_graph=True)
            curves = tl.autograd.grad(sum(s.sum() for s in slopes), (x, w))
            found.append([v.tolist() for v in (z, y, *slopes)] + [
                [round(c, 4) for c in v.tolist()] for v in curves])
        assert found[0] == found[1]


def test_lines_of_a_traceback_are_those_of_the_function():
    def f(x):
        y = x * 2
        float(y.sum())
        return y.reshape(7)

    compiled = tl.compile(f)
    line = f.__code__.co_firstlineno + 3
    assert "reshape(7)" in linecache.getline(__file__, line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(tl.ones(7))
        for _ in range(2):
            with pytest.raises(RuntimeError) as raised:
                compiled(tl.ones(3))
            lines = [x.lineno for x in raised.traceback if str(x.path) == __file__]
            assert line - 1 in lines


def test_what_is_in_no_part_is_an_error_where_all_has_to_be_captured():
    def f(x):
        y = x * 2
        float(y.sum())
        return y
    with pytest.raises(tl.program.CaptureError, match="float: the value of a tensor"):
        tl.compile(f, fullgraph=True)(tl.ones(2))


# ---- state of Python and of modules --------------------------------------------------------------

COUNT = 0


def test_statements_that_bind_globals_are_in_no_part():
    def f(x):
        global COUNT
        y = x * 2
        float(y.sum())
        COUNT = COUNT + 1
        z = y * COUNT
        float(z.sum())
        COUNT = 10 * COUNT
        return z + 1

    found = []
    for g in (f, tl.compile(f)):
        globals()["COUNT"] = 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append([(plain(g(tl.ones(2))), COUNT) for _ in range(4)])
    assert found[0] == found[1]


def test_statements_before_a_failure_that_is_suppressed():
    def f(x):
        y = x * 2
        with contextlib.suppress(RuntimeError):
            float(y.sum())
            y = y + 1
            y = y.reshape(7)
        return y * 3

    agree(f, tl.ones(2), tl.ones(7), tl.ones(3))


class no_grad:              # named as what lets errors pass, which this does not
    def __enter__(self):
        pass

    def __exit__(self, *_):
        return True


def test_what_suppresses_is_not_known_by_its_name():
    def f(x):
        y = x * 2
        with no_grad():
            float(y.sum())
            y = y + 1
            y = y.reshape(7)
        return y * 3

    def g(x, autocast=no_grad):
        y = x * 2
        with autocast():
            float(y.sum())
            y = y + 1
            y = y.reshape(7)
        return y * 3

    for whole in (f, g):
        agree(whole, tl.ones(2), tl.ones(7), tl.ones(3))


def test_statements_of_a_mode_are_parts():
    def f(x):
        with tl.no_grad():
            y = x * 2
            float(y.sum())
            z = y + 1
        return z * 3

    way, = agree(f, tl.ones(2))._entries
    assert len(way.parts.parts) == 3


def test_variables_that_a_loop_binds_and_does_not_read():
    def f(x):
        y = x * 2
        z = y + y
        for i in range(3):
            u = z * i
            if i:
                y = u + 1
            float(u.sum())
        return z + u

    agree(f, tl.ones(2))


@each("use", ["retain", "hook", "grad"])
def test_gradients_of_results_that_others_are_computed_of(use):
    def f(x):
        y = x * 2
        z = y.tanh() * y
        z.tolist()
        if use == "grad":
            return tl.autograd.grad(z.sum(), y)[0], y
        if use == "retain":
            y.retain_grad()
        else:
            y.register_hook(lambda g: g * 3)
        (y.sum() + z.sum()).backward()
        return y.grad if use == "retain" else x.grad, y

    def whole(x):
        y = x * 2
        return y, (y.tanh() * y).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = []
        for wrap in (lambda g: g, tl.compile):
            g, h = wrap(f), wrap(whole)
            for _ in range(3):
                found.append(plain(g(tl.ones(2, requires_grad=True))[0]))
                y, z = h(tl.ones(2, requires_grad=True))
                found.append(plain(tl.autograd.grad(z, y)[0]))
    assert found[:6] == found[6:]


def test_the_gradient_of_an_argument_that_is_set_beside_a_write():
    w = tl.ones(2)

    def f(x):
        y = x * 2
        float(y.sum())
        w.mul_(2)
        x.grad = None
        return y.sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = tl.compile(f)
        for _ in range(3):
            x = tl.ones(2, requires_grad=True)
            x.sum().backward()
            compiled(x).backward()
            assert x.grad.tolist() == [2, 2]
    assert w.tolist() == [8, 8]


def test_writes_by_way_of_data_into_what_the_graph_of_an_earlier_part_keeps():
    w, b = tl.ones(2, requires_grad=True), tl.tensor([5.0, 6.0])

    def f(x):
        y = x * w
        with tl.no_grad():
            y[0] = b[1]
        with tl.no_grad():
            x.data.copy_(b)
        return y,

    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for g in (f, tl.compile(f)):
            for i in range(6):
                x = tl.ones(2) * i
                found.append([plain(tl.autograd.grad(g(x)[0].sum(), w)[0]), plain(x)])
    assert found[:6] == found[6:]


def test_a_function_of_which_no_part_is_replayed_runs_as_it_stands():
    def f(x):
        y = x.numpy()
        return y.sum().item()

    compiled, codes = in_parts(f), set()
    for _ in range(8):
        compiled(tl.ones(3))
    sys.setprofile(lambda frame, *_: codes.add(frame.f_code))
    try:
        found = compiled(tl.ones(3))
    finally:
        sys.setprofile(None)
    assert found == 3.0
    assert f.__code__ in codes
