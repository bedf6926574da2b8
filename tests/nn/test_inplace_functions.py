"""`dropout_`, `selu_` and the like write what the function without `_` gives."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F

CALLS = {
    "selu_": ((), F.selu), "celu_": ((0.5,), F.celu), "threshold_": ((0.1, 7.0), F.threshold),
    "rrelu_": ((0.1, 0.3, True), F.rrelu), "dropout_": ((0.5, True), F.dropout),
    "alpha_dropout_": ((0.5, True), F.alpha_dropout),
    "feature_dropout_": ((0.5, True), F.dropout2d),
    "feature_alpha_dropout_": ((0.5, True), F.feature_alpha_dropout),
}


@each("name", CALLS)
def test_what_the_function_gives_is_written(name):
    options, function = CALLS[name]
    write = getattr(tl, name)
    x, leaf = tl.linspace(-2, 2, 24).reshape(2, 3, 4), tl.ones(2, 3, 4, requires_grad=True)

    def written(x):
        y = x.clone()
        return write(y, *options), y

    for f in written, tl.compile(written):
        tl.manual_seed(3)
        wanted = function(x, *options)
        tl.manual_seed(3)
        found, y = f(x)
        assert tl.equal(y, wanted) and tl.equal(found, y)
    tl.manual_seed(3)
    written(leaf)[0].sum().backward()
    first, leaf.grad = leaf.grad, None
    tl.manual_seed(3)
    function(leaf, *options).sum().backward()
    assert tl.equal(first, leaf.grad)


def test_features_are_dropped_whole_whatever_they_have():
    for shape in (4, 5), (4, 5, 2), (4, 5, 2, 2, 2, 2):
        found = tl.feature_dropout(tl.ones(shape), 0.5, True).flatten(2) if len(shape) > 2 else (
            tl.feature_dropout(tl.ones(shape), 0.5, True)[:, :, None])
        assert tl.equal(found, found[:, :, :1].expand(found.shape)) and 0 < found.mean() < 2
    assert tl.equal(tl.feature_dropout(tl.ones(2, 3), 0.5, False), tl.ones(2, 3))
    with pytest.raises(RuntimeError, match="at least 2 dims"):
        tl.feature_dropout(tl.ones(3), 0.5, True)


def test_names_of_types():
    class Own:
        class Inner:
            pass

    assert tl.typename(tl.ones(1, dtype=tl.int64)) == tl.ones(1, dtype=tl.int64).type()
    assert (tl.typename(3), tl.typename(int), tl.typename(len)) == ("int", "int", "len")
    assert tl.typename(Own.Inner()) == f"{__name__}.{Own.Inner.__qualname__}"
    assert tl.is_storage(tl.ones(2).untyped_storage()) and not tl.is_storage(tl.ones(2))


def test_rrelu_is_a_function_in_place():
    x = tl.tensor([-1.0, 2.0])
    assert F.rrelu_(x, 0.25, 0.25) is x and x.tolist() == [-0.25, 2]
