"""Warnings of captured code: each call gives its own, at the line of the eager call."""

import warnings

import pytest
from cases import each

import tensorlib as tl

F = tl.nn.functional


def told(f, *args):
    """Where and of what two calls warn, but for what `compile` says itself."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(2):
            f(*args)
    return [(x.category, str(x.message), x.filename, x.lineno) for x in found
            if not str(x.message).startswith("compile:")]


def to_real(x):
    return (x * 1j).to(tl.float32) + 1


def mask_of_bytes(x):
    return x[x.to(tl.uint8)]


def write_at_bytes(x):
    y = x.clone()
    y[x.to(tl.uint8)] = 5.0
    return y


def where_bytes(x):
    return tl.where(x.to(tl.uint8), x, x + 1)


def list_as_tuple(x):
    return x[[slice(0, 1)]] * 2


def number_between(x):
    return tl.add(x, 2, x)


def number_of_a_graph(x):
    return x * float(tl.ones((), requires_grad=True))


def by_hand(x):
    warnings.warn("by hand", stacklevel=1)
    return x * 2


def of_the_caller(x):
    def inner():
        warnings.warn("of the caller", DeprecationWarning, stacklevel=2)
    inner()
    return x * 2


def dim_is_not_given(x):
    return F.softmax(x) * 2


def dim_is_not_given_in_a_part(x):
    y = x * 2
    float(y.sum())
    y = y * y
    return F.softmax(y) * 2


def sizes_differ(x):
    return F.mse_loss(x, x[None]) * 2


def old_words(x):
    return tl.nn.MSELoss(size_average=True)(x, x + 1)


def recurrent(x):
    return tl.nn.LSTM(1, 1, dropout=0.5)(x.reshape(3, 1, 1))[1][0]


def scheduled(x):
    w = tl.nn.Parameter(tl.ones(2))
    tl.optim.lr_scheduler.StepLR(tl.optim.SGD([w], lr=0.1), 1).step()
    return x * 2


def of_who_calls_it(x):
    warnings.warn("of who calls", stacklevel=2)
    return x * 2


def of_who_calls_its_parts(x):
    y = x * 2
    float(y.sum())
    y = y * y
    warnings.warn("of who calls", stacklevel=2)
    return y * 2


@each("f", [
    to_real, mask_of_bytes, write_at_bytes, where_bytes, list_as_tuple, number_between,
    number_of_a_graph, by_hand, of_the_caller, dim_is_not_given, dim_is_not_given_in_a_part,
    sizes_differ, old_words, recurrent, scheduled, of_who_calls_it, of_who_calls_its_parts])
def test_each_call_warns_as_the_eager_call(f):
    x = tl.arange(3).float()
    wanted = told(f, x)
    assert len(wanted) == 2
    assert told(tl.compile(f), x) == wanted


def test_what_warns_is_an_error_where_all_must_be_captured():
    with pytest.raises(tl.program.CaptureError, match="warns"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tl.compile(to_real, fullgraph=True)(tl.ones(2))


def test_a_warning_that_is_an_error_is_one_in_each_call():
    compiled = tl.compile(to_real)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(tl.ones(2))
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(Warning, match="imaginary"):
                compiled(tl.ones(2))
