"""Whatever can be reached is checked: `self`, None, raw operations, and classes of C fields."""

import copy
import pickle
import sys

import pytest
from cases import each

import tensorlib as tl
from tensorlib import ops
from tensorlib._core.sweep.python_nodes import sweep_inside
from tensorlib.ops import registry
from tensorlib.testing import assert_close


HEAP = 1 << 9        # the flag of classes that Python code makes


def extension_types():
    """The classes of the core whose fields are C's."""
    for name, module in list(sys.modules.items()):
        for kind in list(vars(module).values()) if name.partition(".")[0] == "tensorlib" else ():
            if isinstance(kind, type) and kind.__module__ == name and not kind.__flags__ & HEAP:
                yield kind


TYPES = sorted(set(extension_types()), key=repr)


def test_the_types_are_found():
    assert {"Tensor", "Node", "Op", "Generator", "dtype", "Storage", "Index"} <= {
        kind.__name__ for kind in TYPES}


# What needs nothing of `self`: constructors, and what a context does or a notebook shows.
WITHOUT_SELF = {"__new__", "__init_subclass__", "__class_getitem__", "one_blas_thread.__enter__",
                "one_blas_thread.__exit__", "Tensor._repr_html_"}


@each("kind", TYPES, ids=lambda kind: kind.__name__)
def test_methods_check_their_self(kind):
    for name, method in vars(kind).items():
        if callable(method) and not {name, f"{kind.__name__}.{name}"} & WITHOUT_SELF:
            refusals = (TypeError, AttributeError, RuntimeError, ValueError)
            if name == "from_file":                             # which opens it
                refusals += FileNotFoundError,
            for wrong in ("abc", None):
                with pytest.raises(refusals):
                    method(wrong)


@pytest.mark.parametrize("name", [
    "detach", "zero_", "size", "nelement", "t_", "sum", "tanh", "copy_"])
def test_none_is_no_tensor(name):
    with pytest.raises(TypeError):
        getattr(tl.Tensor, name)(None)


def test_a_name_may_be_none():
    x = tl.ones(2)
    x.name = "weight"
    x.name = None
    assert x.name is None


@pytest.mark.parametrize("kind", [k for k in TYPES if k.__name__ in (
    "Node", "Storage", "Rule", "Index", "dtype")], ids=lambda kind: kind.__name__)
def test_what_compiled_code_alone_fills_cannot_be_made(kind):
    for make in (kind, lambda: kind.__new__(kind)):
        with pytest.raises(TypeError, match="cannot create"):
            make()


@pytest.mark.parametrize("make", [
    lambda: (tl.ones(2, requires_grad=True) * 2).grad_fn,
    lambda: registry["sum"].rules[0],
    lambda: registry["tanh"].rules[0],
])
def test_c_fields_are_not_copied(make):
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            way(make())


def test_an_operation_is_made_once():
    with pytest.raises(TypeError):
        type(registry["add"]).__new__(type(registry["add"]))
    assert isinstance(registry["add"].rules, tuple)


FAR = [tl.tensor([10**9]), tl.tensor([-10**9])]


@pytest.mark.parametrize("far", FAR, ids=["beyond", "before"])
@pytest.mark.parametrize("run", [
    lambda far: ops.call("gather", tl.ones(4), dim=0, index=far),
    lambda far: registry["gather"].forward(tl.ones(4), 0, far),
    lambda far: ops.call("spread_along", tl.ones(1), shape=(4,), dim=0, index=far),
    lambda far: ops.call("put_along", tl.ones(1), places=far, dim=0, size=4),
], ids=["gather", "forward", "spread_along", "put_along"])
def test_positions_of_raw_operations_are_checked(run, far):
    with pytest.raises(IndexError):
        run(far)


PLACES = [((4,), (10**6,), 0, (1,), 0), ((4,), (1,), 10**9, (1,), 0), ((4,), (1,), -7, (1,), 0),
          ((2**62,), (1,), 0, (1,), 0), ((4, 4), (1,), 0, (1,), 0), ((-3,), (1,), 0, (1,), 0),
          ((4,), (2**62,), 0, (2**62,), 0)]


@each("place", PLACES)
def test_the_place_of_a_view_is_checked(place):
    for run in (lambda: ops.call("strided_part", tl.ones(4), place=place),
                lambda: ops.call("view_scatter", tl.ones(4), tl.ones(4), place=place),
                lambda: ops.call("spread_view", tl.ones(4), shape=(4,), place=place)):
        with pytest.raises((RuntimeError, ValueError, OverflowError)):
            run()


@pytest.mark.parametrize("run", [
    lambda: ops.call("softmax_backward", tl.ones(1), tl.ones(1000), dim=0),
    lambda: ops.call("log_softmax_backward", tl.ones(2, 3), tl.ones(3, 2), dim=0),
    lambda: ops.build_grad_op(ops.call("sum", tl.ones(3, 4), dim=0))(tl.ones(1)),
    lambda: ops.call("view_scatter", tl.ones(4), tl.ones(2), place=((4,), (1,), 0, (1,), 0)),
    lambda: ops.call("spread_along", tl.ones(4), shape=(4,), dim=0, index=tl.tensor([0])),
    lambda: ops.call("put_along", tl.ones(4), places=tl.tensor([0]), dim=0, size=4),
])
def test_shapes_of_raw_operations_are_checked(run):
    with pytest.raises(RuntimeError):
        run()


def test_a_parsed_key_is_for_one_shape():
    from tensorlib._core.index.keys import parse
    key = parse(tl.ones(100), ([99, 5],))
    assert ops.call("getitem", tl.ones(100), index=key).outputs[0].shape == (2,)
    for run in (lambda: ops.call("getitem", tl.ones(3), index=key),
                lambda: ops.call("put_index", tl.ones(3), tl.ones(2), index=key),
                lambda: ops.call("getitem", tl.ones(3), index=None)):
        with pytest.raises((IndexError, TypeError)):
            run()


def test_data_of_another_shape_after_a_value_was_saved():
    for other in (tl.ones(1), tl.ones(1000, dtype=tl.float64)):
        x = tl.rand(1000).requires_grad_()
        y = x * x
        with tl.no_grad():
            x.requires_grad_(False)
            x.data = other
            x.requires_grad_()
        with pytest.raises(RuntimeError, match="data was set"):
            y.sum().backward()


@pytest.mark.parametrize("name, run", [
    ("clamp", lambda: tl.clamp("a", 1)), ("flip", lambda: tl.flip(3, 0)),
    ("split", lambda: tl.split(3, 1)), ("norm", lambda: tl.norm("a")),
    ("inner", lambda: tl.inner(tl.ones(2), 3)), ("inner", lambda: registry["inner"](3, tl.ones(2))),
    ("norm", lambda: registry["norm"](3)), ("nansum", lambda: registry["nansum"](3)),
    ("vjp", lambda: tl.func.vjp(lambda x: x, "3")),
    ("checkpoint", lambda: tl.utils.checkpoint.checkpoint(3, tl.ones(2))),
])
def test_what_is_no_tensor_is_a_type_error_that_names_the_operation(name, run):
    with pytest.raises(TypeError, match=rf"^{name}\b"):
        run()


def test_a_pickle_of_integers_that_require_a_gradient_is_refused():
    made = list(tl.ones(2, dtype=tl.int64).__reduce_ex__(2)[1])
    made[4] = True
    with pytest.raises(pickle.UnpicklingError, match="require"):
        tl.ones(2).__reduce_ex__(2)[0](*made)


def test_a_sweep_to_what_is_no_tensor_does_not_begin():
    x = tl.ones(2, requires_grad=True)
    y = (x * x).sum()
    with pytest.raises(TypeError):
        sweep_inside((y,), (tl.tensor(1.0),), (3,))
    assert tl.is_grad_enabled()
    y.backward()
    assert x.grad.tolist() == [2, 2]


def test_a_list_that_holds_itself():
    held = [tl.ones(2)]
    held.append(held)
    x = tl.ones(2, requires_grad=True)
    tl.utils.checkpoint.checkpoint(lambda x, held: x * 2, x, held).sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(ValueError, match="assert_close"):
        assert_close(held, held)


def test_numbers_of_all_magnitudes_are_shown_without_warnings(recwarn):
    assert repr(tl.tensor([1e300, 1e-300], dtype=tl.float64))
    assert not recwarn.list
