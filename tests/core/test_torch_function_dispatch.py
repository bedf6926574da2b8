"""Plain tensors beside those of a subclass and of the device meta: who is asked, and who is not."""

from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib._core.apply.getitem import is_plain_write


class Asked(tl.Tensor):
    """Records the functions that it is given."""

    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func.__name__.removeprefix("__").removesuffix("__"))
        return super().__torch_function__(func, types, args, kwargs or {})


def asked(value):
    return tl.tensor(value).as_subclass(Asked)


@each("name, call", [
    ("view", lambda x: x.view(asked(3), 2)), ("reshape", lambda x: tl.reshape(x, (asked(3), 2))),
    ("sum", lambda x: x.sum(asked(1))), ("amax", lambda x: x.amax([0, asked(1)])),
    ("getitem", lambda x: x[asked(1)]), ("add_", lambda x: x.add_(asked([1.0, 2.0, 3.0]))),
    ("add", lambda x: x.add(asked([1.0, 2.0, 3.0]), alpha=2.0)),
    ("matmul", lambda x: x @ asked([1.0, 2.0, 3.0])),
    ("cat", lambda x: tl.cat([x, x + asked(1.0)])),
    ("softmax", lambda x: tl.softmax(x + asked(1.0), 0)),
    ("where", lambda x: tl.where(x > 0, x, asked(1.0))),
])
def test_a_subclass_is_asked_wherever_it_stands_beside_plain_tensors(name, call):
    Asked.seen.clear()
    call(tl.ones(2, 3))
    assert name in Asked.seen


@each("call", [
    lambda x: x + x, lambda x: x.add(x, alpha=2.0), lambda x: x.sum(1), lambda x: x.view(3, 2),
    lambda x: x @ x.T, lambda x: x[0], lambda x: x.clone().mul_(x), lambda x: tl.cat([x, x]),
    lambda x: tl.softmax(x, 0), lambda x: tl.tril(x), lambda x: tl.stack([x, x], 1)])
def test_plain_tensors_meta_and_devices_are_told_apart_after_all_was_seen(call):
    Asked.seen.clear()
    x = tl.arange(6.0).reshape(2, 3)
    found = call(x)
    assert type(found) is tl.Tensor and found.device.type == "cpu" and not Asked.seen
    shape = call(x.to("meta"))
    assert shape.device.type == "meta" and shape.shape == found.shape
    with tl.device("meta"):
        assert call(x).equal(found)
    parameter = nn.Parameter(x.clone())
    assert call(parameter).requires_grad and type(call(parameter)) is tl.Tensor


def test_plain_tensors_are_written_where_they_lie():
    x, y = tl.zeros(3), tl.ones(3)
    meta = tl.ones(3, device="meta")
    assert is_plain_write(x, y)
    for other in (asked([1.0, 2.0, 3.0]), meta):
        assert not is_plain_write(x, other) and not is_plain_write(other, y)
        assert not is_plain_write(x, y, other)
