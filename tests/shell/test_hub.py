"""Files that are fetched once: by URLs of files, so that no net is needed."""

import hashlib

import pytest

import tensorlib as tl
from tensorlib import hub, nn


@pytest.fixture
def published(tmp_path, monkeypatch):
    """The URL of the weights of a model, whose name has the first digits of their hash."""
    monkeypatch.setattr(hub, "_folder", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    model = nn.Linear(2, 3)
    path = tmp_path / "weights.pt"
    tl.save(model.state_dict(), path)
    digits = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    return path.rename(tmp_path / f"linear-{digits}.pt").as_uri(), model.state_dict()


def test_weights_are_fetched_once(published, tmp_path):
    url, wanted = published
    for _ in range(2):
        found = hub.load_state_dict_from_url(url, check_hash=True, progress=False)
        assert all(tl.equal(found[name], wanted[name]) for name in wanted)
        next(tmp_path.glob("linear-*.pt"), tmp_path / "none").unlink(missing_ok=True)
    kept = list((tmp_path / "home" / "hub" / "checkpoints").iterdir())
    assert [path.name for path in kept] == [url.rpartition("/")[2]]


def test_the_folder_and_the_name_are_as_asked(published, tmp_path):
    hub.set_dir(tmp_path / "mine")
    assert hub.get_dir() == str(tmp_path / "mine")
    hub.load_state_dict_from_url(published[0], file_name="w.pt")
    assert (tmp_path / "mine" / "checkpoints" / "w.pt").exists()
    hub.load_state_dict_from_url(published[0], tmp_path / "other", map_location="cpu")
    assert len(list((tmp_path / "other").iterdir())) == 1


def test_another_hash_leaves_nothing_behind(published, tmp_path):
    target = tmp_path / "new" / "file"
    target.parent.mkdir()
    with pytest.raises(RuntimeError, match="does not begin with 'beef'"):
        hub.download_url_to_file(published[0], target, "beef", progress=False)
    with pytest.raises(OSError):
        hub.download_url_to_file((tmp_path / "absent").as_uri(), target)
    assert not list(target.parent.iterdir())


def test_there_is_no_load_of_repositories():
    assert not hasattr(hub, "load")
