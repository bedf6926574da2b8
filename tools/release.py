"""Makes a release of this checkout: python -m tools.release VERSION [--date YYYY-MM-DD] [--check]

It writes the version where it stands (`version.py`, CITATION.cff, the tour), gives what is under
"Unreleased" in the changelog that version and the date, commits, and tags `vVERSION`. Pushing the
tag has the workflow `wheels` build, test and publish the packages. `--check` only says what is
missing. Run `.ci/run` before: it is everything that must pass.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+")
UNRELEASED = "## Unreleased\n"
IN_FILE = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)
CITED = re.compile(r"^version: .*$", re.MULTILINE)


def git(root, *arguments):
    """What git prints."""
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True,
                          text=True).stdout.strip()


def numbers(version):
    return tuple(map(int, version.split(".")))


def problems(root, version):
    """What stands against a release of this version, one line each."""
    if not VERSION.fullmatch(version):
        return [f"{version!r} is no version: major.minor.patch"]
    found = []
    now = IN_FILE.search((root / "tensorlib/_core/base/version.py").read_text())[1]
    if numbers(version) <= numbers(now):
        found.append(f"{version} is not after {now}")
    if git(root, "status", "--porcelain"):
        found.append("there are changes that are not committed")
    if f"v{version}" in git(root, "tag").split():
        found.append(f"there is a tag v{version} already")
    if not unreleased((root / "CHANGELOG.md").read_text()).strip():
        found.append('CHANGELOG.md has nothing under "Unreleased"')
    return found


def unreleased(changelog):
    """What the changelog has under "Unreleased"."""
    _, heading, rest = changelog.partition(UNRELEASED)
    return rest.partition("\n## ")[0] if heading else ""


def released(changelog, version, date):
    """The changelog with what was unreleased under a version, and an empty part before it."""
    return changelog.replace(UNRELEASED, f"{UNRELEASED}\n## {version} - {date}\n", 1)


def write(root, version, date):
    """Writes the version into all files that have it; returns their paths."""
    def changed(path, make):
        path = root / path
        path.write_text(make(path.read_text()))
        return path

    def tour(text):
        """The first cell shows the version."""
        old = json.dumps(repr(before))[1:-1]
        return text.replace(old, json.dumps(repr(version))[1:-1])

    before = IN_FILE.search((root / "tensorlib/_core/base/version.py").read_text())[1]
    return [
        changed("CHANGELOG.md", lambda text: released(text, version, date)),
        changed("CITATION.cff", lambda text: CITED.sub(f"version: {version}", text, count=1)),
        changed("examples/tour.ipynb", tour),
        changed("tensorlib/_core/base/version.py",
                lambda text: IN_FILE.sub(f'__version__ = "{version}"', text)),
    ]


def main(arguments=None, root=ROOT):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("version")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    parser.add_argument("--check", action="store_true", help="says what is missing, does nothing")
    given = parser.parse_args(arguments)
    found = problems(root, given.version)
    for line in found:
        print(f"release: {line}", file=sys.stderr)
    if found or given.check:
        return 1 if found else 0
    paths = write(root, given.version, given.date)
    git(root, "add", *map(str, paths))
    git(root, "commit", "-m", f"Version {given.version}")
    git(root, "tag", "-a", f"v{given.version}", "-m", f"Version {given.version}")
    print(f"Version {given.version} is committed and tagged. To publish it:\n"
          f"    git push --follow-tags origin {git(root, 'branch', '--show-current')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
