"""Data and files beside PyTorch's: batches of the same structure, and files that both read."""

import io
import zipfile
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.utils import data as ours

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.utils.data")

Pair = namedtuple("Pair", "a b")
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64")


def described(value):
    """A value in the types of neither library."""
    if isinstance(value, (tl.Tensor, torch.Tensor)):
        x = value.detach()
        values = (x.double() if x.dtype.is_floating_point else x).tolist()
        return str(x.dtype).rpartition(".")[2], tuple(x.shape), values, value.requires_grad
    if isinstance(value, (tl.Size, torch.Size)):
        return "Size", tuple(value)
    if isinstance(value, (tl.dtype, torch.dtype)):
        return str(value).rpartition(".")[2]
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.tolist()
    if hasattr(value, "keys"):
        return type(value).__name__, [(key, described(value[key])) for key in value]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(one) for one in value]
    return type(value).__name__, value


def examples(library):
    tensors = [library.tensor([float(i), 2.0]) for i in range(4)]
    return {
        "tensors": tensors, "pairs": [(x, i) for i, x in enumerate(tensors)],
        "lists": [[i, 2.5] for i in range(4)], "dicts": [{"x": x, "n": "a"} for x in tensors],
        "named": [Pair(i, (i, float(i))) for i in range(4)], "floats": [0.5] * 4,
        "bools": [True, False] * 2, "strings": list("abcd"), "bytes": [b"a"] * 4,
        "arrays": [np.full(2, i, np.int16) for i in range(4)],
        "numbers": [np.float32(i) for i in range(4)], "ordered": [OrderedDict(a=i) for i in "abcd"],
        "nested": [{"a": [(i, [i])]} for i in range(4)], "numpy bools": [np.bool_(1)] * 4,
    }


@each("kind", examples(tl))
@each("size, workers", [(None, 0), (1, 0), (3, 0), (3, 1)])
def test_batches(kind, size, workers):
    found = list(ours.DataLoader(examples(tl)[kind], batch_size=size, num_workers=workers))
    wanted = list(theirs.DataLoader(examples(torch)[kind], batch_size=size))
    assert described(found) == described(wanted)


@each("batch", [
    [object()], [None], [[1], [1, 2]], [np.array(["a"])], [{"a": 1}, {"b": 2}], []],
    ids=lambda batch: repr(batch)[:20])
def test_batches_that_are_refused(batch):
    with pytest.raises(Exception) as wanted:
        theirs.default_collate(batch)
    with pytest.raises(wanted.type):
        ours.default_collate(batch)


CALLS = {
    "tensors": lambda library, data: data.TensorDataset(library.arange(6), library.ones(6, 2)),
    "joined": lambda library, data: data.ConcatDataset(["ab", "cde"]),
    "stacked": lambda library, data: data.StackDataset(a="abc", b=range(3)),
    "subset": lambda library, data: data.Subset(range(10, 20), [3, 1]),
    "subset of tensors": lambda library, data: data.Subset(
        data.TensorDataset(library.arange(6)), [4, 2, 0]),
}


@each("name", CALLS)
def test_datasets(name):
    mine, other = CALLS[name](tl, ours), CALLS[name](torch, theirs)
    assert len(mine) == len(other)
    for options in ({}, {"batch_size": 2}, {"batch_size": 2, "drop_last": True},
                    {"batch_size": None}, {"sampler": [1, 0]}, {"batch_sampler": [[0, 1], [0]]}):
        assert described(list(ours.DataLoader(mine, **options))) == described(
            list(theirs.DataLoader(other, **options)))


@each("options", [
    {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True},
    {"sampler": [1], "shuffle": True}, {"batch_sampler": [[1]], "batch_size": 2},
    {"batch_size": None, "drop_last": True}, {"batch_size": 0}, {"multiprocessing_context": "fork"},
    {"multiprocessing_context": "spoon", "num_workers": 1}, {"num_workers": 1,
                                         "multiprocessing_context": 3}])
def test_arguments_that_are_refused(options):
    with pytest.raises((ValueError, TypeError)) as wanted:
        theirs.DataLoader(range(3), **options)
    with pytest.raises(wanted.type):
        ours.DataLoader(range(3), **options)


@each("call", [
    lambda data: data.DataLoader([], shuffle=True), lambda data: data.RandomSampler([1], 1),
    lambda data: data.RandomSampler([1], num_samples=-1), lambda data: data.BatchSampler([1], 2, 0),
    lambda data: data.WeightedRandomSampler([1.0], 1, 2), lambda data: data.Subset([1], [5])[0],
    lambda data: data.random_split(range(3), [2, 2]), lambda data: data.StackDataset([1], [1, 2]),
    lambda data: data.DistributedSampler([1], 2, 5), lambda data: data.ConcatDataset([[1]])[5],
    lambda data: data.random_split(range(3), [0.5, 0.6]),
    lambda data: len(data.DataLoader(iter([1])))])
def test_errors(call):
    with pytest.raises(Exception) as wanted:
        call(theirs)
    with pytest.raises(wanted.type):
        call(ours)


@each("size, replicas, drop_last", [
    (10, 3, False), (10, 3, True), (2, 5, False)])
def test_shares(size, replicas, drop_last):
    for rank in range(replicas):
        options = {"num_replicas": replicas, "rank": rank, "shuffle": False, "drop_last": drop_last}
        assert list(ours.DistributedSampler(range(size), **options)) == list(
            theirs.DistributedSampler(range(size), **options))


# ---- files ---------------------------------------------------------------------------------------

def content():
    """What training scripts put into a checkpoint."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.LSTM(4, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    model[1](model[0](torch.randn(5, 3))).sum().backward()
    optimizer.step()
    x = torch.randn(4, 5)
    return {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(),
        "scheduler": torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 5]).state_dict(),
        "random": torch.get_rng_state(), "best": np.float64(0.5),
        "array": np.arange(6).reshape(2, 3), "leaf": torch.ones(2).requires_grad_(),
        "views": [x, x[1:], x.t(), x[::2, 1], x.expand(2, 4, 5)], "size": x.shape,
        "types": [torch.float32, torch.bfloat16, torch.int64],
        "dtypes": [torch.arange(3).to(getattr(torch, dtype)) for dtype in DTYPES],
        "empty": [torch.empty(0), torch.empty(2, 0, 3)], "scalar": torch.tensor(2.5), "set": {1, 2},
        "plain": [None, True, 2**70, -1, 1.5, "é", b"bytes", (1, (2,)), 1j, bytearray(b"x")],
    }


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("options", [
    {}, {"pickle_protocol": 3}, {"pickle_protocol": 4}, {"pickle_protocol": 5},
    {"_use_new_zipfile_serialization": False}], ids=str)
def test_files_of_torch_save_are_read(options, mmap, tmp_path):
    wanted = content()
    torch.save(wanted, tmp_path / "x.pt", **options)
    found = tl.load(tmp_path / "x.pt", mmap=mmap)
    assert described(found) == described(wanted)
    assert found["model"]._metadata == wanted["model"]._metadata
    assert found["views"][2].stride() == wanted["views"][2].stride()
    found["views"][0].zero_()
    assert not any(view.any() for view in found["views"])


def test_files_of_a_big_endian_machine_are_read(tmp_path):
    wanted = {"x": torch.randn(3), "n": torch.arange(4), "h": torch.ones(2).bfloat16()}
    torch.save(wanted, tmp_path / "x.pt")
    data = (tmp_path / "x.pt").read_bytes()
    for x in wanted.values():
        raw = x.view(torch.uint8).numpy()
        data = data.replace(raw.tobytes(), raw.reshape(-1, x.itemsize)[:, ::-1].tobytes())
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data.replace(b"little", b"big   "))) as old:
        with zipfile.ZipFile(out, "w") as new:
            for member in old.infolist():
                member_data = data_of(data, member)
                new.writestr(member.filename, b"big" if member.filename.endswith("byteorder")
                             else member_data)
    assert described(tl.load(io.BytesIO(out.getvalue()))) == described(wanted)


def data_of(data, member):
    """The bytes of a member of a zip file, whatever its checksum says."""
    start = member.header_offset
    start += 30 + sum(int.from_bytes(data[start + at:start + at + 2], "little") for at in (26, 28))
    return data[start:start + member.file_size]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [
    lambda: torch.nn.Linear(1, 1),
    lambda: torch.ones(2, dtype=torch.complex32), lambda: torch.quantize_per_tensor(
        torch.ones(2), 0.1, 0, torch.quint8)], ids=["module", "dtype", "quantized"])
def test_what_is_not_read_is_named(make, tmp_path):
    torch.save({"a": make()}, tmp_path / "x.pt")
    with pytest.raises(tl.serialization.LoadError, match="torch|complex32"):
        tl.load(tmp_path / "x.pt")


def test_safetensors_files_both_ways(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    state = {f"layer.{dtype}": torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
             for dtype in DTYPES} | {"empty": torch.empty(0, 2), "scalar": torch.tensor(1.5)}
    safetensors.save_file(state, tmp_path / "theirs", metadata={"format": "pt", "more": "é"})
    found = tl.load(tmp_path / "theirs")
    assert {k: described(v) for k, v in found.items()} == {
        k: described(v) for k, v in state.items()}
    tl.save(found, tmp_path / "ours")
    again = safetensors.load_file(tmp_path / "ours")
    assert {k: described(v) for k, v in again.items()} == {
        k: described(v) for k, v in state.items()}
    tl.save({"a": {"b": tl.ones(2), "c": [1, "x"]}, "tied": [found["scalar"]] * 2}, tmp_path / "n")
    assert set(safetensors.load_file(tmp_path / "n")) == {"a.b", "tied.0"}


def test_models_move_between_the_libraries(tmp_path):
    torch.manual_seed(1)
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)

    def model(library):
        return library.nn.Sequential(library.nn.Linear(3, 4), library.nn.BatchNorm1d(4),
                                     library.nn.Tanh(), library.nn.Linear(4, 2)).eval()

    mine, other = model(tl), model(torch)
    torch.save(other.state_dict(), tmp_path / "x.pt")
    mine.load_state_dict(tl.load(tmp_path / "x.pt", weights_only=True))
    wanted = other(torch.from_numpy(x)).detach().numpy()
    assert np.allclose(mine(tl.from_numpy(x)).detach().numpy(), wanted, atol=1e-6)


MODULES = {
    "Linear": ((3, 4), {}), "Bilinear": ((3, 2, 4), {}), "Embedding": ((5, 3), {"padding_idx": 1}),
    "EmbeddingBag": ((5, 3), {}), "Conv1d": ((2, 4, 3), {"groups": 2}), "Conv2d": ((2, 3, 3), {}),
    "Conv3d": ((1, 2, 2), {"bias": False}), "ConvTranspose2d": ((2, 3, 3), {}),
    "BatchNorm2d": ((3,), {}), "InstanceNorm1d": (
        (3,), {"affine": True, "track_running_stats": True}),
    "LayerNorm": (((2, 3),), {}), "GroupNorm": ((2, 4), {}), "RMSNorm": ((3,), {}),
    "PReLU": ((3,), {}), "RNN": ((3, 4), {"bidirectional": True}),
    "GRU": ((3, 4), {"num_layers": 2}), "LSTM": ((3, 4), {"proj_size": 2}),
    "LSTMCell": ((3, 4), {}), "MultiheadAttention": ((4, 2), {"add_bias_kv": True}),
    "TransformerEncoderLayer": ((4, 2, 8), {}), "TransformerDecoderLayer": ((4, 2, 8), {}),
    "AdaptiveLogSoftmaxWithLoss": ((4, 9, [2, 5]), {}),
}


@pytest.mark.parametrize("name", MODULES)
def test_states_of_modules_move_both_ways(name, tmp_path):
    args, options = MODULES[name]
    mine, other = (getattr(lib.nn, name)(*args, **options) for lib in (tl, torch))
    state = other.state_dict()
    torch.save(state, tmp_path / "x.pt")
    mine.load_state_dict(tl.load(tmp_path / "x.pt"))
    assert described(dict(mine.state_dict())) == described(dict(state))
    mine = getattr(tl.nn, name)(*args, **options)
    tl.save({key: value.contiguous() for key, value in mine.state_dict().items()},
            tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as arrays:
        other.load_state_dict({key: torch.from_numpy(arrays[key]) for key in arrays})
    assert described(dict(other.state_dict())) == described(dict(mine.state_dict()))


@pytest.mark.parametrize("name", [
    "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "LBFGS", "NAdam",
    "RAdam", "RMSprop", "Rprop", "SGD"])
def test_optimizers_go_on_from_files_of_torch_save(name, tmp_path):
    values = np.random.default_rng(0).normal(size=(3, 4))

    def make(library):
        p = library.tensor(values.tolist(), dtype=library.float64, requires_grad=True)
        options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
        return p, getattr(library.optim, name)([p], lr=0.05, **options)

    def steps(p, optimizer, count):
        def closure():
            optimizer.zero_grad()
            loss = (p * p * p.exp()).sum()
            loss.backward()
            return loss
        for _ in range(count):
            optimizer.step(closure)

    other = make(torch)
    steps(*other, 3)
    torch.save({"p": other[0].detach(), "optimizer": other[1].state_dict()}, tmp_path / "x.pt")
    mine = make(tl)
    checkpoint = tl.load(tmp_path / "x.pt")
    with tl.no_grad():
        mine[0].copy_(checkpoint["p"])
    mine[1].load_state_dict(checkpoint["optimizer"])
    for pair in (mine, other):
        steps(*pair, 3)
    assert np.allclose(mine[0].detach().numpy(), other[0].detach().numpy(), rtol=1e-9, atol=1e-12)
