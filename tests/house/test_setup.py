"""What setup.py does to the translator's output, and which kernels it builds."""

import os
import runpy
from pathlib import Path

import pytest
from process import run_python

from tensorlib import _kernels
from tensorlib._kernels import missing_flags
from tensorlib.shell import Elsewhere

SETUP = Path(__file__).parents[2] / "setup.py"


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


def test_stubs_of_other_names_are_those_of_the_modules_that_are_found(made):
    """`setup.py` imports no module of the package."""
    names = made()
    others = {name: home.replace("/", ".") for name, home in names["OTHER_NAMES"].items() if name}
    assert {f"tensorlib.{name}": f"tensorlib.{home}" for name, home in others.items()
            } == Elsewhere.homes
    stubs = dict(names["stubs_of_other_names"](Path(_kernels.__file__).parents[1]))
    assert stubs[Path("fx/passes/__init__.pyi")] == (
        "from tensorlib.program.fx.passes import *\n")
    assert stubs[Path("amp/autocast_mode.pyi")] == (
        "from tensorlib.shell.amp.autocast_mode import *\n")
    assert Path("__init__.pyi") not in stubs and Path("data/__init__.pyi") in stubs


def test_levels_of_the_kernels_can_be_chosen(made, monkeypatch):
    names = made()
    usual, known = names["LEVELS"], names["ALL_LEVELS"]
    assert list(usual) == [_kernels.available_levels()[0]] and usual.items() <= known.items()
    for last in known:
        monkeypatch.setenv("TENSORLIB_LEVELS", last)
        assert made()["LEVELS"] == {last: known[last]}
    monkeypatch.setenv("TENSORLIB_LEVELS", "all")
    assert made()["LEVELS"] == known
    monkeypatch.setenv("TENSORLIB_LEVELS", "native")
    (flags,) = made()["LEVELS"].values()
    assert flags[0] == "-march=native"


def test_what_is_optimized_otherwise_is_there(made):
    names = made()
    there = {source.stem for source in (SETUP.parent / "tensorlib").rglob("*.pyx")}
    assert names["HOT"] | names["COLD"] | names["LEAN"] | names["UNWIDENED"] <= there


def test_level_v4_takes_kernels_of_v3_where_that_is_built(made, monkeypatch):
    for levels, shared in (("v4", False), ("v3", True), ("v3,v4", True), ("all", True)):
        monkeypatch.setenv("TENSORLIB_LEVELS", levels)
        names = made()
        if "v4" not in names["ALL_LEVELS"]:
            return
        assert names["FROM_BELOW"] == (names["UNWIDENED"] if shared else set())
        own = {each.name.rpartition(".")[2]: {Path(source).stem for source in each.sources}
               for each in names["extensions"]()}
        if "v4" in own:
            assert own["v4"].isdisjoint(names["UNWIDENED"]) == shared
            flags = {names["instructions"](Path("tensorlib/_kernels", stem + ".pyx"), "v4")[0]
                     for stem in names["UNWIDENED"]}
            assert flags == {"-march=x86-64-v3"}
        if "v3" in own:
            assert names["UNWIDENED"] <= own["v3"]
    monkeypatch.setenv("TENSORLIB_DEBUG", "1")
    monkeypatch.setenv("TENSORLIB_ISA", "v4")       # which leaves this one
    assert made()["FROM_BELOW"] == set()


def test_a_build_for_one_processor_notes_what_it_needs(made, monkeypatch, tmp_path):
    monkeypatch.setenv("TENSORLIB_LEVELS", "native")
    needed = made()["NEEDED"]
    assert missing_flags(needed) == [] and missing_flags([]) == []
    lesser = tmp_path / "cpuinfo"
    lesser.write_text("model name\t: a lesser one\nflags\t\t: fpu sse2\n")
    assert missing_flags(["sse2", "avx512_vnni"], lesser) == ["avx512_vnni"]


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="of Linux")
def test_a_processor_that_lacks_what_the_build_needs_is_refused(monkeypatch):
    monkeypatch.setattr(_kernels, "NEEDED", ["fpu", "an_instruction"])
    with pytest.raises(ImportError, match="this one lacks .*an_instruction; build it here"):
        _kernels.available_levels()


def test_what_was_not_built_is_said_to_be_missing(monkeypatch):
    said = run_python("""
import os
os.environ["TENSORLIB_ISA"] = "v9"
try:
    import tensorlib
except ImportError as error:
    print(error)""")
    assert said.startswith("TENSORLIB_ISA='v9' is not a level that was built"), said
    monkeypatch.setattr(_kernels, "path_of", lambda level: "none")
    with pytest.raises(ImportError, match="other processors.* or there with TENSORLIB_LEVELS=all"):
        _kernels.available_levels()


TASKS = """
import os, runpy, sys
from pathlib import Path

os.chdir(Path(sys.argv[1]).parent)
names, log = runpy.run_path(sys.argv[1], run_name="setup"), Path(sys.argv[2])

def note(source):
    with log.open("a") as file:
        file.write(source + " ")

def fail(source):
    raise ValueError(source)

names["do_all"]([("a", note, lambda: [("further", note, list)]), ("b", note, list)], 1)
try:
    names["do_all"]([("c", note, list), ("d", fail, list), ("e", note, list)], 1)
except names["CompileError"] as error:
    print(log.read_text() + str(error))
"""


def test_what_a_task_leads_to_comes_next_and_a_failure_ends_the_build(made, tmp_path):
    said = run_python(TASKS, str(SETUP), str(tmp_path / "log"))
    assert said == "a further b c d, as said above\n"


def test_sources_are_translated_where_they_are_newer_than_their_c_file(made, monkeypatch, tmp_path):
    monkeypatch.chdir(SETUP.parent)
    names = made()
    assert names["outdated"](True) == ({names["UTILITY"], *names["sources"]()}, {})
    found, header = names["outdated"].__globals__, Path("tensorlib/_kernels/fourier/fourier_plan.h")
    monkeypatch.setitem(found, "GENERATED", tmp_path)
    chosen = [Path("tensorlib", *parts) for parts in (
        ("_kernels", "fourier", "fourier.pyx"), ("_core", "layers", "ctc.pyx"))]
    monkeypatch.setitem(found, "sources", lambda: chosen)
    for source in chosen:
        (tmp_path / source.with_suffix(".c")).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source.with_suffix(".c")).touch()
    (tmp_path / "modules.pxi").touch()
    changed, read = names["outdated"](False)
    assert not changed and header in read[chosen[0]] and header not in read[chosen[1]]
    os.utime(tmp_path / chosen[1].with_suffix(".c"), (0, 0))
    assert names["outdated"](False)[0] == {chosen[1]}


def test_nothing_is_left_of_a_build_with_other_settings(made, monkeypatch, tmp_path):
    """What lies in its folder, such as copies of headers, would be read in place of the sources."""
    names = made()
    begins_anew, folder = names["begins_anew"], tmp_path / "cython"
    monkeypatch.setitem(begins_anew.__globals__, "GENERATED", folder)
    left = folder / "tensorlib" / "left.h"

    def left_there():
        left.parent.mkdir(parents=True, exist_ok=True)
        left.touch()

    assert begins_anew() and not folder.exists()
    left_there()                                       # by a build that did not come to its end
    assert begins_anew() and not folder.exists()
    left_there()
    (folder / "settings.txt").write_text(names["settings"]())
    assert not begins_anew() and left.exists()
    monkeypatch.setenv("CFLAGS", "-DOTHER")
    assert begins_anew() and not folder.exists()


@pytest.mark.parametrize("source, headers", [
    ("elementwise/normal.pyx", {"wide_doubles.h", "wide_log.h", "wide.h"}),  # as headers do, too
    ("products/small_matrices.pyx", {"small_matrices.h"}),                   # in verbatim C
])
def test_headers_that_are_included_anywhere_are_what_an_object_depends_on(made, source, headers,
                                                                          monkeypatch):
    monkeypatch.chdir(SETUP.parent)
    with_included, kernels = made()["with_included"], SETUP.parent / "tensorlib" / "_kernels"
    path = kernels / source
    files = [path, *[kernels / "vecmath" / "wide_doubles.h"] * (path.name == "normal.pyx")]
    assert {file.name for file in with_included(files)} == {path.name, *headers}
