"""Sorting, scanning, counting and shapes against PyTorch, where it is installed."""

import warnings

import numpy as np
import pytest

import tensorlib as tl

torch = pytest.importorskip("torch")

nan, inf = float("nan"), float("inf")


def both(array, dtype=None):
    """An array as a tensor of each library."""
    pair = torch.tensor(np.asarray(array)), tl.tensor(np.asarray(array))
    return pair if dtype is None else (pair[0].to(getattr(torch, dtype)),
                                       pair[1].to(getattr(tl, dtype)))


def flat(result):
    """The tensors of a result, which may be one."""
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in flat(part)]
    return [result]


def outcome(function, x, library):
    """What a call gives, as lists and dtypes, or the bases that its error may be caught by."""
    try:
        found = flat(function(x, library))
    except Exception as error:
        return "error", error
    return [(str(y.dtype).split(".")[1], tuple(y.shape), y.tolist()) for y in found], None


def differences(cases, inputs):
    """What each function of a tensor and a library gives differently; errors may be wider."""
    for name, function in cases.items():
        for array in inputs:
            x, y = both(*array) if isinstance(array, tuple) else both(array)
            (wanted, error), (found, other) = outcome(function, x, torch), outcome(function, y, tl)
            if "error" in (wanted, found):
                if wanted != found or not isinstance(other, type(error)):
                    yield f"{name} {array}: {error!r} and {other!r}: {wanted} {found}"
                continue
            if [part[:2] for part in wanted] != [part[:2] for part in found] or not all(
                    np.allclose(a[2], b[2], rtol=1e-5, atol=1e-6, equal_nan=True)
                    for a, b in zip(wanted, found)):
                yield f"{name} {array}: {wanted} and {found}"


def assert_agree(cases, inputs):
    """Fails, and shows all differences, unless there is none."""
    found = list(differences(cases, inputs))
    assert not found, "\n".join(found)


AWKWARD = [3.0, nan, -0.0, 0.0, nan, inf, -inf, 3.0]
ROWS = np.array([[3, 1, 2, 1], [0, 5, 5, 2], [7, -1, 0, 0]])
INPUTS = [AWKWARD, ROWS, ROWS * 0.5, (ROWS, "float16"), ROWS[:0], 2.0, np.zeros((2, 0)),
          [True, False]]


def test_orders():
    cases = {
        "sort": lambda x, lib: x.sort(stable=True),
        "descending": lambda x, lib: lib.sort(x, dim=0, descending=True, stable=True),
        "no such dim": lambda x, lib: x.sort(2),
        "argsort": lambda x, lib: lib.argsort(x, dim=0, stable=True),
        "msort": lambda x, lib: lib.msort(x),
        "topk": lambda x, lib: x.topk(2).values,
        "topk of none": lambda x, lib: x.topk(0, dim=0),
        "topk smallest": lambda x, lib: lib.topk(x, 1, 0, False)[0],
        "topk of too many": lambda x, lib: x.topk(9),
        "kthvalue": lambda x, lib: x.kthvalue(2).values,
        "kthvalue along 0": lambda x, lib: x.kthvalue(1, 0, keepdim=True)[0],
        "kthvalue of 0": lambda x, lib: x.kthvalue(0),
    }
    assert_agree(cases, INPUTS)


def test_medians_modes_and_quantiles():
    q = [0.1, 0.5, 0.95]
    cases = {
        "median": lambda x, lib: x.median(),
        "median along 0": lambda x, lib: x.median(0, keepdim=True).values,
        "nanmedian": lambda x, lib: lib.nanmedian(x),
        "nanmedian along 0": lambda x, lib: x.nanmedian(0).values,
        "place of a NaN": lambda x, lib: x.median(-1).indices * x.isnan().any(-1),
        "quantile": lambda x, lib: x.quantile(0.3),
        "quantiles": lambda x, lib: x.quantile(lib.tensor(q).to(x.dtype), dim=0, keepdim=True),
        "quantiles of all": lambda x, lib: x.nanquantile(lib.tensor(q).to(x.dtype), keepdim=True),
        "nanquantile": lambda x, lib: lib.nanquantile(x, 0.6, -1),
        "other range": lambda x, lib: x.quantile(-0.1),
        "none": lambda x, lib: x.quantile(lib.tensor([], dtype=x.dtype)),
        **{way: lambda x, lib, way=way: x.quantile(0.4, 0, interpolation=way)
           for way in ("lower", "higher", "nearest", "midpoint", "cubic")},
    }
    unknown = [[nan, nan], [nan, nan, nan, 1.0], [2.0, 1, 2, 1, 3, nan, nan]]
    assert_agree(cases,
                 [AWKWARD, ROWS, ROWS * 0.5, (ROWS, "float16"), 2.0, np.zeros((2, 0)), *unknown])
    modes = {"mode": lambda x, lib: x.mode(), "along 0": lambda x, lib: lib.mode(x, 0, True)}
    assert_agree(modes, [*INPUTS[1:], *unknown])


def test_gradients_of_choices_among_equals():
    cases = {
        "median": lambda x: x.median(),
        "median along 0": lambda x: x.median(0)[0],
        "nanmedian": lambda x: x.nanmedian(),
        "kthvalue": lambda x: x.kthvalue(5)[0],
        "mode": lambda x: x.mode()[0],
        "quantile": lambda x: x.quantile(0.4),
        "nanquantile": lambda x: x.nanquantile(0.45),
        "midpoint": lambda x: x.quantile(0.4, interpolation="midpoint"),
    }
    found = []
    for values in ([2.0, 1.0, 2.0, 2.0, 3.0], [3.0, 0.0, 1.0, 4.0, 2.0], [1.0, 1.0, nan, 1.0, 2.0]):
        for name, function in cases.items():
            grads = []
            for lib in (torch, tl):
                x = lib.tensor(values, dtype=lib.float64, requires_grad=True)
                function(x).backward()
                grads.append(x.grad.numpy())
            if name in ("mode", "kthvalue", "median along 0", "quantile", "midpoint"):
                grads = [np.sort(g) for g in grads]        # which of equals has it may differ
            if not np.allclose(*grads, equal_nan=True):
                found.append(f"{name} {values}: {grads}")
    assert not found, "\n".join(found)


def test_elements_each_once():
    cases = {
        "unique": lambda x, lib: x.unique(),
        "inverse": lambda x, lib: lib.unique(x, return_inverse=True)[1],
        "all": lambda x, lib: x.unique(True, True, True)[1:],
        "rows": lambda x, lib: x.unique(dim=0, return_inverse=True, return_counts=True),
        "columns": lambda x, lib: x.unique(dim=1),
        "consecutive": lambda x, lib: x.unique_consecutive(),
        "runs": lambda x, lib: lib.unique_consecutive(x, True, True),
        "runs of columns": lambda x, lib: x.unique_consecutive(dim=1, return_counts=True),
    }
    assert_agree(cases,
                 [*INPUTS[1:], [[1, 1], [1, 1], [2, 2], [1, 1]], [2**62, -(2**62), 2**62] * 4,
                         ([5, 5, 0, 200] * 3, "uint8"), [1, 3, 3, 2, 3, 1, 1, 1, 5, -4]])


def test_searches():
    sequence = [1.0, 3.0, 3.0, 5.0, inf]
    found = {
        "left": lambda x, lib: lib.searchsorted(lib.tensor(sequence), x),
        "right": lambda x, lib: lib.searchsorted(lib.tensor(sequence), x, right=True),
        "side": lambda x, lib: lib.searchsorted(lib.tensor([1, 2]), x, side="right"),
        "opposites": lambda x, lib: lib.searchsorted(x, 1, side="left", right=True),
        "int32": lambda x, lib: lib.bucketize(x, lib.tensor(sequence), out_int32=True),
        "a number": lambda x, lib: lib.bucketize(2.5, lib.tensor([1, 2, 3])),
        "rows": lambda x, lib: lib.searchsorted(x.sort()[0], x),
        "sorter": lambda x, lib: lib.searchsorted(x, x, sorter=x.argsort()),
        "another sorter": lambda x, lib: lib.searchsorted(x, x, sorter=x.argsort() + 1),
        "no boundaries": lambda x, lib: lib.searchsorted(lib.tensor([]), x),
        "members": lambda x, lib: lib.isin(x, lib.tensor([0.5, 3.0, nan])),
        "others": lambda x, lib: lib.isin(x, x.reshape(-1)[:20], invert=True),
        "one": lambda x, lib: lib.isin(x, 3),
        "in": lambda x, lib: lib.isin(3, x),
    }
    assert_agree(found, INPUTS[1:])


def test_scans():
    cases = {
        "cumprod": lambda x, lib: x.cumprod(-1),
        "cumprod to float": lambda x, lib: lib.cumprod(x, 0, dtype=lib.float32),
        "in place": lambda x, lib: (x * 1).cumprod_(0),
        "cummax": lambda x, lib: x.cummax(0),
        "cummin": lambda x, lib: lib.cummin(x, dim=-1),
        "logcumsumexp": lambda x, lib: lib.logcumsumexp(x, 0),
        "no such dim": lambda x, lib: x.cumprod(2),
        "nanmean": lambda x, lib: x.nanmean(),
        "nanmean along 0": lambda x, lib: lib.nanmean(x, 0, True),
    }
    assert_agree(cases,
                 [*INPUTS[:-1], [1.0, -inf, 2.0], [-inf, -inf, inf, 1.0, nan], [nan, 1.0, nan],
                         ([100.0, 1.0, 3.0], "float16")])


def test_gradients_of_scans_at_zeros_and_ties():
    cases = {"cumprod": lambda x: x.cumprod(0), "cummax": lambda x: x.cummax(0)[0],
             "cummin": lambda x: x.cummin(0)[0], "logcumsumexp": lambda x: x.logcumsumexp(0)}
    found = []
    for values in ([2.0, 0.0, 3.0, 4.0], [2.0, 0.0, 3.0, 0.0], [1.0, 2.0, 2.0, 1.0],
                   [800.0, 0, 1, 2]):
        for name, function in cases.items():
            grads = []
            for lib in (torch, tl):
                x = lib.tensor(values, dtype=lib.float64, requires_grad=True)
                y = (function(x) * lib.tensor([1.0, 10.0, -100.0, 1000.0])).sum()
                g, = lib.autograd.grad(y, [x], create_graph=True)
                again = lib.autograd.grad(g.sum(), [x])[0] if g.requires_grad else g
                grads.append([*g.tolist(), *(again.tolist() if name == "cumprod" else [])])
            if not np.allclose(*grads):
                found.append(f"{name} {values}: {grads}")
    assert not found, "\n".join(found)


def test_elements_replaced():
    index = [[0, 0, 1, 2], [1, 0, 1, 2]]
    cases = {
        "index_put": lambda x, lib: x.index_put((lib.tensor([0, 1]),), x[0] * 2),
        "accumulated": lambda x, lib: lib.index_put(x, (lib.tensor([0, 0]),), x[0], True),
        "by a mask": lambda x, lib: x.index_put((x > 1,), lib.tensor(7, dtype=x.dtype)),
        "in place": lambda x, lib: (x * 1).index_put_((lib.tensor([0]),), x[0]),
        "masked_scatter": lambda x, lib: x.masked_scatter(x > 1, x * 3),
        "of too few": lambda x, lib: x.masked_scatter(x > -9, x[0]),
        "put": lambda x, lib: lib.put(x, lib.tensor([0, -1]), x.reshape(-1)[:2]),
        **{f"{reduce} {own}": lambda x, lib, reduce=reduce, own=own: x.scatter_reduce(
            0, lib.tensor(index), x + 1, reduce, include_self=own)
           for reduce in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)},
        **{f"{reduce} of slices": lambda x, lib, reduce=reduce: x.index_reduce(
            0, lib.tensor([2, 0, 2]), x + 1, reduce, include_self=False)
           for reduce in ("prod", "mean", "amax", "amin")},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_agree(cases, [ROWS, ROWS * 0.5, (ROWS, "float16"), (ROWS, "int8")])


def test_gradients_of_scattered_reductions():
    index, found = [[0, 0, 1], [1, 0, 1]], []
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        # without its own elements PyTorch counts them among the ties of an extreme nevertheless
        for own in (True,) if reduce[0] == "a" else (True, False):
            grads = []
            for lib in (torch, tl):
                x = lib.tensor([[0.0, 1.0, 2.0], [3.0, 2.0, 0.0]], dtype=lib.float64)
                y = lib.tensor([[1.0, 0.0, 2.0], [3.0, 2.0, 2.0]], dtype=lib.float64)
                x.requires_grad_(), y.requires_grad_()
                out = x.scatter_reduce(0, lib.tensor(index), y, reduce, include_self=own)
                (out * lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).sum().backward()
                grads.append([x.grad.tolist(), y.grad.tolist()])
            if not np.allclose(*grads):
                found.append(f"{reduce} {own}: {grads}")
    assert not found, "\n".join(found)


def test_arrangements():
    cases = {
        "diag_embed": lambda x, lib: lib.diag_embed(x, 1),
        "diag_embed first": lambda x, lib: x.diag_embed(-1, 0, -1),
        "diagflat": lambda x, lib: x.diagflat(-2),
        "diagonal_scatter": lambda x, lib: x.diagonal_scatter(x.reshape(-1)[:3]),
        "select_scatter": lambda x, lib: x.select_scatter(x[0], 0, -1),
        "select_scatter of another": lambda x, lib: x.select_scatter(x[0], 0, 9),
        "slice_scatter": lambda x, lib: lib.slice_scatter(x, x[:, :2], 1, 0, 4, 2),
        "slice_scatter of another": lambda x, lib: lib.slice_scatter(x, x, 1, 1),
        "fill_diagonal_": lambda x, lib: (x * 1).fill_diagonal_(3),
        "wrapped": lambda x, lib: lib.zeros(7, 2).fill_diagonal_(3, wrap=True),
        "narrow_copy": lambda x, lib: lib.narrow_copy(x, 0, 1, 2),
        **{f"rot90 {k}": lambda x, lib, k=k: lib.rot90(x, k) for k in range(-1, 4)},
        "rot90 in no plane": lambda x, lib: x.rot90(1, (0, 0)),
        "unfold": lambda x, lib: x.unfold(0, 2, 1),
        "unfold by 2": lambda x, lib: x.unfold(-1, 1, 2),
        "unfold too much": lambda x, lib: x.unfold(0, 9, 1),
        "cartesian_prod": lambda x, lib: lib.cartesian_prod(x.reshape(-1)[:3], x.reshape(-1)[:2]),
        "of matrices": lambda x, lib: lib.cartesian_prod(x, x),
        "combinations": lambda x, lib: lib.combinations(x.reshape(-1)[:5], 3),
        "with repetition": lambda x, lib: lib.combinations(x.reshape(-1)[:3], 2, True),
        "more than there are": lambda x, lib: lib.combinations(x.reshape(-1)[:2], 4, True),
        "with none": lambda x, lib: lib.combinations(x.reshape(-1)[:0], 2, True),
        "block_diag": lambda x, lib: lib.block_diag(x, x[0], lib.ones((), dtype=x.dtype)),
        "vander": lambda x, lib: lib.vander(x.reshape(-1)[:3], 4),
        "vander of none": lambda x, lib: lib.vander(x.reshape(-1)[:3], 0, True),
        "split_with_sizes": lambda x, lib: x.split_with_sizes([1, 2]),
        "adjoint": lambda x, lib: lib.adjoint(x),
        "unravel_index": lambda x, lib: lib.unravel_index(lib.tensor([5, 1]), (2, 3)),
    }
    assert_agree(cases, [ROWS, ROWS * 0.5, (ROWS, "float16"), [1.0, 2.0]])
    for shapes in (((2, 1), 3, (1,)), (), ((2,), (3,)), ((0, 1), (1, 4)), ((-1,), (2,))):
        try:
            wanted = tuple(torch.broadcast_shapes(*shapes))
        except (RuntimeError, ValueError):
            with pytest.raises(RuntimeError):
                tl.broadcast_shapes(*shapes)
        else:
            assert tl.broadcast_shapes(*shapes) == wanted


def test_counts():
    cases = {
        "bincount": lambda x, lib: x.bincount(),
        "at least": lambda x, lib: lib.bincount(x, minlength=9),
        "weights": lambda x, lib: x.bincount(lib.arange(x.numel()) * 0.5),
        "other weights": lambda x, lib: x.bincount(lib.ones(50)),
        "histc": lambda x, lib: x.histc(4),
        "histc of a range": lambda x, lib: lib.histc(x, 4, 0, 1),
        "histc the wrong way": lambda x, lib: lib.histc(x, 4, 1, 0),
        "histogram": lambda x, lib: x.histogram(4),
        "edges": lambda x, lib: x.histogram(lib.tensor([0.0, 0.5, 1.0], dtype=x.dtype)),
        "density": lambda x, lib: lib.histogram(x, 3, range=(0.0, 1.0), density=True),
        "weighted": lambda x, lib: x.histogram(3, weight=x * 2),
        "no bins": lambda x, lib: x.histogram(0),
    }
    assert_agree(cases, [[1, 5, 1, 2], ([1, 5, 1], "uint8"), [-1, 2], [[1]], [True], [1.0, 1.0],
                         [0.1, 0.5, 0.9, 1.0, 0.0, 2.0, -1.0], [0.1, nan], [0.5, inf]])


def test_integrals_and_covariances():
    cases = {
        "trapezoid": lambda x, lib: lib.trapezoid(x),
        "apart": lambda x, lib: lib.trapezoid(x, dx=2, dim=0),
        "positions": lambda x, lib: lib.trapezoid(x, lib.tensor([0.0, 1.0, 3.0, 4.5])),
        "of each": lambda x, lib: lib.trapz(x, x),
        "cumulative": lambda x, lib: lib.cumulative_trapezoid(x, dim=0),
        "at positions": lambda x, lib: lib.cumulative_trapezoid(x, lib.tensor([0, 1, 3, 5])),
        "gradient": lambda x, lib: lib.gradient(x),
        "of order 2": lambda x, lib: lib.gradient(x, spacing=0.5, dim=0, edge_order=2),
        "spacings": lambda x, lib: lib.gradient(x, spacing=[2.0, 3.0]),
        "coordinates": lambda x, lib: lib.gradient(
            x, spacing=(lib.tensor([0.0, 1, 3, 6]),), dim=-1, edge_order=2),
        "cov": lambda x, lib: x.cov(),
        "cov of all": lambda x, lib: lib.cov(x, correction=0),
        "frequencies": lambda x, lib: x.cov(fweights=lib.tensor([1, 2, 3, 1])),
        "weights": lambda x, lib: x.cov(aweights=lib.tensor([0.1, 0.2, 0.3, 0.1])),
        "both weights": lambda x, lib: x.cov(fweights=lib.tensor([1, 2, 3, 1]), aweights=lib.tensor(
            [0.1, 0.2, 0.3, 0.1])),
        "float frequencies": lambda x, lib: x.cov(fweights=lib.ones(4)),
        "corrcoef": lambda x, lib: lib.corrcoef(x),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_agree(cases, [ROWS, ROWS * 0.5, [1.0, 2.0, 4.0, 8.0], 2.0])


def test_margins_and_classes():
    functions = {torch: torch.nn.functional, tl: tl.nn.functional}
    margins = [((1, 2),), ((1, 2), "constant", 2.5), ((-1, 1, 2, 0),), ((1,),), ((-2, -2),), ((),),
               *[((1, 2), mode) for mode in ("reflect", "replicate", "circular", "mirror")],
               *[((-1, 2), mode) for mode in ("reflect", "replicate", "circular")],
               *[((2, -1), mode) for mode in ("reflect", "replicate", "circular")],
               *[((4, 5), mode) for mode in ("reflect", "replicate", "circular")],
               *[((1, 1, 2, 1), mode) for mode in ("reflect", "replicate", "circular")],
               ((1, 1), "reflect", 1.0), ((1, 1, 1, 1, 1, 1), "replicate")]
    cases = {str(case): lambda x, lib, case=case: functions[lib].pad(x, *case) for case in margins}
    assert_agree(cases, [ROWS, ROWS[None] * 0.5, ROWS.reshape(1, 1, 3, 4) * 0.5, [1.0, 2.0, 3.0]])
    classes = {str(count): lambda x, lib, count=count: functions[lib].one_hot(x, count)
               for count in (-1, 5, 1, 0)}
    assert_agree(classes,
                 [[1, 0, 2], [[1], [0]], 1, [-1], [1.0], ([1], "int32"), np.zeros(0, np.int64)])


def test_strided_views():
    cases = {
        "windows": lambda x, lib: x.as_strided((2, 3), (1, 2)),
        "from an offset": lambda x, lib: lib.as_strided(x, (2, 2), (3, 1), 1),
        "of a row": lambda x, lib: x[1].as_strided((2,), (1,)),
        "out of the storage": lambda x, lib: x.as_strided((9, 9), (9, 9)),
        "of no elements": lambda x, lib: x.as_strided((0, 2), (100, 1), 3),
        "without strides": lambda x, lib: x.as_strided((2,), ()),
        "before": lambda x, lib: x.as_strided((2,), (1,), -1),
        "backwards": lambda x, lib: x.as_strided((2,), (-1,)),
        "scatter": lambda x, lib: lib.as_strided_scatter(x, x[:2, :2] * 3, (2, 2), (3, 1), 1),
    }
    assert_agree(cases, [ROWS, (ROWS, "float16")])
    grads = []
    for lib in (torch, tl):
        x = lib.arange(12, dtype=lib.float64).reshape(3, 4).requires_grad_()
        y = x.t() * 1
        z = y.as_strided((3, 3), (2, 1)) * lib.arange(9.0).reshape(3, 3)
        w = x[1:].as_strided((2, 2), (4, 1), 4) * lib.arange(4.0).reshape(2, 2)
        grads.append(lib.autograd.grad(z.sum() + w.sum(), [x])[0].tolist())
    assert grads[0] == grads[1]
    x, y = torch.zeros(6), tl.zeros(6)
    for z in (x, y):
        z.as_strided((2, 2), (3, 1), 1).add_(1)
    assert x.tolist() == y.tolist()
