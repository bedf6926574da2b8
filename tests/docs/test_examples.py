"""The examples run, learn something, and draw; the tour's cells give no error."""

import contextlib
import importlib
import io
import json
import sys
from pathlib import Path

import pytest

import tensorlib as tl

pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs the repository")

SHORT = {
    "adaptive_ode": ["--tries", "1"],
    "bayesian_hmc": ["--samples", "6", "--warmup", "4", "--chains", "4", "--leaps", "3"],
    "cart_pole": ["--steps", "2", "--carts", "4"],
    "char_gpt": ["--steps", "8", "--width", "16", "--layers", "1", "--length", "16",
                 "--letters", "30000", "--write", "20"],
    "digits": ["--epochs", "2"],
    "digits_convolutional": ["--epochs", "2", "--channels", "4"],
    "digits_vae": ["--epochs", "2", "--hidden", "16"],
    "digits_zoo": ["--epochs", "1", "--scans", "24"],
    "gaussian_process": ["--steps", "4", "--points", "20"],
    "hologram": ["--steps", "3", "--size", "32"],
    "ode_parameters": ["--steps", "3", "--counts", "8"],
    "physics_informed": ["--steps", "5", "--points", "16"],
    "sine_lstm": ["--steps", "1", "--hidden", "4", "--waves", "3"],
}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    state = tl.get_rng_state()
    yield
    tl.set_rng_state(state)


def run(name, *arguments):
    """What an example prints, and what its `main` gives."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        given = importlib.import_module(name).main([*SHORT[name], *arguments])
    return said.getvalue(), given


def test_every_example_is_tried():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*SHORT, "common"}
    page = (EXAMPLES / "README.md").read_text()
    for name in SHORT:
        assert f"{name}.py" in page and (EXAMPLES / "pictures" / f"{name}.png").stat().st_size < (
            60_000)


@pytest.mark.parametrize("name", SHORT)
def test_it_runs_and_draws(name, tmp_path):
    said, _ = run(name)
    assert f"{name}.png" in said
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_stopped_ends_with_the_same_bits(monkeypatch):
    """Training of the convolutional network, in one piece and resumed after an epoch."""
    convolutional = importlib.import_module("digits_convolutional")
    monkeypatch.setattr(convolutional, "draw", lambda *args: None)
    run("digits_convolutional")
    first = tl.load("digits_convolutional.safetensors")
    epoch = convolutional.Training.epoch

    def stopped(training):
        if len(training.history) == 1:
            raise KeyboardInterrupt
        return epoch(training)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolutional.Training, "epoch", stopped)
        with pytest.raises(KeyboardInterrupt):
            run("digits_convolutional", "--checkpoint", "stopped.safetensors")
    said, _ = run("digits_convolutional", "--checkpoint", "stopped.safetensors", "--resume")
    second = tl.load("stopped.safetensors")
    assert "goes on after epoch 1" in said
    assert first["history"] == second["history"] and len(first["history"]) == 2
    for name, x in first["model"].items():
        assert x.numpy().tobytes() == second["model"][name].numpy().tobytes()
    assert first["optimizer"]["state"][0]["exp_avg"].equal(
        second["optimizer"]["state"][0]["exp_avg"])


def test_learning_is_learning(monkeypatch):
    """With a few steps more than none the loss falls."""
    monkeypatch.setattr(importlib.import_module("physics_informed"), "draw", lambda *args: None)
    losses = [run("physics_informed", "--steps", steps)[1] for steps in ("1", "60")]
    assert losses[1] < losses[0]


@pytest.mark.parametrize("name, arguments", [
    ("digits", ["--epochs", "0"]), ("digits", ["--lr", "nan"]), ("digits", ["--out", "a.txt"]),
    ("digits", ["--out", "no/such/folder.png"]), ("char_gpt", ["--heads", "3"]),
])
def test_wrong_options_are_named(name, arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        importlib.import_module(name).main([*SHORT[name], *arguments])
    assert arguments[0] in capsys.readouterr().err + str(exit.value)


# ---- the tour ------------------------------------------------------------------------------------

def test_the_tour_runs():
    """Its cells, one after the other, as a notebook runs them; what they drew is in the file."""
    tour = json.loads((EXAMPLES / "tour.ipynb").read_text())
    assert tour["nbformat"] == 4
    code = [cell for cell in tour["cells"] if cell["cell_type"] == "code"]
    names = {"__name__": "__main__"}
    for number, cell in enumerate(code):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert sys.modules["matplotlib"]
    pictures = [output for cell in code for output in cell["outputs"]
                if "image/png" in output.get("data", {})]
    assert len(code) > 8 and len(pictures) > 3
    assert not [output for cell in code for output in cell["outputs"]
                if output["output_type"] == "error"]
