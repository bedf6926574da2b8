"""Replays on tensors that take several tiles and chunks: the bits of the eager call."""

import warnings

from cases import each
from test_executor import alike, function_of, gradients, sampled

import tensorlib as tl
from tensorlib.testing.catalogue import samples
from tests.ops.catalogue import for_each

F = tl.nn.functional
N = 70_001                   # more than two chunks, and no whole number of tiles


def enlarged(sample):
    """The arrays of a sample, over and over; None where they are not all of one shape or numbers.
    """
    arrays = sample.tensors().arrays
    shapes = {tuple(x.shape) for x in arrays} - {()}
    if len(shapes) != 1 or not all(x.numel() for x in arrays):
        return None
    return [x if x.ndim == 0 else x.flatten().repeat(-(-N // x.numel()))[:N] for x in arrays]


def leaves(arrays):
    return [x.clone().requires_grad_() if x.is_floating_point() else x.clone() for x in arrays]


elementwise = [op for op in sampled if op.elementwise
               and any(enlarged(sample) is not None for sample in samples(op))]


@for_each(elementwise)
def test_large_operands_of_an_elementwise_operation(op):
    for sample in [sample for sample in samples(op) if enlarged(sample) is not None][:3]:
        arrays = enlarged(sample)
        function = function_of(op, sample)
        compiled = tl.compile(function)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            wanted = function(*arrays)
            for _ in range(2):
                assert alike(wanted, compiled(*arrays))
            if op.differentiable and any(x.is_floating_point() for x in arrays):
                compiled = tl.compile(function)
                wanted = gradients(function, leaves(arrays))
                for _ in range(2):
                    again = gradients(compiled, leaves(arrays))
                    assert (wanted is None) == (again is None)
                    assert wanted is None or all(map(alike, wanted, again))


def test_most_elementwise_operations_have_large_operands():
    assert len(elementwise) > 100


def randn(*shape):
    tl.manual_seed(len(shape))
    return tl.randn(*shape, requires_grad=True)


def some(n, *shape):
    tl.manual_seed(n)
    return tl.randint(0, n, shape)


LARGE = {
    "gather": (lambda x, i: x.gather(1, i), randn(512, 300), some(300, 512, 100)),
    "scatter_add": (lambda x, i, s: x.scatter_add(1, i, s), randn(512, 300), some(300, 512, 100),
                    randn(512, 100)),
    "take_along": (lambda x, i: tl.take_along_dim(x, i, 0), randn(512, 300), some(512, 200, 300)),
    "sort": (lambda x: x.sort(1)[0], randn(300, 301)),
    "topk": (lambda x: x.topk(9, 1)[0], randn(300, 301)),
    "max": (lambda x: x.max(1)[0] + x.amin(1), randn(300, 301)),
    "cumsum": (lambda x: x.cumsum(0) + x.cumsum(1), randn(300, 301)),
    "prod": (lambda x: x.prod(1), randn(3000, 31)),
    "index": (lambda x, i: x[i] * x[:, 1:2][i], randn(700, 101), some(700, 2000)),
    "index_add": (lambda x, i, s: x.index_add(0, i, s), randn(700, 101), some(700, 500),
                  randn(500, 101)),
    "where": (lambda x, y: tl.where(x > y.t(), x, y.t()) * tl.where(x < 0, 1.0, x),
              randn(300, 301), randn(301, 300)),
    "masks": (lambda x: x.masked_fill(x > 1, 0.5).tril() + x.clamp(-1, 1), randn(300, 301)),
    "halves": (lambda x: (x.half() * 2 + 1).float() + x.bfloat16().float(), randn(300, 301)),
    "rows": (lambda x, b: ((x + b) * b - x[:, :1]).relu().sum(0), randn(900, 77), randn(77)),
    "strides": (lambda x: (x[::2, 1:].t() * 2 + x[1::2, :-1].t()).sin(), randn(600, 301)),
    "norm": (lambda x: F.layer_norm(x, (301,)) + F.normalize(x) + x.softmax(0), randn(300, 301)),
    "var": (lambda x: x.var(1) + x.std(1) + x.norm(dim=1) + x.logsumexp(1), randn(300, 301)),
    "loss": (lambda x, i: F.cross_entropy(x, i) + F.nll_loss(x.log_softmax(1), i), randn(512, 300),
             some(300, 512)),
    "images": (lambda x, w: F.max_pool2d(F.conv2d(x, w, padding=1).relu(), 2), randn(4, 8, 40, 40),
               randn(12, 8, 3, 3)),
    "products": (lambda x, w: (x @ w).tanh() @ w.t() + F.linear(x, w.t(), x[0, 0] + w.sum(0)),
                 randn(2, 300, 64), randn(64, 64)),
    "joined": (lambda x, y: tl.cat([x.exp(), y[:, ::2]], 1).roll(5, 0).flip(1), randn(300, 301),
               randn(300, 222)),
}


@each("n_threads", (1, 2))
@each("name", LARGE)
def test_functions_of_large_tensors(name, n_threads):
    function, *inputs = LARGE[name]
    before = tl.get_num_threads()
    tl.set_num_threads(n_threads)
    try:
        compiled = tl.compile(function, fullgraph=True)
        wanted = function(*inputs), gradients(function, inputs)
        for _ in range(3):
            assert alike(wanted[0], compiled(*inputs))
            for a, b in zip(wanted[1], gradients(compiled, inputs), strict=True):
                assert alike(a.contiguous(), b.contiguous())
    finally:
        tl.set_num_threads(before)
