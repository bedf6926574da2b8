"""Writes in place at positions: elements are written where they lie, and no others."""

import numpy as np
import pytest
import tensorlib as tl
from cases import each

INDEX = tl.tensor([3, 0, -1, 3])
ALONG = tl.tensor([[3, 0, -1, 3, 1], [0, 2, 2, -2, 3]])
# What is written, of a tensor of 4 x 5 elements, and of a source of as many.
WRITES = {
    "index_copy": lambda f, y: f(0, INDEX, y), "index_add": lambda f, y: f(0, INDEX, y),
    "index_fill": lambda f, y: f(1, tl.tensor([4, -5]), 1), "scatter": lambda f, y: f(0, ALONG, y),
    "scatter_add": lambda f, y: f(0, ALONG, y), "put": lambda f, y: f(ALONG, y[:2]),
    "scatter_reduce": lambda f, y: f(0, ALONG, y, "amax"),
    "index_put": lambda f, y: f((INDEX, tl.tensor([0, 4, 1, 0])), y[0, :4]),
}
LAYOUTS = {
    "contiguous": lambda x: x, "transposed": lambda x: x.T.contiguous().T,
    "gapped": lambda x: tl.stack([x, x], 2)[..., 1], "backwards": lambda x: x.flip(1)[:, ::-1],
    "part": lambda x: tl.nn.functional.pad(x, (1, 1, 1, 1))[1:-1, 1:-1],
}


@each("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"])
@each("layout", LAYOUTS)
@each("name", WRITES)
def test_a_write_in_place_gives_what_the_copy_gives(name, layout, dtype):
    if name == "scatter_reduce" and dtype == "complex64":        # which have no order
        name = "scatter"
    numbers = tl.arange(40).reshape(2, 4, 5).sub(7).to(getattr(tl, dtype))
    for source in (numbers[1], None):            # or the tensor itself, the other way round
        x = LAYOUTS[layout](numbers[0].clone())
        y = x.flip(0)[::-1].flip(1) if source is None else source
        want = WRITES[name](getattr(x, name), y)
        y = x[::-1, ::-1][::-1] if source is None else source
        version = x._version
        assert WRITES[name](getattr(x, name + "_"), y) is x
        assert x.tolist() == want.tolist() and x._version == version + 1


@each("name", WRITES)
def test_what_is_not_there_is_refused_before_anything_is_written(name):
    x = tl.zeros(4, 5)
    wrong = {"index_put": lambda f, y: f((INDEX + 1, INDEX), y[0, :4]),
             "index_fill": lambda f, y: f(1, tl.tensor([0, 5]), 1),
             "put": lambda f, y: f(ALONG + 18, y[:2])}
    wrong["scatter_reduce"] = lambda f, y: f(0, ALONG + 1, y, "prod")
    write = wrong.get(name, lambda f, y: f(0, (INDEX if "index" in name else ALONG) + 1, y))
    with pytest.raises(IndexError, match=name.removesuffix("_reduce")):
        write(getattr(x, name + "_"), tl.ones(4, 5))
    assert not x.any()


@each("name", WRITES)
def test_what_may_not_be_written_is_refused(name):
    y = tl.ones(4, 5)
    frozen = np.zeros((4, 5), "f4")
    frozen.flags.writeable = False
    leaf = tl.zeros(4, 5, requires_grad=True)
    for x in (tl.zeros(1, 5).expand(4, 5), tl.from_numpy(frozen), leaf):
        with pytest.raises(RuntimeError):
            WRITES[name](getattr(x, name + "_"), y)
    with tl.no_grad():
        WRITES[name](getattr(leaf, name + "_"), y)
    assert leaf.any()


@each("name", WRITES)
def test_writes_are_recorded_and_noticed(name):
    x, y = tl.zeros(4, 5), tl.ones(4, 5, requires_grad=True)
    WRITES[name](getattr(x, name + "_"), y)
    assert x.requires_grad == (name != "index_fill")
    w = tl.ones(4, 5, requires_grad=True)
    x = tl.zeros(4, 5)
    product = (w * x).sum()
    WRITES[name](getattr(x, name + "_"), tl.ones(4, 5))
    with pytest.raises(RuntimeError, match="saved"):
        product.backward()


def test_a_tensor_may_be_written_into_itself():
    turn, want = tl.tensor([1, 2, 3, 0]), [3, 0, 1, 2]
    x = tl.arange(4)
    x[turn] = x
    assert x.tolist() == want
    for name in ("index_copy_", "scatter_"):
        x = tl.arange(4)
        assert getattr(x, name)(0, turn, x).tolist() == want
    assert (x := tl.arange(4)).put_(turn, x).tolist() == want
    for name in ("index_add_", "scatter_add_"):
        x = tl.arange(4)
        assert getattr(x, name)(0, turn, x).tolist() == [3, 1, 3, 5]
    for source in (tl.full((4,), 7), None):          # the positions are the tensor's own elements
        x = turn.clone()
        assert x.scatter_(0, x, x if source is None else source).tolist() == (
            [0, 1, 2, 3] if source is None else [7] * 4)
    mask = tl.tensor([True, False, True])
    mask[mask] = False
    assert not mask.any()


def test_a_diagonal_is_filled_where_it_lies():
    for shape in ((3, 3), (5, 2), (2, 5), (3, 3, 3)):
        x = tl.zeros(shape)
        assert x.fill_diagonal_(7) is x and x.sum() == 7 * min(shape)
    leaf = tl.ones(3, 3, requires_grad=True)
    (leaf * 2).fill_diagonal_(0).sum().backward()
    assert leaf.grad.tolist() == [[0, 2, 2], [2, 0, 2], [2, 2, 0]]


@each("dim", [0, 1])
@each("name", ["index_copy", "index_add", "index_fill"])
def test_many_slices_are_written_as_few_are(name, dim):
    x = tl.arange(21_000).reshape(3000, 7).transpose(0, dim).contiguous()
    index = tl.arange(-1500, 1500)
    given = 5 if name == "index_fill" else x.flip(dim) * 2
    want = getattr(x, name)(dim, index, given)
    assert tl.equal(getattr(x, name + "_")(dim, index, given), want)


@each("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_values_added_in_place_and_values_for_a_mask_are_those_of_the_copy(dtype):
    x, mask = tl.arange(24).reshape(4, 6).sub(9).to(getattr(tl, dtype)), tl.arange(24) % 3 > 0
    for view in (lambda x: x, lambda x: x[:, ::2]):
        y, own = view(x.clone()), mask.reshape(4, 6)[:, :view(x).shape[1]]
        want = view(x).masked_scatter(own, x.flip(0))
        assert y.masked_scatter_(own, x.flip(0)).tolist() == want.tolist()
        want = view(x).put(tl.tensor([3, -1, 3]), x[0, :3], accumulate=True)
        y = view(x.clone())
        assert y.put_(tl.tensor([3, -1, 3]), x[0, :3], accumulate=True).tolist() == want.tolist()
    with pytest.raises(RuntimeError, match="masked_scatter_: source has 2 elements"):
        x.masked_scatter_(mask.reshape(4, 6), x[0, :2])


@each("shape", [(), (1,), (0,), (7,), (3, 0), (2, 3, 4)])
def test_a_source_goes_where_a_mask_holds_in_any_layout(shape):
    x = tl.arange(24)[:np.prod(shape, dtype=int)].reshape(shape)
    mask, source = x % 3 != 1, tl.arange(100, 130)
    dims, backwards = list(range(x.ndim)), (slice(None, None, -1),) * x.ndim
    for y in (source, source[::-1], source.reshape(5, 6).T, source[:1].expand(24)):
        for view in (tl.clone, lambda x: x.flip(dims)[backwards]):
            out = view(x)
            version = out._version
            assert out.masked_scatter_(view(mask), y) is out and out._version == version + 1
            assert out.tolist() == x.masked_scatter(mask, y).tolist()
    if x.ndim == 1:                              # which is written while it is read
        want = x.masked_scatter(mask, x.flip(0))
        assert x.masked_scatter_(mask, x[::-1]).tolist() == want.tolist()


@each("dtype", ["bool", "uint8", "bfloat16", "float32", "complex128"])
def test_a_copy_of_repeated_elements_ends_with_what_it_is_copied_to(dtype):
    for n, row, slabs in ((2, 2, 1), (3, 1, 2), (17, 3, 1), (64, 5, 2), (1000, 4, 1), (33, 7, 3)):
        whole = tl.zeros(n * slabs * row + 64, dtype=getattr(tl, dtype))
        part = whole[:n * slabs * row].view(n, slabs, row)
        part.copy_(tl.ones(n, slabs, 1, dtype=whole.dtype).expand(part.shape))
        assert (part == 1).all() and not whole[part.numel():].any(), (n, row, slabs)


def test_values_put_into_tensors_with_gaps_go_where_those_of_a_vector_go():
    index, values = tl.tensor([0, 1, -1, 2, 2, -6, 5]), tl.arange(7.0) + 1
    for x in (tl.zeros(3, 2).t(), tl.zeros(2, 6)[:, ::2], tl.zeros(1, 2, 3).permute(2, 0, 1),
              tl.zeros(12)[::2], tl.zeros(4, 3)[::2], tl.zeros(6)[::-1],
              tl.zeros(4, 2, 6).permute(2, 0, 1)[::-2, 1:2]):
        for accumulate in (False, True):
            want = x.put(index, values, accumulate)
            flat = x.reshape(-1).clone()
            assert want.tolist() == flat.put(index, values, accumulate).reshape(x.shape).tolist()
            assert x.put_(index, values, accumulate) is x and tl.equal(x, want)
        with pytest.raises(IndexError, match="put"):
            x.put_(tl.tensor([0, x.numel()]), values[:2])
        with pytest.raises(IndexError, match="put: index 7 is out of bounds for dimension 0"):
            x.put(tl.tensor([[0, 7]]), values[:2])
        turned = tl.arange(x.numel()).flip(0).reshape(x.shape)
        want = x.clone().put_(turned, x.clone())
        assert tl.equal(x.put_(turned, x), want)            # which is written while it is read


def test_copies_that_a_source_goes_to_through_a_mask_are_row_major():
    for x in (tl.arange(12.0).reshape(3, 4), tl.arange(12.0).reshape(4, 3).t(),
              tl.arange(24.0).reshape(3, 8)[:, ::2], tl.arange(4.0).expand(3, 4),
              tl.arange(24.0).reshape(3, 2, 4).permute(1, 2, 0)):
        mask, source = x % 3 != 1, -1 - tl.arange(24.0)
        found, before = x.masked_scatter(mask, source), x.tolist()
        wanted = x.clone()
        wanted[mask] = source[:int(mask.sum())]
        assert found.tolist() == wanted.tolist() and found.is_contiguous()
        assert x.tolist() == before
