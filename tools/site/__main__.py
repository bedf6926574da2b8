"""Builds the site: python -m tools.site [FOLDER], by default build/site; warnings are errors.

Needs the extra `docs`, and the built library in this checkout. What Sphinx reads is put together in
FOLDER/source first; FOLDER/html/index.html is where to begin reading.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from tools.site import documents, reference

ROOT = Path(__file__).parents[2]


def build(folder):
    """Puts the sources together and runs Sphinx on them; returns its exit status.

    Raises: SystemExit for a page of the reference without an example.
    """
    source, html = folder / "source", folder / "html"
    for path in (source, html):
        shutil.rmtree(path, ignore_errors=True)
    documents.write(source)
    if lacking := reference.write(source / "reference"):
        raise SystemExit("tools.site: no example, neither in the docstring nor in "
                         f"tools/site/sessions: {', '.join(lacking)}")
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", "-j", "auto", "-q", "-W", "--keep-going",
         "-c", ROOT / "docs", "-D", f"html_extra_path={source / 'files'}",
         "-d", folder / "doctrees", source, html]).returncode


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve()))
