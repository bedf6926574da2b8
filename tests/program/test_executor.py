"""Replays of every operation of the registry: the bits of the eager call, and of its gradients."""

import warnings

from cases import each

import tensorlib as tl
from tensorlib.ops import registry
from tensorlib.program.compiled.compiling import Compiled, Differentiable
from tensorlib.testing.catalogue import prepared, samples
from tests.ops.catalogue import for_each

sampled = [op for op in registry.values()
           if op.testing.get("samples") and any(sample.arrays for sample in samples(op))]


def alike(a, b):
    """Whether two results have the same bits."""
    if isinstance(a, tl.Tensor):
        return (isinstance(b, tl.Tensor) and a.shape == b.shape and a.dtype is b.dtype
                and (a.stride() == b.stride() or not a.numel()) and bits(a) == bits(b))
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(alike, a, b))
    return a == b or a != a and b != b


def bits(x):
    x = x.detach().contiguous()
    return (x.view(tl.int16) if x.dtype is tl.bfloat16 else x).numpy().tobytes()


def function_of(op, sample):
    """The operation as a function of the tensors of a sample."""
    def function(*tensors):
        args, kwargs = prepared(op, sample.with_arrays(list(tensors)))
        return op.function(*args, **kwargs)
    return function


def copies(sample):
    return [x.clone() for x in sample.tensors().arrays]


def replayed(compiled, make, seed=5):
    """What a compiled function gives when it replays, for inputs that `make` makes."""
    for _ in range(3):
        inputs = make()
        tl.manual_seed(seed)
        found = compiled(*inputs)
    return found, inputs


# What runs eagerly and says so: the size of a result depends on elements, Python looks at elements,
# or the strides of a result depend on what computes it. Of others a sample is replayed, at least.
EAGER = set("""allclose equal is_nonzero
    argwhere bincount masked_select nonzero unique unique_consecutive masked_scatter
    cofactors ldl_systems_solved linalg_householder_product linalg_ldl_factor linalg_ldl_solve
    linalg_lu_factor orgqr ormqr pca_lowrank svd_lowrank""".split())


@for_each(sampled)
def test_a_replay_has_the_bits_of_the_eager_call(op):
    replays = False
    for sample in samples(op)[:6]:
        if not sample.arrays:
            continue
        function = function_of(op, sample)
        inputs = copies(sample)
        tl.manual_seed(5)
        wanted = function(*inputs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            compiled = Compiled(function, False)
            found, given = replayed(compiled, lambda: copies(sample))
        assert alike(wanted, found)
        replays |= all(entry.replay is not None for entry in compiled._entries)
        assert alike(inputs, given)                   # what was written, was written again
    assert replays or op.name in EAGER


differentiable = [op for op in sampled if op.differentiable]


def leaves(sample):
    return [x.clone().requires_grad_() if x.is_floating_point() else x for x in copies(sample)]


def gradients(function, inputs):
    """The gradients of a weighted sum of what a function gives."""
    result = function(*inputs)
    outs = [x for x in (result if isinstance(result, (tuple, list)) else (result,))
            if isinstance(x, tl.Tensor) and x.requires_grad]
    if not outs:
        return None
    tl.manual_seed(9)
    weights = [tl.rand(x.shape, dtype=x.dtype) for x in outs]
    wanted = [x for x in inputs if x.requires_grad]
    return tl.autograd.grad(outs, wanted, weights, allow_unused=True)


# What has no gradient in a replay: a result may be the input itself, or runs eagerly as above.
WITHOUT_REPLAYED_GRADIENTS = EAGER | set("""as_tensor asarray conj conj_physical conjugated
    contiguous fft_c2c fft_c2r imag imag_part linalg_lu linalg_matrix_exp matrix_exp positive real
    real_part resolve_conj resolve_neg softsign_of_complex std_of_parts to var_of_parts view_as_real
    """.split())


@for_each(differentiable)
def test_gradients_of_a_replay_have_the_bits_of_the_eager_sweep(op):
    replays = False
    for sample in samples(op)[:4]:
        if not sample.arrays:
            continue
        function = function_of(op, sample)
        tl.manual_seed(5)
        wanted = gradients(function, leaves(sample))
        if wanted is None:
            continue
        compiled = Compiled(function, False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for _ in range(3):
                tl.manual_seed(5)
                found = gradients(compiled, leaves(sample))
        replays |= any(isinstance(entry.replay, Differentiable) for entry in compiled._entries)
        for a, b in zip(wanted, found, strict=True):
            assert (a is None or not a.any()) if b is None else alike(
                tl.zeros_like(b) if a is None else a.contiguous(), b.contiguous())
    assert replays or op.name in WITHOUT_REPLAYED_GRADIENTS


UNSEEN = {"cholesky": tl.linalg.cholesky, "qr": tl.linalg.qr, "det": tl.linalg.det,
          "inv": tl.linalg.inv, "svd": tl.linalg.svd, "slogdet": tl.linalg.slogdet}


@each("name", UNSEEN)
def test_what_sums_a_gradient_that_was_not_rehearsed_knows_how_it_lies(name):
    """The order in which elements are added follows from their places in memory."""
    for k, shape in enumerate([(), (7, 1), (1, 7)] * 3):
        tl.manual_seed(k)
        x = tl.randn(7, 7, dtype=tl.float64)
        x = x @ x.T + tl.eye(7, dtype=tl.float64) if name == "cholesky" else x.T

        def loss(scale):
            found = UNSEEN[name](x * scale)
            parts = found if isinstance(found, tuple) else (found,)
            return sum((part * part * 1.7).sum() for part in parts)

        scale = tl.full(shape if name != "cholesky" else (), 1.1, dtype=tl.float64)
        compiled = tl.compile(loss)
        wanted, *found = [
            tl.autograd.grad(f(z), z)[0] for f in (loss, compiled, compiled, compiled)
            for z in [scale.clone().requires_grad_()]]
        assert all(alike(wanted, one) for one in found)
