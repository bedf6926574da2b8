"""Files that one library writes and the other reads: tensors, and training that goes on."""

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tensorlib as tl  # noqa: E402

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
          "float16", "bfloat16", "float32", "float64"]
OPTIMIZERS = {
    "Adadelta": {}, "Adafactor": {}, "Adagrad": {}, "Adam": {"amsgrad": True},
    "AdamW": {"weight_decay": 0.1}, "Adamax": {}, "ASGD": {}, "LBFGS": {}, "NAdam": {}, "RAdam": {},
    "RMSprop": {"momentum": 0.9, "centered": True}, "Rprop": {},
    "SGD": {"momentum": 0.9, "nesterov": True}}
SCHEDULERS = {
    "StepLR": (2,), "MultiStepLR": ([2, 4],), "ExponentialLR": (0.5,), "ConstantLR": (),
    "LinearLR": (), "CosineAnnealingLR": (9,), "CosineAnnealingWarmRestarts": (3,),
    "PolynomialLR": (8,), "OneCycleLR": (0.1, 20), "CyclicLR": (0.001, 0.1)}


def shown(x):
    """What of a tensor, of either library, must be the same in the other."""
    values = x.detach().float() if str(x.dtype).endswith("bfloat16") else x.detach()
    return (type(x).__name__, str(x.dtype).rpartition(".")[2], tuple(x.shape), tuple(x.stride()),
            x.requires_grad, values.numpy().tolist())


def sent(obj, sender, receiver, tmp_path, name="x.pt", **options):
    sender.save(obj, tmp_path / name)
    return receiver.load(tmp_path / name, **options)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("name", ["x.pt", "x.pth", "x.bin", "x.pth.tar", "x.ckpt", "x"])
def test_torch_load_opens_our_files_with_its_safe_default(name, mmap, tmp_path):
    def tensors(library):
        x = library.arange(12.0).reshape(3, 4)
        return {
            **{dtype: library.tensor([[0, 1, 1]]).to(getattr(library, dtype)) for dtype in DTYPES},
            "whole": x, "row": x[1], "turned": x.t(), "some": x[1:, ::2], "scalar": x[0, 0] + 0.5,
            "empty": library.ones(2, 0, 3), "none": library.ones(0),
            "alone": library.ones(2, 3, 4, 5).permute(0, 3, 1, 2),
            "spread": library.ones(1, 3).expand(2, 3).contiguous(),
            "leaf": library.ones(2, requires_grad=True),
            "p": library.nn.Parameter(library.ones(2)),
            "frozen": library.nn.Parameter(library.ones(2), requires_grad=False)}

    found = sent(tensors(tl), tl, torch, tmp_path, name, mmap=mmap)
    wanted = tensors(torch)
    assert {key: shown(x) for key, x in found.items()} == {
        key: shown(x) for key, x in wanted.items()}
    found["whole"].zero_()
    assert not found["row"].any() and not found["turned"].any() and not found["some"].any()


def test_containers_and_values_that_torch_load_takes(tmp_path):
    obj = {"plain": [None, True, False, 0, 255, -1, 2**70, 1.5, "é", b"", b"a\xff", (), (1,)],
           "set": {1, 2}, "complex": 1j, "bytes": bytearray(b"x"), 3: {"deep": [[[]]]}}
    assert sent(obj, tl, torch, tmp_path) == obj
    found = sent({"size": tl.Size([2, 3]), "dtypes": [tl.float32, tl.bfloat16, tl.uint16, tl.bool],
                  "device": tl.device("cpu"), "tied": [x := tl.ones(2), x]}, tl, torch, tmp_path)
    assert found["size"] == torch.Size([2, 3]) and type(found["size"]) is torch.Size
    assert found["dtypes"] == [torch.float32, torch.bfloat16, torch.uint16, torch.bool]
    assert found["device"] == torch.device("cpu") and found["tied"][0] is found["tied"][1]
    buffer = sent(tl.nn.Buffer(tl.ones(2), persistent=False), tl, torch, tmp_path)
    assert isinstance(buffer, torch.nn.Buffer) and not buffer.persistent
    buffer = sent(torch.nn.Buffer(torch.ones(2), persistent=False), torch, tl, tmp_path)
    assert type(buffer) is tl.nn.Buffer and not buffer.persistent


def test_attributes_of_parameters_go_both_ways(tmp_path):
    for sender, receiver in ((tl, torch), (torch, tl)):
        weight = sender.nn.Parameter(sender.ones(2))
        weight.group = "slow"
        found = sent([weight, weight], sender, receiver, tmp_path)
        assert type(found[0]) is receiver.nn.Parameter and found[0].group == "slow"
        assert found[0] is found[1]


def test_an_open_file_is_one_of_torch_load(tmp_path):
    file = io.BytesIO()
    tl.save({"a": tl.arange(3)}, file)
    file.seek(0)
    assert torch.load(file)["a"].tolist() == [0, 1, 2]
    with open(tmp_path / "x.pt", "wb", buffering=0) as file:
        tl.save({"a": tl.arange(3)}, file)
    assert torch.load(tmp_path / "x.pt")["a"].tolist() == [0, 1, 2]


def test_what_torch_loads_it_saves_for_us_again(tmp_path):
    """Once there and back, every class of module state is as it was."""
    model = tl.nn.Sequential(tl.nn.Conv2d(1, 2, 3), tl.nn.BatchNorm2d(2), tl.nn.LSTM(3, 2))
    state = sent(model.state_dict(), tl, torch, tmp_path)
    assert state._metadata == model.state_dict()._metadata
    again = sent(state, torch, tl, tmp_path)
    assert {key: shown(x) for key, x in again.items()} == {
        key: shown(x) for key, x in model.state_dict().items()}


def test_whole_models_of_the_other_library_are_refused_by_name(tmp_path):
    torch.save(torch.nn.Linear(1, 1), tmp_path / "x.pt")
    for trust, words in ((None, "weights_only=False"), (False, "state_dict")):
        with pytest.raises(tl.serialization.LoadError, match=f"torch.nn.modules.linear.*{words}"):
            tl.load(tmp_path / "x.pt", weights_only=trust)


# ---- training goes on in the other library -------------------------------------------------------

def a_run(library, name, scheduler):
    """A small model with an optimiser, the same in both libraries."""
    values = np.random.default_rng(0)
    model = library.nn.Sequential(
        library.nn.Linear(3, 4), library.nn.BatchNorm1d(4), library.nn.Tanh(),
        library.nn.Linear(4, 1)).double()
    with library.no_grad():
        for parameter in model.parameters():
            parameter.copy_(library.from_numpy(values.normal(size=tuple(parameter.shape))))
    optimizer = getattr(library.optim, name)(model.parameters(), lr=0.05, **OPTIMIZERS[name])
    schedule = getattr(library.optim.lr_scheduler, scheduler)(optimizer, *SCHEDULERS[scheduler])
    return {"model": model, "optimizer": optimizer, "schedule": schedule}


def losses(library, run, first, last):
    """Those of some steps, whose inputs depend on the step alone."""
    found = []
    for step in range(first, last):
        x = library.from_numpy(np.random.default_rng(step + 1).normal(size=(8, 3)))
        y = x.sum(1, keepdim=True)

        def closure(x=x, y=y):
            run["optimizer"].zero_grad()
            loss = ((run["model"](x) - y) ** 2).mean()
            loss.backward()
            return loss

        found.append(float(run["optimizer"].step(closure)))
        run["schedule"].step()
    return found


def gone_on(sender, receiver, name, scheduler, tmp_path):
    """The losses of a run that stops in one library and goes on in the other."""
    begun = a_run(sender, name, scheduler)
    start = losses(sender, begun, 0, 4)
    sender.save({key: part.state_dict() for key, part in begun.items()}, tmp_path / "x.pt")
    resumed = a_run(receiver, name, scheduler)
    losses(receiver, resumed, 7, 8)                    # another state, which is to be forgotten
    state = receiver.load(tmp_path / "x.pt")
    for key, part in resumed.items():
        part.load_state_dict(state[key])
    return start + losses(receiver, resumed, 4, 8)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_in_either_library(name, tmp_path):
    whole = losses(torch, a_run(torch, name, "StepLR"), 0, 8)
    for sender, receiver in ((tl, torch), (torch, tl), (tl, tl)):
        found = gone_on(sender, receiver, name, "StepLR", tmp_path)
        np.testing.assert_allclose(found, whole, rtol=1e-6, err_msg=f"from {sender.__name__}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_schedules_go_on_in_either_library(scheduler, tmp_path):
    whole = losses(torch, a_run(torch, "SGD", scheduler), 0, 8)
    for sender, receiver in ((tl, torch), (torch, tl)):
        found = gone_on(sender, receiver, "SGD", scheduler, tmp_path)
        np.testing.assert_allclose(found, whole, rtol=1e-6, err_msg=f"from {sender.__name__}")


# ---- what is not a plain tensor ------------------------------------------------------------------

def test_views_whose_conjugation_or_sign_waits(tmp_path):
    z = torch.tensor([1 + 2j, 3 - 1j])
    views = {"conj": z.conj(), "mH": z[None].mH, "neg": (2 * z).conj().imag,
             "p": torch.nn.Parameter(z.conj())}
    found = sent(views, torch, tl, tmp_path)
    assert {key: x.tolist() for key, x in found.items()} == {
        key: x.tolist() for key, x in views.items()}
    torch.save(z.conj(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(tl.serialization.LoadError, match="before zip files"):
        tl.load(tmp_path / "old.pt")


@pytest.mark.parametrize("sender, receiver", [(tl, torch), (torch, tl), (tl, tl)])
@pytest.mark.parametrize("coalesced", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_sparse_tensors(sender, receiver, coalesced, tmp_path):
    x = sender.sparse_coo_tensor(sender.tensor([[1, 0], [0, 2]]), sender.tensor([1.0, 2.0]), (2, 3))
    x = x.coalesce() if coalesced else x
    found = sent({"x": x, "layout": x.layout}, sender, receiver, tmp_path)
    assert found["layout"] is receiver.sparse_coo and found["x"].layout is receiver.sparse_coo
    assert found["x"].is_coalesced() is coalesced
    assert found["x"].to_dense().tolist() == [[0, 0, 2], [1, 0, 0]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("sender, receiver", [(tl, torch), (torch, tl)], ids=["to", "from"])
def test_sparse_tensors_of_rows_and_columns(layout, sender, receiver, tmp_path):
    x = sender.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    found = sent(getattr(x, f"to_sparse_{layout}")(), sender, receiver, tmp_path)
    assert found.layout is getattr(receiver, f"sparse_{layout}")
    assert found.to_dense().tolist() == x.tolist()


def test_files_load_onto_meta(tmp_path):
    content = {"x": torch.ones(2, 3).t(), "p": torch.nn.Parameter(torch.ones(2)), "n": 3,
               "none": torch.ones(0, 2)}
    for place in ("meta", tl.device("meta")):
        found = sent(content, torch, tl, tmp_path, map_location=place)
        assert found.pop("n") == 3 and type(found["p"]) is tl.nn.Parameter
        for key, x in found.items():
            assert x.is_meta and x.stride() == content[key].stride()
            assert x.shape == content[key].shape and x.requires_grad is content[key].requires_grad
    with pytest.raises(RuntimeError, match="not in a dict"):
        sent(content, torch, tl, tmp_path, map_location={"cpu": "meta"})
