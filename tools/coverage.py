"""Shows which lines the tests do not reach, those of the compiled parts included.

    python -m tools.coverage                        all tests; some ten times as slow as without
    python -m tools.coverage tests/core -k keys     those that these arguments of pytest choose

Needs the package coverage. The library is copied to build/coverage and built there with
TENSORLIB_COVERAGE of setup.py. What runs in processes of its own and the kernels are not counted.
"""

import os
import subprocess
import sys

from tensorlib import _kernels
from tools.checkout import ROOT, copy_checkout

FOLDER = ROOT / "build" / "coverage"
SETTINGS = """
[run]
plugins = Cython.Coverage
source = tensorlib
omit =
    tensorlib/_kernels/*
    %s
[report]
show_missing = true
skip_covered = true
"""


def run(*command):
    env = {**os.environ, "PYTHONPATH": str(FOLDER), "TENSORLIB_COVERAGE": "1",
           "TENSORLIB_QUICK": _kernels.level}
    return subprocess.run([sys.executable, *command], cwd=FOLDER, env=env).returncode


if __name__ == "__main__":
    copy_checkout(FOLDER)
    # the plugin finds the lines of a .pxd only where there is a module of its name
    alone = [str(path.relative_to(ROOT)) for path in (ROOT / "tensorlib").rglob("*.pxd")
             if not path.with_suffix(".pyx").exists()]
    (FOLDER / ".coveragerc").write_text(SETTINGS % "\n    ".join(alone))
    if run("setup.py", "-q", "build_ext", "-i"):
        sys.exit("the build failed")
    run("-m", "coverage", "run", "-m", "pytest", "-p", "no:cacheprovider", *sys.argv[1:])
    sys.exit(run("-m", "coverage", "report"))
