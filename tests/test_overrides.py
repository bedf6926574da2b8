"""`__torch_function__`, modes and counters of operations, beside PyTorch where it is there."""

import numpy as np
import pytest
from cases import each
from process import run_forked

import tensorlib as tl
from tensorlib import nn
from tensorlib._core.interpreters.stack import Interpreter
from tensorlib.utils.flop_counter import FlopCounterMode

try:
    import torch
    import torch.utils.flop_counter
except ImportError:
    torch = None

LIBRARIES = [tl] if torch is None else [tl, torch]
ONES = {t: t.ones(2) for t in LIBRARIES}

CALLS = {
    "add": lambda t, x, y: t.add(x, y), "+": lambda t, x, y: x + y, "*": lambda t, x, y: x * 2.0,
    "reflected": lambda t, x, y: 2.0 * x, "matmul": lambda t, x, y: t.matmul(x, y),
    "@": lambda t, x, y: x @ y, "tanh": lambda t, x, y: t.tanh(x), "sum": lambda t, x, y: t.sum(x),
    "cat": lambda t, x, y: t.cat([x, y]), "softmax": lambda t, x, y: t.softmax(x, 0),
    "where": lambda t, x, y: t.where(t.ones(2, 2) > 0, x, y),
    "linear": lambda t, x, y: t.nn.functional.linear(x, y),
    "relu": lambda t, x, y: t.nn.functional.relu(x),
}


def wrapper(t, seen):
    """A class that holds a tensor of library `t`, and notes the functions that it is given."""
    class Wrapper:
        def __init__(self, value):
            self.value = value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__.strip("_"), types))
            return cls(func(*map(plain, args), **(kwargs or {})))

        def __add__(self, other):
            return t.add(self, other)

        def __mul__(self, other):
            return t.mul(self, other)

        def __rmul__(self, other):
            return t.mul(other, self)

        def __matmul__(self, other):
            return t.matmul(self, other)

    def plain(x):
        if isinstance(x, (tuple, list)):
            return type(x)(map(plain, x))
        return x.value if isinstance(x, Wrapper) else x
    return Wrapper


@each("key", CALLS)
def test_a_class_that_is_no_tensor_does_operations(key):
    for t in LIBRARIES:
        seen = []
        kind = wrapper(t, seen)
        x, y = kind(t.ones(2, 2)), t.full((2, 2), 3.0)
        out = CALLS[key](t, x, y)
        assert type(out) is kind and seen and seen[0][1] == (kind,)
        assert out.value.tolist() == CALLS[key](t, x.value, y).tolist()


@pytest.mark.parametrize("write, name", [
    (lambda t, x, y: t.add(x, y, out=t.empty(2, 2)), "add"),
    (lambda t, x, y: t.zeros(2, 2).add_(y), "add_"),
    (lambda t, x, y: t.zeros(2, 2).lerp_(x, y), "lerp_")], ids=["out", "add_", "lerp_"])
def test_a_class_that_is_no_tensor_may_be_what_is_written(write, name):
    for t in LIBRARIES:
        seen = []
        kind = wrapper(t, seen)
        out = write(t, t.ones(2, 2), kind(t.full((2, 2), 3.0)))
        assert type(out) is kind and seen == [(name.strip("_"), (kind,))]
        assert out.value.tolist() == write(t, t.ones(2, 2), t.full((2, 2), 3.0)).tolist()


@each("key", CALLS)
def test_a_subclass_that_overrides_keeps_its_class(key):
    for t in LIBRARIES:
        seen = []

        class Noted(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})

        x = t.ones(2, 2).as_subclass(Noted)
        y = t.full((2, 2), 3.0)
        out = CALLS[key](t, x, y)
        assert type(out) is Noted and seen
        assert out.tolist() == CALLS[key](t, t.ones(2, 2), y).tolist()


def test_functions_are_keys():
    class Own:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return {tl.add: "add", tl.sin: "sin", tl.Tensor.cos: "cos"}.get(func, NotImplemented)

    assert tl.add(Own(), 1) == "add" and tl.ones(2) + Own() == "add"
    assert tl.sin(Own()) == "sin" and tl.cos(Own()) == "cos"
    with pytest.raises(TypeError, match="no implementation found for 'tensorlib.tan' on types"):
        tl.tan(Own())


@pytest.mark.parametrize("t", LIBRARIES)
def test_a_function_that_says_more_than_the_operation_is_given_as_it_was_called(t):
    seen = []

    class Noted(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, len(args), kwargs))
            return super().__torch_function__(func, types, args, kwargs)

    x = t.ones(2, 2).as_subclass(Noted)
    outs = [x.add(x, alpha=2), x.add_(x, alpha=2), x.div(x, rounding_mode="floor"),
            x.clamp(min=1), x.max(), t.max(x, 0)[0], t.max(x, x)]
    assert all(type(out) is Noted for out in outs)
    assert [(name, kwargs) for name, _, kwargs in seen if not name.startswith("__")] == [
        ("add", {"alpha": 2}), ("add_", {"alpha": 2}), ("div", {"rounding_mode": "floor"}),
        ("clamp", {"min": 1}), *[("max", given) for given in (seen[-1][2],) * 3]]
    assert outs[0].tolist() == [[3.0, 3.0]] * 2 and x.tolist() == [[3.0, 3.0]] * 2


@pytest.mark.parametrize("call, wanted", [
    (lambda t, x: t.sum(x), {}), (lambda t, x: t.sum(x, dim=1), {"dim": 1}),
    (lambda t, x: t.prod(x, dim=0, keepdim=True), {"dim": 0, "keepdim": True})])
def test_a_class_that_is_no_tensor_gets_what_was_given_to_a_reduction(call, wanted):
    for t in LIBRARIES:
        class Own:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return kwargs or {}
        assert call(t, Own()) == wanted


@pytest.mark.parametrize("t", LIBRARIES)
def test_a_tensor_as_one_of_a_subclass_has_its_elements_and_its_place_in_the_graph(t):
    class Own(t.Tensor):
        pass

    x = t.ones(3, requires_grad=True)
    y = (x * 2).as_subclass(Own)
    assert type(y) is Own and y.data_ptr() == y.as_subclass(t.Tensor).data_ptr()
    assert type(y.as_subclass(t.Tensor)) is t.Tensor
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    for wrong in (int, 3):
        with pytest.raises(TypeError):
            x.as_subclass(wrong)


def test_a_compiled_function_that_makes_a_tensor_of_a_subclass_runs_eagerly():
    class Own(tl.Tensor):
        pass

    f = tl.compile(lambda x: (x * 2).as_subclass(Own) + 1)
    with pytest.warns(RuntimeWarning, match="as_subclass"):
        f(tl.ones(2))
    for number in (1.0, 2.0):
        assert f(tl.full((2,), number)).tolist() == [2 * number + 1] * 2


@pytest.mark.parametrize("name", ["corrcoef", "trapezoid", "fliplr", "rot90", "std_mean", "hypot"])
def test_functions_made_of_others_are_given_as_they_are_public(name):
    seen = []

    class Noting(tl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = Noting([[1.0, 2.0], [3.0, 4.0]])
    getattr(tl, name)(*(x, x) if name == "hypot" else (x,))
    assert seen == [getattr(tl, name)] and seen[0].__name__ == name


def test_a_mode_does_the_operations_of_its_thread():
    for t in LIBRARIES:
        class Doubled(t.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                out = func(*args, **(kwargs or {}))
                return out * 2 if func is t.add else out

        x = t.ones(2)
        with Doubled():
            assert t.add(x, x).tolist() == [4, 4] and t.sub(x, x).tolist() == [0, 0]
        assert t.add(x, x).tolist() == [2, 2]


def test_what_overrides_is_asked_in_order():
    for t in LIBRARIES:
        class Base:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return cls, types

        class Derived(Base):
            pass

        assert t.add(Base(), Derived()) == (Derived, (Derived, Base))
        assert t.overrides.has_torch_function((1, Base()))
        assert not t.overrides.has_torch_function((1, t.ones(2)))
        assert t.overrides.is_tensor_like(Base()) and not t.overrides.is_tensor_like(1)
        assert not t.is_tensor(Base()) and not t.is_storage(Base())
        assert t.overrides.handle_torch_function(t.add, (Base(),), Base(), 1) == (Base, (Base,))
    assert tl.overrides.resolve_name(tl.add) == "tensorlib.add"


def test_flops_are_those_of_pytorch():
    found = []
    for t in LIBRARIES:
        if t is tl:
            counter = FlopCounterMode(display=False)
        else:
            counter = torch.utils.flop_counter.FlopCounterMode(display=False)
        model = t.nn.Sequential(t.nn.Linear(5, 6), t.nn.Conv1d(7, 2, 3))
        with counter:
            model(t.randn(4, 7, 5)).sum().backward()
            t.baddbmm(t.zeros(2, 3, 4), t.ones(2, 3, 5), t.ones(2, 5, 4))
        found.append(counter.get_total_flops())
    assert set(found) == {7392 + 240}


def test_compiled_functions_are_counted_and_keep_their_bits():
    weight = tl.randn(8, 8)
    f = tl.compile(lambda x: (x @ weight).tanh().sum())
    x = tl.randn(4, 8)
    f(x), f(x)
    with FlopCounterMode(display=False) as counter:
        inside = f(x)
    assert counter.get_flop_counts() == {"Global": {"matmul": 2 * 4 * 8 * 8}}
    assert inside.item() == f(x).item()


def test_modules_are_counted_apart(capsys):
    model = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 2))
    with FlopCounterMode(depth=1) as counter:
        model(tl.ones(3, 5))
    counts = counter.get_flop_counts()
    assert counts["Sequential.0"] == {"linear_with_bias": 180}
    assert counts["Sequential"] == counts["Global"] == {"linear_with_bias": 252}
    text = capsys.readouterr().out
    assert "Sequential" in text and "Sequential.0" not in text


def test_interpreters_end_in_any_order_and_after_errors():
    seen = []

    class Seen(Interpreter):
        def __init__(self, name):
            self.name = name

        def call(self, op, args, kwargs):
            seen.append((self.name, op.name))
            return self.below(op, args, kwargs)

    with pytest.raises(RuntimeError, match="inner"), Seen("outer"), Seen("inner"):
        tl.ones(2).tanh()
        tl.ones(2, 3) @ tl.ones(2, 3)
    tl.ones(2).sin()
    assert seen == [("inner", "tanh"), ("outer", "tanh"), ("inner", "matmul"), ("outer", "matmul")]


class PassesOn(Interpreter):
    """Changes nothing."""

    def call(self, op, args, kwargs):
        return self.below(op, args, kwargs)


@each("draw", [
    lambda x, **options: tl.rand(3, **options), lambda x, **options: tl.randn((3,), **options),
    lambda x, **options: tl.normal(0.0, 1.0, (3,), **options),
    lambda x, **options: tl.randint(5, (3,), dtype=tl.float32, **options),
    lambda x, **options: tl.randperm(3, dtype=tl.float32, **options),
    lambda x, **options: tl.rand_like(x, **options),
    lambda x, **options: tl.randn_like(x, **options),
    lambda x, **options: tl.randint_like(x, 5, **options)], ids=[
        "rand", "randn", "normal", "randint", "randperm", "rand_like", "randn_like",
        "randint_like"])
def test_draws_keep_their_options_under_an_interpreter(draw):
    x = tl.ones(3)
    tl.manual_seed(0)
    plain = draw(x)
    tl.manual_seed(0)
    with PassesOn():
        leaf, absent = draw(x, requires_grad=True, device="cpu"), draw(x, device="meta")
        with pytest.raises(RuntimeError, match="pin_memory=True needs an accelerator"):
            draw(x, pin_memory=True)
    assert leaf.requires_grad and leaf.is_leaf and leaf.tolist() == plain.tolist()
    assert absent.is_meta and absent.shape == (3,)


def test_a_compiled_function_differentiates_by_what_it_draws():
    def slope(x):
        w = tl.randn(3, requires_grad=True)
        (w * w * x).sum().backward()
        return w.grad

    x, compiled = tl.ones(3), tl.compile(slope)
    for _ in range(3):
        tl.manual_seed(0)
        expected = slope(x)
        tl.manual_seed(0)
        assert compiled(x).tolist() == expected.tolist()


def test_a_factor_that_is_no_tensor_and_no_number_of_pythons():
    """The call with an option was offered to its arguments before; what it stands for is not."""
    x = nn.Parameter(tl.ones(2))
    with tl.no_grad():
        x.add_(tl.ones(2), alpha=tl.tensor(2.0))
        x.sub_(tl.ones(2), alpha=np.float32(0.5))
    assert x.tolist() == [2.5, 2.5]


def test_each_key_is_given_to_an_override():
    keys = []

    class Seen(tl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is tl.Tensor.__getitem__:
                keys.append(args[1])
            return super().__torch_function__(func, types, args, kwargs)

    x = tl.ones(2, 3).as_subclass(Seen)
    wanted = [None, 0, ..., (0, None)]
    assert [tuple(x[key].shape) for key in wanted] == [(1, 2, 3), (3,), (2, 3), (1, 3)]
    assert keys == wanted


def test_subclasses_count_as_plain_where_they_are_told_to():
    class Named(tl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            with tl._C.DisableTorchFunctionSubclass():
                return "seen", func(*args, **(kwargs or {}))

    x = tl.ones(2).as_subclass(Named)
    said, y = x + 1
    assert said == "seen" and type(y) is tl.Tensor and y.tolist() == [2, 2]
    assert (x + 1)[0] == "seen"            # and after an error
    with pytest.raises(RuntimeError), tl._C.DisableTorchFunctionSubclass():
        x + tl.ones(3)
    assert (x + 1)[0] == "seen"


@pytest.mark.parametrize("call", [lambda t, x: t.einsum("ij->i", x),
                                  lambda t, x: t.einsum("ij->i", [x]),
                                  lambda t, x: t.einsum("ij,ij->i", (t.ones(2, 3), x)),
                                  lambda t, x: t.einsum("ij,ij->i", t.ones(2, 3), x)])
def test_einsum_is_offered_whole_with_an_equation_and_its_operands(call):
    equations = []
    for t in LIBRARIES:
        seen = []

        class Noting(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None, t=t, seen=seen):
                seen.append(func is t.einsum and all(isinstance(x, t.Tensor) for x in args[1:]))
                equations.extend(args[:1] * (func is t.einsum))
                return super().__torch_function__(func, types, args, kwargs or {})

        found = call(t, t.ones(2, 3).as_subclass(Noting))
        assert type(found) is Noting and found.tolist() == [3, 3] and seen[0]
        equations.clear()
        t.einsum(t.ones(2, 3).as_subclass(Noting), [4, 5], [5])
        assert equations[0].replace(" ", "") in ("EF->F", "ef->f")
        seen.clear()
        call(t, wrapper(t, seen)(t.ones(2, 3)))
        assert [name for name, _ in seen] == ["einsum"]


def test_a_table_of_functions_has_those_that_came_late():
    assert run_forked("""
import tensorlib as tl
table = {tl.unique: 1, tl.cartesian_prod: 2}
class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return table[func]
print(tl.unique(Duck()), table[tl.cartesian_prod], {tl.flip} == {tl.flip})
""").split() == ["1", "2", "True"]


FUNCTIONAL = {
    "relu": {}, "softmax": {"dim": 0}, "log_softmax": {"dim": 0}, "softmin": {"dim": 0},
    "gelu": {}, "glu": {}, "elu": {}, "hardtanh": {}, "dropout": {}, "mse_loss": {"target": None},
    "layer_norm": {"normalized_shape": (2,)}, "normalize": {}, "linear": {"weight": None},
    "cross_entropy": {"target": None}, "cosine_similarity": {"x2": None},
}


@each("name", FUNCTIONAL)
def test_functions_of_layers_are_given_as_they_were_called(name):
    for t in LIBRARIES:
        function, seen = getattr(t.nn.functional, name), []

        class Noting(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None, seen=seen):
                seen.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})

        class Mode(t.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None, seen=seen):
                seen.append(func)
                return func(*args, **(kwargs or {}))

        x = t.rand(2, 2)
        given = {key: x if value is None else value for key, value in FUNCTIONAL[name].items()}
        function(x.as_subclass(Noting), **given)
        assert seen == [function]
        seen.clear()
        with Mode():
            function(x, **given)
        assert seen == [function]


@each("call, name", [
    (lambda t: t.zeros(2), "zeros"), (lambda t: t.empty((2,)), "empty"),
    (lambda t: t.arange(3), "arange"), (lambda t: t.tensor([1.0]), "tensor"),
    (lambda t: t.full((2,), 3.0), "full"), (lambda t: t.rand(2), "rand"),
    (lambda t: t.eye(2), "eye"), (lambda t: t.linspace(0, 1, 3), "linspace"),
    (lambda t: t.hann_window(3), "hann_window"), (lambda t: t.as_tensor(1.0), "as_tensor"),
    (lambda t: t.ones_like(ONES[t]), "ones_like"), (lambda t: ONES[t].new_zeros(2), "new_zeros"),
    (lambda t: ONES[t].clone().uniform_(), "uniform_"), (lambda t: t.stack([ONES[t]]), "stack"),
    (lambda t: t.meshgrid(ONES[t], ONES[t], indexing="ij"), "meshgrid"),
    (lambda t: t.einsum("i,i", ONES[t], ONES[t]), "einsum"),
    (lambda t: t.kl_div(ONES[t], ONES[t]), "kl_div"), (lambda t: ONES[t].norm(), "norm")],
    ids=lambda x: x if isinstance(x, str) else "")
def test_a_mode_is_given_functions_whole_and_those_that_make_tensors(call, name):
    for t in LIBRARIES:
        seen = []

        class Mode(t.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None, seen=seen):
                seen.append(func.__name__)
                return func(*args, **(kwargs or {}))

        with Mode():
            call(t)
        assert [x for x in seen if x != "clone"] == [name]
        call(t)
        assert [x for x in seen if x != "clone"] == [name]


def test_what_a_mode_declines_is_done_by_what_is_given_or_by_no_one():
    for t in LIBRARIES:
        class Declining(t.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return NotImplemented

        class Own:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return "own"

        with Declining():
            assert t.stack([Own()]) == "own"
            for call in (lambda: t.zeros(2), lambda: t.add(ONES[t], 1), lambda: ONES[t] + 1):
                with pytest.raises(TypeError):
                    call()


def test_what_can_be_overridden_is_listed():
    for t in LIBRARIES:
        overridable, made = t.overrides.get_overridable_functions(), (
            t.overrides.get_testing_overrides())
        assert t.add in overridable[t] and t.Tensor.add in overridable[t.Tensor]
        assert t.nn.functional.relu in overridable[t.nn.functional] and t.fft.fft in made
        assert made[t.add](1, 2) == -1
        ignored = t.overrides.get_ignored_functions()
        assert {t.zeros, t.arange, t.manual_seed} <= ignored and not ignored & set(overridable[t])
        assert t.overrides.is_tensor_method_or_property(t.Tensor.add)
        assert not t.overrides.is_tensor_method_or_property(t.einsum)
        with t.overrides.BaseTorchFunctionMode():
            assert t.add(1, ONES[t]).tolist() == [2, 2]
