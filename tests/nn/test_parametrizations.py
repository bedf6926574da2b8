"""Parametrizations: their values by formula, what they are made from, and what is refused."""

import pickle

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn.utils import parametrizations, parametrize, spectral_norm
from tensorlib.testing import assert_close

MAPS = ("matrix_exp", "cayley", "householder")


class Plain(nn.Module):
    def forward(self, x):
        return x


class Halves(nn.Module):
    """The sum of two tensors, and two halves of what it is to be."""

    def forward(self, a, b):
        return a + b

    def right_inverse(self, x):
        return x / 2, x / 2


def gives(value, forward=None):
    """A parametrization of which `right_inverse` gives this."""
    class Given(Plain):
        def right_inverse(self, x):
            return value(x)

    made = Given()
    made.forward = forward or made.forward
    return made


def numbers(*shape):
    return tl.tensor(np.random.default_rng([7, *shape]).normal(size=shape))


def layer(weight):
    made = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
    made.weight = nn.Parameter(weight.clone())
    return made


# ---- orthogonal matrices -------------------------------------------------------------------------

def by_formula(x, orthogonal_map):
    """The first columns of an orthogonal matrix, of a matrix that is no wider than high."""
    n, k = x.shape
    if orthogonal_map == "householder":
        product = np.eye(n)
        for i in range(k):
            v = np.where(np.arange(n) > i, x[:, i], np.arange(n) == i)
            product = product @ (np.eye(n) - 2 * np.outer(v, v) / (v @ v))
        return product[:, :k] * np.trunc(np.diagonal(x))
    lower = np.zeros((n, n))
    lower[:, :k] = np.tril(x)
    skew = lower - lower.T
    if orthogonal_map == "cayley":
        return np.linalg.solve(np.eye(n) - skew / 2, np.eye(n) + skew / 2)[:, :k]
    angles, vectors = np.linalg.eigh(-1j * skew)
    return ((vectors * np.exp(1j * angles)) @ vectors.conj().T).real[:, :k]


@each("orthogonal_map", MAPS)
@each("shape", [(3, 3), (5, 3), (3, 5), (4, 1), (1, 1)], ids=str)
def test_an_orthogonal_matrix_of_any(shape, orthogonal_map):
    """Without trivialization the map alone says what it is."""
    made = parametrizations.orthogonal(
        layer(numbers(*shape)), orthogonal_map=orthogonal_map, use_trivialization=False)
    x = numbers(*shape) * 1.5
    with tl.no_grad():
        made.parametrizations.weight.original.copy_(x)
    wide = shape[0] < shape[1]
    wanted = by_formula(x.numpy().T if wide else x.numpy(), orthogonal_map)
    assert_close(made.weight, tl.tensor(wanted.T if wide else wanted))
    if orthogonal_map != "householder":
        tall = made.weight.mT if wide else made.weight
        assert_close(tall.mT @ tall, tl.eye(min(shape), dtype=tl.float64))
        with pytest.raises(NotImplementedError, match=f"by {orthogonal_map} without triviali"):
            made.weight = made.weight.detach()


@each("trivialization, maps", [(True, MAPS), (False, ["householder"])])
@each("shape", [(3, 3), (5, 3), (3, 5), (2, 5, 3)], ids=str)
def test_an_orthogonal_matrix_is_assigned_to(shape, trivialization, maps):
    wide = shape[-2] < shape[-1]
    q = tl.linalg.qr(numbers(*shape).mT if wide else numbers(*shape)).Q
    q = q.mT if wide else q
    for orthogonal_map in maps:
        made = nn.Module()
        made.weight = nn.Parameter(numbers(*shape))
        parametrizations.orthogonal(made, orthogonal_map=orthogonal_map,
                                    use_trivialization=trivialization)
        made.weight = q
        assert_close(made.weight, q)
        with pytest.raises(ValueError, match=r"batch of matrices of shape .* got shape \(2, 9\)$"):
            made.weight = tl.ones(2, 9, dtype=tl.float64)


@each("trivialization", [True, False])
@each("orthogonal_map", [None, "matrix_exp", "cayley"])
@each("shape", [(3, 3), (5, 3), (3, 5)], ids=str)
def test_a_complex_matrix_becomes_unitary(shape, orthogonal_map, trivialization):
    made = parametrizations.orthogonal(
        layer(tl.complex(numbers(*shape), numbers(*shape[::-1]).T)), orthogonal_map=orthogonal_map,
        use_trivialization=trivialization)
    with tl.no_grad():
        made.parametrizations.weight.original.add_(tl.complex(numbers(*shape), numbers(*shape)))
    tall = made.weight.mT if shape[0] < shape[1] else made.weight
    assert_close(tall.mH @ tall, tl.eye(min(shape), dtype=tl.complex128))
    with pytest.raises(ValueError, match="householder takes no complex matrices"):
        parametrizations.orthogonal(layer(made.weight.detach()), orthogonal_map="householder")


def test_learning_starts_at_the_matrix_or_at_the_orthogonal_one_nearest():
    flips = tl.diag(tl.tensor([1.0, -1, 1], dtype=tl.float64))
    assert_close(parametrizations.orthogonal(layer(flips)).weight, flips)
    made = parametrizations.orthogonal(layer(tl.tensor([[3.0, 1], [4, 2]], dtype=tl.float64)))
    wanted = tl.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=tl.float64)
    assert_close(made.weight, wanted)
    assert_close(made.parametrizations.weight[0].base, wanted)
    assert made.parametrizations.weight.original.tolist() == [[-1, 0], [0, -1]]


@pytest.mark.parametrize("scale, tilt, near", [
    (1.0, 0.0, True), (1 + 1e-6, 0.0, True), (1 + 1e-4, 0.0, False), (1.0, 6e-15, True),
    (1.0, 7e-15, False)])
def test_what_is_orthogonal_but_for_rounding_is_kept_to_the_bit(scale, tilt, near):
    """The bounds are PyTorch's: 1e-5 for lengths, and 10 n eps between rows."""
    weight = scale * tl.eye(3, dtype=tl.float64)
    weight[0, 1] = tilt
    made = parametrizations.orthogonal(layer(weight))
    assert made.parametrizations.weight[0].base.equal(
        weight if near else tl.eye(3, dtype=tl.float64))


# ---- norms ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("dim, norms", [
    (None, 55 ** 0.5), (-1, 55 ** 0.5), (0, [[5.0], [30 ** 0.5]]),
    (1, [[5 ** 0.5, 5.0, 5.0]])])
def test_the_norms_of_a_weight_are_learnt_apart(dim, norms):
    """-1 stands for the whole, as in PyTorch."""
    weight = tl.tensor([[0.0, 3, 4], [5 ** 0.5, 4, 3]], dtype=tl.float64)
    made = parametrizations.weight_norm(layer(weight), dim=dim)
    parts = made.parametrizations.weight
    assert_close(parts.original0, tl.tensor(norms, dtype=tl.float64), check_dtype=False)
    assert_close(parts.original1, weight)
    with tl.no_grad():
        parts.original1.mul_(7)
        parts.original0.mul_(2)
    assert_close(made.weight, 2 * weight)


def test_states_of_the_older_norm_of_weights_are_loaded():
    old = nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 2)))
    new = nn.Sequential(parametrizations.weight_norm(nn.Linear(3, 2)))
    state = old.state_dict()
    assert not any(new.load_state_dict(state)) and "0.weight_g" in state
    assert tl.equal(new(tl.ones(3)), old(tl.ones(3)))
    pickle.loads(pickle.dumps(new)).load_state_dict(state)


def test_a_vector_is_divided_by_its_norm():
    made = layer(tl.ones(2, 3))
    made.bias = nn.Parameter(tl.tensor([3.0, 4.0]))
    assert_close(parametrizations.spectral_norm(made, "bias").bias, tl.tensor([0.6, 0.8]))


@pytest.mark.parametrize("dim", [-2, -1, 0, 1])
def test_the_largest_singular_value_is_one_along_any_dim(dim):
    made = parametrizations.spectral_norm(layer(numbers(5, 3)), n_power_iterations=60, dim=dim)
    assert_close(made.weight, numbers(5, 3) / tl.linalg.matrix_norm(numbers(5, 3), 2))
    assert len(made.parametrizations.weight[0]._u) == (5, 3)[dim]


def test_the_largest_singular_value_of_complex_numbers_is_one():
    weight = tl.complex(numbers(5, 3), numbers(5, 3).flip(0))
    made = parametrizations.spectral_norm(layer(weight), n_power_iterations=60)
    assert_close(made.weight, weight / tl.linalg.matrix_norm(weight, 2))


@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.spectral_norm])
def test_norms_of_weights_that_have_no_shape_yet_are_refused(norm):
    model = nn.LazyLinear(2)
    with pytest.raises(ValueError, match="'weight' of LazyLinear.* has no shape yet; call the"):
        norm(model)
    model(tl.ones(1, 3))
    assert norm(model)(tl.ones(1, 3)).shape == (1, 2)


@pytest.mark.parametrize("dim", [2, -3])
def test_a_dim_that_the_weight_does_not_have(dim):
    with pytest.raises(IndexError, match=rf"range of \[-2, 1\] but got {dim}\)$"):
        parametrizations.spectral_norm(nn.Linear(2, 3), dim=dim)


def test_the_older_norm_is_put_on_once():
    made = spectral_norm(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks .* weight$"):
        spectral_norm(made)
    assert len(made._forward_pre_hooks) == 1
    assert len(spectral_norm(made, "bias")._forward_pre_hooks) == 2
    made(tl.ones(2))                     # a vector counts as a matrix of one column
    assert_close(made.bias.norm(), tl.tensor(1.0), check_dtype=False)
    assert_close(made.bias, made.bias_orig / made.bias_orig.norm())


# ---- what a tensor is computed from --------------------------------------------------------------

def test_a_buffer_of_several_comes_and_goes():
    made = parametrize.register_parametrization(nn.BatchNorm1d(2), "running_mean", Halves())
    parts = [f"parametrizations.running_mean.original{i}" for i in (0, 1)]
    others = ["running_var", "num_batches_tracked"]
    assert [name for name, _ in made.named_buffers()] == [*others, *parts]
    made.running_mean = tl.tensor([4.0, 6.0])
    assert [made.get_buffer(name).tolist() for name in parts] == [[2, 3], [2, 3]]
    assert made.running_mean.tolist() == [4, 6]
    parametrize.remove_parametrizations(made, "running_mean")
    assert type(made) is nn.BatchNorm1d and type(made.running_mean) is tl.Tensor
    assert made.running_mean.tolist() == [4, 6]
    assert [name for name, _ in made.named_buffers()] == [*others, "running_mean"]
    assert [name for name, _ in made.named_parameters()] == ["weight", "bias"]


def test_a_buffer_of_one_stays_a_buffer():
    made = parametrize.register_parametrization(nn.BatchNorm1d(2), "running_var", Plain())
    assert made.get_buffer("parametrizations.running_var.original").tolist() == [1, 1]
    parametrize.remove_parametrizations(made, "running_var")
    assert made.get_buffer("running_var").tolist() == [1, 1]


@pytest.mark.parametrize("learns", [True, False])
def test_a_parameter_of_several_is_one_again(learns):
    made = nn.Linear(2, 2).requires_grad_(learns)
    before = made.weight.detach().clone()
    parametrize.register_parametrization(made, "weight", Halves())
    assert [part.requires_grad for part in made.parameters()] == [learns] * 3
    parametrize.remove_parametrizations(made, "weight")
    assert type(made.weight) is nn.Parameter and made.weight.equal(before)
    assert made.weight.requires_grad == learns and made.weight.is_leaf


def test_a_tensor_that_the_other_module_lacks_is_added_to_it():
    first, second = nn.Linear(2, 2), nn.Module()
    parametrize.register_parametrization(first, "weight", Plain())
    assert parametrize.transfer_parametrizations_and_params(first, second) is second
    assert list(second.state_dict()) == ["parametrizations.weight.original"]
    source, copy = (m.parametrizations.weight.original for m in (first, second))
    assert copy.equal(source) and copy is not source and type(copy) is nn.Parameter
    with tl.no_grad():
        source.add_(1)
    assert not copy.equal(source)


def unfit(x):
    raise NotImplementedError("no way back")


@pytest.mark.parametrize("value", [unfit, lambda x: x], ids=["no inverse", "the identity"])
def test_at_first_what_has_no_inverse_is_taken_for_the_identity(value):
    made = nn.Linear(2, 2)
    before = made.weight.detach().clone()
    for _ in range(2):
        parametrize.register_parametrization(made, "weight", gives(value, lambda x: 2 * x))
    assert made.parametrizations.weight.original.equal(before) and made.weight.equal(4 * before)
    if value is unfit:
        with pytest.raises(NotImplementedError, match="no way back"):
            made.weight = before


@each("earlier", [0, 1])
@each("made, text", [
    (gives(lambda x: 3), "right_inverse: must (give tensors|return a Tensor or .*), got int$"),
    (gives(lambda x: x[:1]), r"right_inverse: gave shape \(1, 2\) and tensorlib.float32, expected "
     r"\(2, 2\) and tensorlib.float32$"),
    (gives(lambda x: x.double()), "and tensorlib.float64, expected"),
    (gives(lambda x: x, lambda x: 3), "register_parametrization: must give tensors, got int$"),
    (gives(lambda x: x, lambda x: x[:1]), r"register_parametrization: .*\(1, 2\)"),
    (gives(lambda x: x, lambda x: x.double()), "register_parametrization: .*float64"),
])
def test_parametrizations_that_do_not_fit(made, text, earlier):
    """As the first one of a tensor, and as the second."""
    net = nn.Linear(2, 2)
    for _ in range(earlier):
        parametrize.register_parametrization(net, "weight", Plain())
    with pytest.raises(ValueError, match=text):
        parametrize.register_parametrization(net, "weight", made)
    assert net(tl.ones(2)).shape == (2,) and list(net.state_dict()) == [
        *["weight"] * (not earlier), "bias", *["parametrizations.weight.original"] * earlier]
    assert not earlier or len(net.parametrizations.weight) == 1


def test_a_list_of_parametrizations_has_one():
    with pytest.raises(ValueError, match="^ParametrizationList requires one or more modules.$"):
        parametrize.ParametrizationList([], nn.Parameter(tl.ones(2)))


@pytest.mark.parametrize("later, text", [
    (lambda x: (x, 3), "must give tensors, got int$"),
    (lambda x: (x,), "must give original0, original1, got a sequence of 1$"),
    (lambda x: (x, x, x), "must give original0, original1, got a sequence of 3$"),
    (lambda x: x, "must give original0, original1, got one Tensor$"),
    (lambda x: (x, x[:1]), r"gave shape \(1, 2\)"),
    (lambda x: 3, "must return a Tensor or a sequence of tensors, got int$")])
def test_an_inverse_gives_as_many_tensors_as_at_first(later, text):
    made = nn.Linear(2, 2)
    parametrize.register_parametrization(made, "weight", Halves())
    made.parametrizations.weight[0].right_inverse = later
    with pytest.raises(ValueError, match=f"^right_inverse: {text}"):
        made.weight = tl.ones(2, 2)


def test_an_inverse_gives_one_tensor_where_it_gave_one():
    made = parametrize.register_parametrization(nn.Linear(2, 2), "weight", gives(lambda x: x))
    made.parametrizations.weight[0].right_inverse = lambda x: (x,)
    with pytest.raises(ValueError, match="must give original, got a sequence of 1$"):
        made.weight = tl.ones(2, 2)
