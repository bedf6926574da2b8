"""NumPy, buffers, pickles, copies and Python's own protocols."""

import copy
import gc
import pickle

import numpy as np
import pytest
from process import resident_bytes

import tensorlib as tl
from tensorlib.testing import assert_close

SHARED = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
          "float16", "float32", "float64"]


class TestNumPy:
    @pytest.mark.parametrize("dtype", SHARED)
    def test_from_numpy_shares_memory(self, dtype):
        array = np.ones((2, 3), dtype=dtype)
        x = tl.from_numpy(array)
        assert x.dtype == getattr(tl, dtype)
        array[0, 1] = 0
        assert x[0, 1].item() == 0
        x[1, 2] = 0
        assert array[1, 2] == 0

    @pytest.mark.parametrize("dtype", SHARED)
    def test_numpy_shares_memory(self, dtype):
        x = tl.ones(2, 3, dtype=getattr(tl, dtype))
        array = x.numpy()
        assert array.dtype == dtype and array.shape == (2, 3)
        array[0, 0] = 0
        assert x[0, 0].item() == 0
        x[1, 1] = 0
        assert array[1, 1] == 0

    @pytest.mark.parametrize("view", [
        lambda a: a.T, lambda a: a[:, ::2], lambda a: a[1], lambda a: a[1, 1], lambda a: a[:0],
        lambda a: a[None], lambda a: np.broadcast_to(a[:1], (4, 6)).copy()[::3],
    ])
    def test_strides_survive_the_round_trip(self, view):
        array = np.asarray(view(np.arange(24.0).reshape(4, 6)))
        x = tl.from_numpy(array)
        back = x.numpy()
        assert tuple(x.shape) == array.shape
        assert np.array_equal(back, array)
        if array.size:
            assert np.shares_memory(back, array)

    @pytest.mark.parametrize("view", [lambda a: a[::-1], lambda a: a[:, ::-1], lambda a: a[::-2].T])
    def test_negative_strides_share_memory(self, view):
        """PyTorch refuses these."""
        array = view(np.arange(24.0).reshape(4, 6))
        x = tl.from_numpy(array)
        assert_close(x * 2, array * 2)
        assert np.shares_memory(x.numpy(), array)

    def test_a_view_of_a_tensor_gives_a_view(self):
        x = tl.arange(6.0).reshape(2, 3)
        array = x.t()[1:].numpy()
        assert np.array_equal(array, [[1, 4], [2, 5]])
        array[...] = 0
        assert x.sum().item() == 3.0

    def test_memory_outlives_either_side(self):
        x = tl.from_numpy(np.full(100_000, 3.0))
        array = tl.full((100_000,), 4.0).numpy()
        gc.collect()
        churn = [np.zeros(100_000), tl.zeros(100_000)]
        assert x.mean().item() == 3.0 and array.mean() == 4.0
        del churn

    def test_tensor_copies_an_array(self):
        array = np.zeros(3)
        x = tl.tensor(array)
        array[0] = 1
        assert x.tolist() == [0.0, 0.0, 0.0]

    def test_a_read_only_array_is_never_written_through(self):
        array = np.zeros(3)
        array.flags.writeable = False
        try:
            x = tl.from_numpy(array)
            x += 1
        except (RuntimeError, ValueError):
            pass
        assert array.tolist() == [0.0, 0.0, 0.0]

    def test_a_broadcast_array_is_never_written_through(self):
        array = np.broadcast_to(np.zeros(1), (3,))
        with pytest.raises(RuntimeError, match="read-only"):
            tl.from_numpy(array)[0] = 1
        assert array.tolist() == [0.0, 0.0, 0.0]

    def test_foreign_byte_order_is_not_shared_but_copied(self):
        array = np.array([1.0, 2.0]).astype(np.dtype(np.float64).newbyteorder("S"))
        with pytest.raises(ValueError, match="not in this machine's byte order"):
            tl.from_numpy(array)
        assert tl.tensor(array).tolist() == [1.0, 2.0]

    def test_misaligned_memory_is_copied(self):
        array = np.frombuffer(b"\0" + np.arange(3.0).tobytes(), dtype=np.uint8)[1:].view(np.float64)
        assert (tl.tensor(array) + 1).tolist() == [1.0, 2.0, 3.0]

    def test_array_protocol(self):
        x = tl.ones(2, 3)
        assert np.asarray(x).dtype == np.float32
        assert np.array(x, dtype=np.float64).dtype == np.float64
        assert np.shares_memory(np.asarray(x), x.numpy())
        assert not np.shares_memory(np.array(x), x.numpy())
        assert np.array_equal(np.vstack([x, x]), np.ones((4, 3)))

    def test_numpy_numbers_are_numbers(self):
        x = tl.ones(2)
        assert (x * np.float64(2.5)).tolist() == [2.5, 2.5]
        assert (x + np.int64(1)).dtype == tl.float32
        assert x[np.int64(1)].item() == 1.0
        assert x.sum(np.int64(0)).item() == 2.0
        assert x.reshape(np.int64(2), 1).shape == (2, 1)

    def test_numpy_on_a_graph_names_detach(self):
        x = tl.ones(2, requires_grad=True)
        for convert in (lambda: x.numpy(), lambda: (x * 2).numpy(), lambda: np.asarray(x)):
            with pytest.raises(RuntimeError, match="detach"):
                convert()
        assert np.shares_memory(x.detach().numpy(), x.detach().numpy())

    def test_bfloat16_has_no_array(self):
        with pytest.raises(TypeError, match="(?i)bfloat16"):
            tl.ones(2, dtype=tl.bfloat16).numpy()


class TestBuffers:
    def test_from_a_memoryview(self):
        x = tl.tensor(memoryview(np.arange(6, dtype=np.int32)).cast("B").cast("i", (2, 3)))
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_frombuffer_shares_memory(self):
        buffer = bytearray(np.arange(4, dtype=np.int16).tobytes())
        x = tl.frombuffer(buffer, dtype=tl.int16)
        assert x.tolist() == [0, 1, 2, 3]
        x[0] = 7
        assert buffer[0] == 7

    def test_an_exported_buffer_shares_memory(self):
        x = tl.arange(3, dtype=tl.int64)
        view = memoryview(x.numpy())
        assert view.shape == (3,) and view.format in ("l", "q")
        x[0] = 9
        assert view[0] == 9


class TestCopies:
    def test_a_pickle_keeps_values_dtype_and_requires_grad(self):
        for dtype in (tl.float32, tl.bfloat16, tl.bool, tl.int64):
            x = tl.ones(2, 3, dtype=dtype)
            twin = pickle.loads(pickle.dumps(x))
            assert twin.dtype == dtype and twin.tolist() == x.tolist()
        assert pickle.loads(pickle.dumps(tl.ones(2, requires_grad=True))).requires_grad

    @pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
    def test_every_pickle_protocol(self, protocol):
        x = tl.arange(6.0).reshape(2, 3).t()
        twin = pickle.loads(pickle.dumps(x, protocol))
        assert twin.tolist() == x.tolist()

    def test_dtypes_survive(self):
        assert pickle.loads(pickle.dumps(tl.float32)) is tl.float32
        assert copy.deepcopy(tl.int8) is tl.int8

    def test_deepcopy_shares_nothing(self):
        x = tl.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        twin = copy.deepcopy(x)
        with tl.no_grad():
            twin.add_(1)
        twin.grad.add_(1)
        assert x.tolist() == [1.0, 1.0] and x.grad.tolist() == [2.0, 2.0]
        assert twin.is_leaf and twin.requires_grad

    def test_deepcopy_keeps_what_was_shared_shared(self):
        x = tl.ones(2)
        first, second = copy.deepcopy([x, x])
        assert first is second and first is not x

    def test_deepcopy_and_pickle_of_a_slice(self):
        x = tl.arange(100_000.0)[5:7]
        assert copy.deepcopy(x).tolist() == [5.0, 6.0]
        assert pickle.loads(pickle.dumps(x)).tolist() == [5.0, 6.0]


REPRS = [
    (lambda: tl.tensor([1.0, 2.0]), "tensor([1., 2.])"),
    (lambda: tl.tensor([0.1, 2.5]), "tensor([0.1000, 2.5000])"),
    (lambda: tl.tensor([1, 20, -3]), "tensor([ 1, 20, -3])"),
    (lambda: tl.tensor(3), "tensor(3)"),
    (lambda: tl.tensor(3.5), "tensor(3.5000)"),
    (lambda: tl.tensor([True, False]), "tensor([ True, False])"),
    (lambda: tl.tensor([]), "tensor([])"),
    (lambda: tl.zeros(2, 0), "tensor([], size=(2, 0))"),
    (lambda: tl.tensor([1.0], dtype=tl.float64), "tensor([1.], dtype=tensorlib.float64)"),
    (lambda: tl.tensor([1], dtype=tl.int8), "tensor([1], dtype=tensorlib.int8)"),
    (lambda: tl.tensor([1.0], dtype=tl.bfloat16), "tensor([1.], dtype=tensorlib.bfloat16)"),
    (lambda: tl.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
    (lambda: tl.tensor([float("nan"), float("inf"), -1.5]), "tensor([    nan,     inf, -1.5000])"),
    (lambda: tl.tensor([1e-8, 1.0]), "tensor([1.0000e-08, 1.0000e+00])"),
    (lambda: tl.tensor([1e10, 1.0]), "tensor([1.0000e+10, 1.0000e+00])"),
    (lambda: tl.eye(2), "tensor([[1., 0.],\n        [0., 1.]])"),
    (lambda: tl.arange(8).reshape(2, 2, 2),
     "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])"),
]


class TestProtocols:
    @pytest.mark.parametrize("make, text", REPRS, ids=[text[:30] for _, text in REPRS])
    def test_repr(self, make, text):
        assert repr(make()) == str(make()) == text

    def test_repr_of_a_result_names_its_operation(self):
        y = tl.ones(1, requires_grad=True).tanh()
        assert repr(y).startswith("tensor([0.7616], grad_fn=<TanhBackward0")

    def test_repr_of_a_large_tensor_is_short(self):
        text = repr(tl.arange(1_000_000))
        assert text == "tensor([     0,      1,      2,  ..., 999997, 999998, 999999])"
        assert len(repr(tl.zeros(200, 200, 200))) < 10_000

    def test_format(self):
        x = tl.tensor(2.5)
        assert f"{x:.1f}" == "2.5"
        assert f"{tl.tensor([1.0, 2.0])}" == "tensor([1., 2.])"
        with pytest.raises(TypeError):
            f"{tl.ones(2):.1f}"

    def test_numbers(self):
        assert float(tl.tensor(2.5)) == 2.5
        assert int(tl.tensor([[7]])) == 7
        assert complex(tl.tensor(1.5)) == 1.5
        assert range(10)[tl.tensor(3)] == 3
        assert round(float(tl.tensor(2.25)), 1) == 2.2

    @pytest.mark.parametrize("make, truth", [
        (lambda: tl.tensor(0.0), False), (lambda: tl.tensor([0.5]), True),
        (lambda: tl.tensor(float("nan")), True), (lambda: tl.tensor(False), False),
    ])
    def test_bool(self, make, truth):
        assert bool(make()) is truth

    def test_len_and_containment(self):
        assert len(tl.zeros(3, 2)) == 3
        assert 2.0 in tl.tensor([1.0, 2.0])
        assert 3.0 not in tl.tensor([1.0, 2.0])

    def test_iteration_gives_views_in_order(self):
        x = tl.arange(6.0).reshape(3, 2)
        rows = list(x)
        assert [row.tolist() for row in rows] == x.tolist()
        rows[1].zero_()
        assert x[1].tolist() == [0.0, 0.0]
        first, second = tl.tensor([1.0, 2.0])
        assert (first.item(), second.item()) == (1.0, 2.0)

    def test_iteration_is_lazy(self):
        """PyTorch makes a million Tensors before it gives the first."""
        x = tl.zeros(1_000_000)
        before = resident_bytes()
        first = next(iter(x))
        assert resident_bytes() - before < 20e6
        assert first.item() == 0.0

    def test_iteration_keeps_gradients(self):
        x = tl.ones(3, requires_grad=True)
        first, *_ = x
        (first * 5).backward()
        assert x.grad.tolist() == [5.0, 0.0, 0.0]

    def test_hash_is_identity(self):
        a, b = tl.ones(1), tl.ones(1)
        assert hash(a) == hash(a) and len({a, b, a}) == 2
        table = {a: "a", b: "b"}
        assert table[a] == "a" and table[b] == "b"

    def test_items_are_python_numbers(self):
        assert type(tl.tensor(1).item()) is int
        assert type(tl.tensor(1.0).item()) is float
        assert type(tl.tensor(True).item()) is bool
        assert tl.tensor([[1, 2]]).tolist() == [[1, 2]]
        assert type(tl.tensor(2.5).tolist()) is float

    def test_shape_behaves_as_a_tuple(self):
        x = tl.zeros(2, 3)
        assert x.shape == (2, 3) and x.size() == (2, 3) and tuple(x.shape) == (2, 3)
        assert x.size(1) == 3 and x.shape[-1] == 3 and len(x.shape) == x.ndim == x.dim() == 2
        assert x.numel() == 6
        rows, columns = x.shape
        assert (rows, columns) == (2, 3)

    def test_reflected_operators_with_lists_do_not_recurse(self):
        for operation in (lambda: [1.0] + tl.ones(1), lambda: tl.ones(1) - [1.0]):
            with pytest.raises(TypeError):
                operation()


def test_what_numpy_makes_of_tensors_is_given_back():
    x = tl.ones(2, requires_grad=True)
    made = np.concatenate([x, x])
    assert tl.from_numpy(made) is made
    made.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert x.new(size=(2, 3)).shape == (2, 3)
