"""Laws of vmap by hypothesis: programs over any dims, ranks and nestings equal the loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from test_vmap import assert_equals_loop

import tensorlib as tl
from tensorlib.func import grad, vmap
from tensorlib.testing import assert_close

# On examples of any shape; what they give has the shape of the larger one.
STEPS = [
    lambda x, y: x * y, lambda x, y: x + y.sum(), lambda x, y: (x - y).tanh(),
    lambda x, y: tl.where(x > y, x, y * 2), lambda x, y: tl.maximum(x, 0.5) - y,
    lambda x, y: x.flatten().softmax(0).reshape(x.shape) * y,
    lambda x, y: x / (1 + y * y), lambda x, y: y.transpose(0, -1).cumsum(0).transpose(0, -1) + x
    if y.ndim else x + y,
    lambda x, y: tl.cat([x.reshape(-1), y.reshape(-1)])[:x.numel()].reshape(x.shape) + y,
    lambda x, y: (x * y).mul_(2).add_(y), lambda x, y: (x * y).amax() + x - y,
]


@st.composite
def arguments(draw):
    """Two tensors whose examples broadcast, the dims of the batch, and the shape of the result."""
    size = draw(st.integers(1, 3))
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    tensors, dims = [], []
    for own in (shape, shape[draw(st.integers(0, len(shape))):]):
        x = tl.tensor(rng.normal(size=(size, *own)))
        dim = draw(st.one_of(st.none(), st.integers(-len(own) - 1, len(own))))
        if dim is None and (dims and dims[0] is None):
            dim = 0
        dims.append(dim)
        tensors.append(x[0] if dim is None else x.movedim(0, dim))
    return tensors, tuple(dims), shape


programs = st.lists(st.sampled_from(STEPS), min_size=1, max_size=4)


def run(steps):
    def function(x, y):
        for step in steps:
            x = step(x, y)
        return x
    return function


@given(arguments(), programs)
def test_programs_equal_the_loop(given, steps):
    tensors, dims, _ = given
    assert_equals_loop(run(steps), *tensors, in_dims=dims)


@given(arguments(), programs, st.data())
def test_out_dims(given, steps, data):
    tensors, dims, shape = given
    place = data.draw(st.integers(-len(shape) - 1, len(shape)))
    found = vmap(run(steps), dims, place)(*tensors)
    assert_close(found, vmap(run(steps), dims)(*tensors).movedim(0, place))


@given(arguments(), programs)
def test_gradients_of_each_example_equal_the_loop(given, steps):
    tensors, dims, _ = given
    assert_equals_loop(grad(lambda x, y: run(steps)(x, y).sin().sum(), (0, 1)), *tensors,
                       in_dims=dims)


@given(arguments(), programs)
def test_nested_in_either_order(given, steps):
    tensors, dims, _ = given
    x, y = (x if d is None else x.movedim(d, 0) for x, d in zip(tensors, dims))
    first, second = ((None if d is None else 0) for d in dims)
    twice = tl.stack([y, y + 1, y * 2])
    f = vmap(run(steps), (first, second))
    found = vmap(f, (None, 0))(x, twice)
    assert_close(found, tl.stack([f(x, row) for row in twice]))


@given(arguments(), programs, st.integers(1, 4))
def test_chunks_change_nothing(given, steps, chunk):
    tensors, dims, _ = given
    assert_close(vmap(run(steps), dims, chunk_size=chunk)(*tensors),
                 vmap(run(steps), dims)(*tensors))
