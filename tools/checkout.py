"""A copy of the checkout, to build in other ways or to change."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def copy_checkout(folder):
    """Copies what git lists, and in a new folder what is built; only files that differ."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True,
                            capture_output=True, check=True).stdout.splitlines()
    if not folder.exists():
        listed += [str(path.relative_to(ROOT)) for path in (ROOT / "tensorlib").rglob("*.so")]
    for name in listed:
        source, target = ROOT / name, folder / name
        if source.exists() and not (
                target.exists() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
