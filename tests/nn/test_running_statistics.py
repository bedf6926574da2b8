"""Running statistics are moved by each call in training, whatever is done with the function."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import func, nn

X = tl.tensor([[1.0, 2.0, 0.5], [3.0, 5.0, 1.0], [-1.0, 0.0, 2.0], [4.0, 1.0, 0.0]])
W = tl.tensor([1.0, 2.0, -1.0])


def loss(layer):
    """A function of the layer's weight."""
    return lambda w: func.functional_call(layer, {"weight": w}, (X,)).pow(3).sum()


WAYS = {
    "backward": lambda layer: layer(X).pow(3).sum().backward(),
    "grad": lambda layer: func.grad(loss(layer))(W),
    "grad of the input": lambda layer: func.grad(lambda x: layer(x).pow(3).sum())(X),
    "value_and_grad": lambda layer: func.value_and_grad(loss(layer))(W),
    "vjp": lambda layer: func.vjp(loss(layer), W),
    "jvp": lambda layer: func.jvp(loss(layer), (W,), (W,)),
    "jvp of the input": lambda layer: func.jvp(layer, (X,), (X,)),
    "linearize": lambda layer: func.linearize(loss(layer), W),
    "jacrev": lambda layer: func.jacrev(layer)(X),
    "jacfwd": lambda layer: func.jacfwd(layer)(X),
    "hessian": lambda layer: func.hessian(loss(layer))(W),
    "twice": lambda layer: func.grad(lambda w: func.grad(loss(layer))(w).sum())(W),
    "vmap": lambda layer: func.vmap(loss(layer))(tl.stack([W, W])),
    "vmap of grad": lambda layer: func.vmap(func.grad(loss(layer)))(tl.stack([W, W])),
    "compile": lambda layer: tl.compile(loss(layer))(W),
}


def made(momentum):
    layer = nn.BatchNorm1d(3, momentum=momentum)
    layer.running_mean.fill_(0.5)
    return layer


@each("momentum", [0.1, 0.9, None])
@each("way", WAYS)
def test_they_move_as_in_a_plain_call(way, momentum):
    plain, layer = made(momentum), made(momentum)
    plain(X)
    if (way, momentum) == ("compile", None):
        with pytest.warns(RuntimeWarning, match="runs eagerly"):     # it asks for the count
            WAYS[way](layer)
    else:
        WAYS[way](layer)
    for name, wanted in plain.named_buffers():
        tl.testing.assert_close(getattr(layer, name), wanted)
    part = 1.0 if momentum is None else momentum
    tl.testing.assert_close(layer.running_mean, 0.5 + part * (X.mean(0) - 0.5))
    tl.testing.assert_close(layer.running_var, 1 + part * (X.var(0) - 1))
    assert layer.num_batches_tracked == 1 and tl.is_grad_enabled()


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(3), nn.BatchNorm1d(3, momentum=None)])
def test_they_rest_where_that_was_switched_off_later(layer):
    """The batch counts in training, the running ones in use."""
    layer(X)
    before = [buffer.clone() for buffer in layer.buffers()]
    layer.track_running_stats = False
    tl.testing.assert_close(layer(X * 2 + 1), nn.BatchNorm1d(3)(X * 2 + 1))
    assert all(a.equal(b) for a, b in zip(layer.buffers(), before))
    layer.eval()
    wanted = (X - before[0]) / (before[1] + layer.eps).sqrt()
    tl.testing.assert_close(layer(X), wanted)


def test_each_example_may_have_its_own():
    """Models with batch normalisation, all trained at once."""
    models = [nn.BatchNorm1d(3) for _ in range(2)]
    params, buffers = func.stack_module_state(models)
    xs = tl.stack([X, X * 2 + 1])

    def total(params, buffers, x):
        return func.functional_call(models[0], (params, buffers), (x,)).pow(3).sum()

    func.vmap(func.grad(total))(params, buffers, xs)
    for model, x, *moved in zip(models, xs, *(buffers[name] for name, _ in
                                              models[0].named_buffers())):
        model(x)
        for wanted, found in zip(model.buffers(), moved):
            tl.testing.assert_close(found, wanted)


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(3),
                                   nn.InstanceNorm1d(3, track_running_stats=True)])
def test_examples_that_differ_do_not_share_them(layer):
    before = [layer.running_mean.clone(), layer.running_var.clone()]
    xs = X.unsqueeze(-1).repeat(1, 1, 2) * tl.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="_norm: the input differs.*share"):
        func.vmap(layer)(tl.stack([xs, xs + 1]))
    assert all(a.equal(b) for a, b in zip((layer.running_mean, layer.running_var), before))
    layer.eval()
    assert func.vmap(layer)(tl.stack([xs, xs + 1])).shape == (2, *xs.shape)


def test_what_is_written_elsewhere_is_refused_as_ever():
    layer = nn.BatchNorm1d(3)

    def writes(w):
        layer(X)
        layer.running_mean.zero_()
        return w.sum()

    with pytest.raises(RuntimeError, match="made outside of the function being transformed"):
        func.grad(writes)(W)


@pytest.mark.parametrize("normed", [nn.utils.parametrizations.spectral_norm,
                                    nn.utils.spectral_norm])
@pytest.mark.parametrize("transform", ["grad", "jvp"])
def test_the_vectors_of_spectral_norms_move_too(normed, transform):
    found = []
    for way in (None, transform):
        tl.manual_seed(3)
        layer, x = normed(nn.Linear(3, 2)), X

        def total(x, layer=layer):
            return layer(x).pow(2).sum()

        if way is None:
            total(x)
        elif way == "grad":
            func.grad(total)(x)
        else:
            func.jvp(total, (x,), (x,))
        found.append([buffer.clone() for buffer in layer.buffers()])
    assert len(found[0]) == 2
    for plain, moved in zip(*found):
        tl.testing.assert_close(moved, plain)


def test_rows_that_are_looked_up_are_made_small_under_a_transform():
    weights = [tl.tensor([[3.0, 4.0], [0.1, 0.1], [6.0, 8.0]]) for _ in range(2)]
    index = tl.tensor([0])
    nn.functional.embedding(index, weights[0], max_norm=1.0)
    slope = func.grad(lambda w: nn.functional.embedding(index, w, max_norm=1.0).sum())(weights[1])
    assert slope.tolist() == [[1, 1], [0, 0], [0, 0]]
    tl.testing.assert_close(weights[1], weights[0])
    tl.testing.assert_close(weights[1][0], tl.tensor([0.6, 0.8]))


@each("layer, shape", [(nn.BatchNorm1d(3), (0, 3)), (nn.BatchNorm1d(3), (4, 3, 0)),
                       (nn.BatchNorm2d(3), (0, 3, 2, 2)), (nn.BatchNorm3d(3), (0, 3, 2, 2, 2))])
def test_a_batch_without_elements_leaves_them_as_they_are(layer, shape):
    assert layer(tl.zeros(shape)).shape == shape
    assert layer.running_mean.tolist() == [0] * 3 and layer.running_var.tolist() == [1] * 3
    assert layer.num_batches_tracked == 1
