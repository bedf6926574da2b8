"""What setup.py does to the translator's output, and which kernels it builds."""

import runpy
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[1] / "setup.py"


@pytest.fixture(scope="module")
def made():
    pytest.importorskip("Cython")
    return lambda: runpy.run_path(str(SETUP), run_name="setup")


@pytest.mark.parametrize("name", ["APPEND", "FRAME"])
def test_output_that_is_not_what_is_mended_ends_the_build(made, name):
    """Another Cython may write other text: then somebody has to look."""
    names = made()
    head, flawed, sound = names[name]
    mended = names["mended"]
    assert mended(head + flawed, "a.c", head, flawed, sound) == head + sound
    assert mended(head + sound, "a.c", head, flawed, sound) == head + sound
    assert mended("nothing of it", "a.c", head, flawed, sound) == "nothing of it"
    with pytest.raises(SystemExit, match="a.c.*by Cython.*look whether"):
        mended(head + " return 0;", "a.c", head, flawed, sound)


def test_levels_of_the_kernels_can_be_chosen(made, monkeypatch):
    usual = made()["LEVELS"]
    last = list(usual)[-1]
    monkeypatch.setenv("TENSORLIB_LEVELS", last)
    assert made()["LEVELS"] == {last: usual[last]}
    monkeypatch.setenv("TENSORLIB_LEVELS", "native")
    (flags,) = made()["LEVELS"].values()
    assert flags[0] == "-march=native"
