"""Counts how many plausible faults the tests notice.

    python -m tools.mutants --seed 7 --count 40             draws, builds and tests 40 faults
    python -m tools.mutants --seed 7 --only 3 17            two of these again

A mutant is a copy of the checkout with one fault (tools/faults.py), drawn by the seed over the
lines of the package. It is built, and the nearest tests run on it, then all others, until one
fails, crashes or hangs: then it is caught. Those that do not compile are drawn again. Those that
make no difference that a test could see are named, with a reason, in tools/equivalent_mutants.txt.
The checkout must be built in place. A test that fails without a fault is left out, and named. The
copies are built with little optimization and only for the instruction set in use (TENSORLIB_QUICK
of setup.py).
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tensorlib import _kernels
from tools.checkout import copy_checkout
from tools.faults import faults

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
SECONDS = 1500                  # for a build, and for all tests of one call
TEST_SECONDS = 150              # for one test; one that takes longer hangs. The longest takes 15
# The folders of tests for each part; run after the tests that name what is changed.
NEAREST = {"_kernels": "kernels core ops", "_core/graph": "autograd", "_core/sweep": "autograd",
           "_core": "core ops", "autograd/batch": "func", "autograd": "autograd func",
           "func/compiling": "program", "func": "func",
           "graph": "autograd", "io/files": "saving", "io": "libraries",
           "ops": "ops",
           "linalg": "linalg", "nn": "nn", "optim": "optim", "utils/data": "data",
           "program": "program",
           "distributions": "distributions", "": "ops"}
OWN = "test_faults.py"          # of this tool: it looks at the text of the package, not at its work
SLOW = re.compile("saved_values|properties|threads|stubs|graph_pictures|fuzz|cycles|structure|"
                  "documents|deep_graphs|benchmarks")
QUICK = ["tests/core", "tests/func", "tests/ops", "tests/kernels"]      # before the others


def drawn(root, seed):
    """(number, fault) of all lines of a checkout, in the order of the seed."""
    lines = [line for path in sorted((root / "tensorlib").rglob("*.p[yx]*"))
             if path.suffix in (".py", ".pyx", ".pxd") and path.name != "samples.py"   # test data
             for line in faults(str(path.relative_to(root)), path.read_text())]
    rng = random.Random(seed)
    rng.shuffle(lines)
    return enumerate(map(rng.choice, lines), 1)


def change(root, fault):
    """The line number, and the line before and after."""
    text = (root / fault.path).read_text()
    begin = text.rfind("\n", 0, fault.start) + 1
    after = fault.apply(text)
    old_end, new_end = text.find("\n", fault.stop), after.find("\n", fault.start + len(fault.new))
    return (text.count("\n", 0, begin) + 1, text[begin:old_end].strip(),
            after[begin:new_end].strip())


def equivalents():
    """The reason by (path, line before, line after)."""
    found = {}
    for block in re.split(r"\n\n+", EQUIVALENT.read_text().strip()):
        path, old, new, *reason = block.splitlines()
        found[path, old.removeprefix("- "), new.removeprefix("+ ")] = " ".join(reason)
    return found


def nearest(root, fault):
    """Paths of tests: those that name what the line is in, those of its folder; slow ones last."""
    tests = {str(path.relative_to(root / "tests")): path.read_text()
             for path in sorted((root / "tests").rglob("test_*.py")) if path.name != OWN}
    above = (root / fault.path).read_text()[:fault.start]
    names = re.findall(r"^(?:c?p?def|class)\s[^(\n=]*?(\w+)\s*[(:]", above, re.MULTILINE)[-1:]
    near = []
    for name in names + [Path(fault.path).stem]:
        near += [path for path, text in tests.items() if re.search(rf"\b{name}\b", text)][:6]
    below = fault.path.removeprefix("tensorlib/")
    for part in next(part for head, part in NEAREST.items() if below.startswith(head)).split():
        near += [path for path in tests if path.startswith(part)]
    return sorted((f"tests/{path}" for path in dict.fromkeys(near)),
                  key=lambda path: SLOW.search(path) is not None)


def run(folder, *command):
    """(exit status, output) of a command in a copy; what runs too long is killed."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0",
           "TENSORLIB_QUICK": _kernels.level}
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        done = subprocess.run(
            ["timeout", "--signal=KILL", str(SECONDS), sys.executable, *command], cwd=folder,
            env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False,
            # where a fault in a size takes all memory, the system ends this process first
            preexec_fn=lambda: Path("/proc/self/oom_score_adj").write_text("1000"))
        output.seek(0)
        return done.returncode, output.read()


def test(folder, paths, left_out=()):
    return run(folder, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider",
               "-o", f"faulthandler_timeout={TEST_SECONDS}", "-o",
               "faulthandler_exit_on_timeout=true", "--hypothesis-seed=0", *paths,
               f"--ignore=tests/{OWN}",
               *(f"--deselect={test}" for test in sorted(left_out)))


class Judge:
    """Builds and tests mutants beside a copy without a fault."""

    def __init__(self, folder):
        self.folder, self.sound = folder, folder / "sound"
        self.trusted = set()            # tests that pass by themselves without a fault
        self.left_out = set()           # those that fail without one, too
        copy_checkout(self.sound)
        status, output = run(self.sound, "setup.py", "build_ext", "-i")
        if status:
            raise SystemExit(f"the checkout itself is not built: {output[-2000:]}")

    def judged(self, number, fault):
        """What catches the fault, "" where nothing does, None where it does not compile; printed.
        """
        begin = time.monotonic()
        caught = self.caught(fault)
        if caught is not None:
            line, old, new = change(self.sound, fault)
            print(f"{number:5} {'caught' if caught else 'SURVIVES'} {time.monotonic() - begin:4.0f}"
                  f" s  {fault.path}:{line}  {caught}\n      - {old}\n      + {new}", flush=True)
        return caught

    def caught(self, fault):
        copy = self.folder / threading.current_thread().name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.sound, copy, symlinks=True)
        path = copy / fault.path
        path.write_text(fault.apply(path.read_text()))
        build = (["-c", "import sys; compile(open(sys.argv[1]).read(), '', 'exec')", fault.path]
                 if path.suffix == ".py" else ["setup.py", "build_ext", "-i"])
        if run(copy, *build)[0] != 0:
            return None
        if run(copy, "-c", "import tensorlib.testing")[0] != 0:
            return "import tensorlib"
        near = nearest(self.sound, fault)
        for paths in (near, [*QUICK, "tests", *(f"--ignore={path}" for path in near)]):
            if reason := self.noticed(copy, paths):
                return reason
        return ""

    def noticed(self, copy, paths):
        """The test that fails in a copy and not without a fault, or how the tests ended, or ""."""
        while True:
            status, output = test(copy, paths, self.left_out)
            reason = self.reason(status, output)
            if not reason.startswith("tests/"):
                return reason
            # a test that fails here by itself is one of the fault, where it passes without; one
            # that does not may owe its failure to the tests before it
            alone = test(copy, [reason])[0] != 0
            # status 4: without the fault there is no such test
            if alone and (reason in self.trusted or test(self.sound, [reason])[0] in (0, 4)):
                self.trusted.add(reason)
                return reason
            if not alone and self.reason(*test(self.sound, paths, self.left_out)) != reason:
                return reason
            print(f"      {reason} fails without a fault, too: it is left out", flush=True)
            self.left_out.add(reason)

    @staticmethod
    def reason(status, output):
        """What a run of the tests shows: a test, the exit status where none is named, or ""."""
        if status == 0:
            return ""
        if status in (4, 5) and "conftest" not in output:
            raise SystemExit(f"pytest found no tests: {output[-500:]}")
        failed = re.search(r"^(?:FAILED|ERROR) (tests/[^\n]*?)(?: - |$)", output, re.MULTILINE)
        return failed[1] if status in (1, 2) and failed else f"exit status {status}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--only", type=int, nargs="+", help="numbers of faults of this seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the copies are kept for the next call")
    args = parser.parse_args()
    known = equivalents()
    judge = Judge((args.folder or Path(tempfile.mkdtemp(prefix="mutants-"))).resolve())
    count, outcomes, draws = args.count, [], drawn(judge.sound, args.seed)
    if args.only:
        draws, count = (item for item in draws if item[0] in args.only), len(args.only)
    with ThreadPoolExecutor(args.jobs, thread_name_prefix="mutant") as threads:
        while len(outcomes) < count:
            batch = []
            while len(batch) < count - len(outcomes) and (item := next(draws, None)):
                key = (item[1].path, *change(judge.sound, item[1])[1:])
                if key in known:
                    print(f"{item[0]:5} equivalent  {key[0]}\n      - {key[1]}\n      + {key[2]}\n"
                          f"      {known[key]}")
                else:
                    batch.append(item)
            if not batch:
                break
            found = threads.map(judge.judged, *zip(*batch))
            outcomes += [caught for caught in found if caught is not None]
    print(f"mutants: caught {sum(map(bool, outcomes))} of {len(outcomes)}")


if __name__ == "__main__":
    main()
