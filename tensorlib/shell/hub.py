"""Weights from the web: files that are fetched once and kept in a folder, as in `torch.hub`.

Code is not fetched: there is no `load` of a repository.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from tensorlib._core.base.importing import deferred
from tensorlib._core.base.version import __version__

_load = deferred("tensorlib.io.files", "load")

__all__ = ["HASH_REGEX", "download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")      # in a file's name: the first digits of its SHA-256
PIECE = 1 << 17                                 # bytes that are read at once

_folder: str | None = None


def get_dir() -> str:
    """The folder of what was fetched: that of `set_dir`, $TORCH_HOME/hub, or one of the user's
    cache ($XDG_CACHE_HOME or ~/.cache), which PyTorch has too."""
    return os.path.join(_get_torch_home(), "hub") if _folder is None else _folder


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder of what is fetched."""
    global _folder
    _folder = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str | os.PathLike[str], hash_prefix: str | None = None,
                         progress: bool = True) -> None:
    """Fetches a file, which appears at `dst` once it is whole.

    hash_prefix: the first digits of its SHA-256. progress: whether the bytes are counted on stderr.
    Raises: RuntimeError for another hash, OSError where there is no such file.
    """
    target = Path(dst).expanduser()
    digest, done = hashlib.sha256(), 0
    request = Request(url, headers={"User-Agent": f"tensorlib/{__version__}"})
    with urlopen(request) as source, tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=target.name, suffix=".partial", delete=False) as kept:
        try:
            while piece := source.read(PIECE):
                kept.write(piece)
                digest.update(piece)
                done += len(piece)
                if progress and sys.stderr.isatty():
                    print(f"\r{target.name}: {done / 1e6:.1f} MB", end="", file=sys.stderr)
            if progress and sys.stderr.isatty():
                print(file=sys.stderr)
            kept.close()
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f"download_url_to_file: {url} has the SHA-256 "
                                   f"{digest.hexdigest()}, which does not begin with "
                                   f"{hash_prefix!r}")
            shutil.move(kept.name, target)
        finally:
            Path(kept.name).unlink(missing_ok=True)


def load_state_dict_from_url(url: str, model_dir: str | os.PathLike[str] | None = None,
                             map_location: Any = None, progress: bool = True,
                             check_hash: bool = False, file_name: str | None = None,
                             weights_only: bool = True) -> Any:
    """What `load` reads from a file of the web, which is fetched if it is not there yet.

    model_dir: where it is kept; by default `checkpoints` in `get_dir()`. check_hash: the name has
    the first digits of the file's SHA-256 between "-" and its ending, and they are checked.
    file_name: by default that of the URL. Files are read without running what they say.
    """
    folder = Path(model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / (file_name or os.path.basename(urlparse(url).path))
    if not kept.exists():
        found = HASH_REGEX.search(kept.name) if check_hash else None
        download_url_to_file(url, kept, found[1] if found else None, progress)
    return _load(kept, map_location=map_location, weights_only=weights_only)


load_url = load_state_dict_from_url          # as `utils.model_zoo` has it
