"""A save that is cut short, by an error or a kill, leaves the file that was there."""

import errno
import os
import stat

import pytest
from process import run_forked

import tensorlib as tl
from tensorlib.io import atomic
from tensorlib.io.files import saving

KILLS = """
import os, random, signal, sys, time
import tensorlib as tl

path, nameless = sys.argv[1], sys.argv[2] == "True"
if not nameless and hasattr(os, "O_TMPFILE"):
    del os.O_TMPFILE
folder, rng, seen = os.path.dirname(path), random.Random(5), set()
tl.save({"x": tl.zeros(3), "step": 0}, path)
for kill in range(40):
    out, into = os.pipe()
    if not (child := os.fork()):
        for step in range(kill * 10_000, 10**9):   # each file has the same number everywhere
            tl.save({"x": tl.full((100, 500), float(step)), "step": step}, path)
            os.write(into, b"s")
    os.read(out, 1)                                # it has saved, and goes on to
    time.sleep(rng.uniform(0, 0.01))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(out)
    os.close(into)
    found = tl.load(path)
    assert (found["x"] == found["step"]).all()
    seen.add(found["step"])
left = set(os.listdir(folder)) - {os.path.basename(path)}
assert all(name.startswith(".x.") and name.endswith(".tmp") for name in left), left
print(len(seen), len(left))
"""


def refusing(*arguments):
    """A system that has no files without a name."""
    raise OSError(errno.EOPNOTSUPP, "Operation not supported")


@pytest.mark.parametrize("nameless", [True, False])
def test_killed_at_any_moment(nameless, tmp_path):
    """Forty times; nearly nothing is left over where a file needs no name until it is whole."""
    changes, left = map(int, run_forked(KILLS, str(tmp_path / "x"), str(nameless)).split())
    assert changes == 40
    if nameless and hasattr(os, "O_TMPFILE"):
        assert left <= 10                # killed between a file's name and its place


@pytest.mark.parametrize("named", [True, False])
def test_an_error_leaves_the_old_file_and_nothing_else(named, tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    tl.save({"x": tl.ones(2)}, path)
    if named:
        monkeypatch.setattr(atomic, "nameless", refusing)

    def full(file, *rest):
        file.write(b"a part of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(saving, "write", full)
    with pytest.raises(OSError, match="No space left"):
        tl.save({"x": tl.zeros(2)}, path)
    assert tl.load(path)["x"].sum() == 2 and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("named", [True, False])
def test_modes_and_links_stay(named, tmp_path, monkeypatch):
    if named:
        monkeypatch.setattr(atomic, "nameless", refusing)
    before = os.umask(0o027)
    try:
        tl.save({}, tmp_path / "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "x").st_mode) == 0o640
    os.chmod(tmp_path / "x", 0o604)
    os.symlink("x", tmp_path / "link")
    tl.save({"a": tl.ones(1)}, tmp_path / "link")
    assert os.path.islink(tmp_path / "link") and stat.S_IMODE(
        os.stat(tmp_path / "x").st_mode) == 0o604
    assert tl.load(tmp_path / "x")["a"] == 1
    assert sorted(os.listdir(tmp_path)) == ["link", "x"]


def test_what_is_no_file_is_written_to(tmp_path, monkeypatch):
    tl.save({"a": tl.ones(1)}, "/dev/null")
    assert not os.path.isfile("/dev/null")
    monkeypatch.chdir(tmp_path)
    tl.save({"a": tl.ones(1)}, "x" * 200)              # a name in the folder of the process
    assert os.listdir(tmp_path) == ["x" * 200]


@pytest.mark.parametrize("known", [True, False])
def test_a_file_system_without_files_that_have_no_name(known, tmp_path, monkeypatch):
    """A save has a name from the start there, and the error of a folder that is not there stays."""
    opened, open_ = [], os.open

    def refuses(path, flags, *rest, **options):
        if hasattr(os, "O_TMPFILE") and flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        opened.append(os.path.basename(path))
        return open_(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refuses)
    if not known:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    tl.save({"x": tl.ones(2)}, tmp_path / "x")
    assert opened[0].startswith(".x.") and opened[0].endswith(".tmp")
    assert os.listdir(tmp_path) == ["x"] and tl.load(tmp_path / "x")["x"].sum() == 2
    with pytest.raises(FileNotFoundError, match="Parent directory does not exist: .*none'$"):
        tl.save({}, tmp_path / "none" / "x")
