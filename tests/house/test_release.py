"""A release: what it changes in a checkout, and what it refuses; the settings of the wheels, and
the tests that the checks of a commit name."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "tools").is_dir():
    pytest.skip("needs the repository", allow_module_level=True)

from tools import release  # noqa: E402  which the checkout alone has

CHANGELOG = """# Changelog

## Unreleased

### Added

- One.

## 0.1.0 - 2026-01-01

- Two.
"""


@pytest.fixture
def checkout(tmp_path):
    """A small repository with the files that have the version."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    for path in ("CITATION.cff", "examples/tour.ipynb", "tensorlib/_core/base/version.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    for arguments in (["init", "-q", "-b", "main"], ["config", "user.name", "a"],
                      ["config", "user.email", "a@example.org"], ["add", "-A"],
                      ["commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    return tmp_path


def test_a_release_writes_the_version_commits_and_tags(checkout, capsys):
    assert release.main(["9.2.0", "--check"], checkout) == 0
    assert release.git(checkout, "tag") == ""
    assert release.main(["9.2.0", "--date", "2026-12-01"], checkout) == 0
    assert release.git(checkout, "tag") == "v9.2.0" and not release.git(checkout, "status", "-s")
    assert release.git(checkout, "log", "-1", "--format=%s") == "Version 9.2.0"
    text = (checkout / "CHANGELOG.md").read_text()
    assert "## Unreleased\n\n## 9.2.0 - 2026-12-01\n\n### Added\n\n- One.\n\n## 0.1.0" in text
    assert "\nversion: 9.2.0\n" in (checkout / "CITATION.cff").read_text()
    assert "cff-version: 1.2.0" in (checkout / "CITATION.cff").read_text()
    assert '__version__ = "9.2.0"' in (checkout / "tensorlib/_core/base/version.py").read_text()
    assert "'9.2.0'" in (checkout / "examples/tour.ipynb").read_text()
    assert "git push --follow-tags origin main" in capsys.readouterr().out


@pytest.mark.parametrize("version, said", [
    ("0.0.1", "is not after"), ("9.2", "is no version"), ("9.2.0rc1", "is no version")])
def test_a_wrong_version_is_refused(checkout, version, said, capsys):
    assert release.main([version], checkout) == 1 and said in capsys.readouterr().err
    assert not release.git(checkout, "status", "-s")


def test_what_is_not_ready_is_refused(checkout, capsys):
    (checkout / "CHANGELOG.md").write_text("## Unreleased\n\n## 0.1.0\n- Two.\n")
    subprocess.run(["git", "tag", "v9.0.0"], cwd=checkout, check=True)
    assert release.main(["9.0.0"], checkout) == 1
    said = capsys.readouterr().err
    assert "not committed" in said and "nothing under" in said and "a tag v9.0.0" in said


def test_the_files_of_this_checkout_have_one_version():
    version = release.IN_FILE.search((ROOT / "tensorlib/_core/base/version.py").read_text())[1]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"'{version}'" in (ROOT / "examples/tour.ipynb").read_text()



def test_wheels_are_built_for_the_pythons_that_are_supported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    builds = project["tool"]["cibuildwheel"]["build"]
    oldest = project["project"]["requires-python"].removeprefix(">=3.")
    assert builds[0] == f"cp3{oldest}-*" and len(builds) == len(set(builds)) >= 4
    workflow = (ROOT / ".github/workflows/wheels.yml").read_text()
    assert "python -m cibuildwheel" in workflow and "native" in workflow


def test_the_tests_that_checks_name_are_there():
    text = "".join((ROOT / ".ci" / name).read_text() for name in ("run", "sanitized"))
    named = {word.partition("::")[0] for word in re.findall(r"\btests/[][\w/{},*!:.-]+", text)}
    assert len(named) > 10
    for words in sorted(named):       # with braces and patterns, of which each must find files
        subprocess.run(["bash", "-O", "failglob", "-c", f"ls -d {words}"], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
