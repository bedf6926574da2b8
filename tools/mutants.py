"""Counts how many plausible faults the tests notice.

    python -m tools.mutants --seed 7 --count 40             draws, builds and tests 40 faults
    python -m tools.mutants --seed 7 --only 3 17            two of these again

A mutant is a copy of the checkout with one fault (tools/faults.py), drawn by the seed over the
lines of the package. It is built, and the nearest tests run on it, then all others, until one
fails, crashes or hangs: then it is caught. Those that do not compile are drawn again. Those that
make no difference that a test could see are named, with a reason, in tools/equivalent_mutants.txt.
The checkout must be built in place; its tests must pass. The copies are built with little
optimization and only for the instruction set in use (TENSORLIB_QUICK of setup.py).
"""

import argparse
import difflib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tensorlib import _kernels
from tools.checkout import copy_checkout
from tools.faults import faults

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
SECONDS = 3600                  # for a build, and for all tests of one call
TEST_SECONDS = 150              # for one test; one that takes longer hangs. The longest takes 15
ADDRESSES = 12 << 30            # bytes, so that a fault in a size cannot take all memory
# The tests of each part, the quickest first.
NEAREST = {
    "_kernels": "kernels core/test_reduction_loops.py core/test_softmax_loops.py "
                "core/test_large_layouts.py ops/test_values.py ops/test_random.py",
    "_core/arrays": "core/test_convert.py core/test_printing.py test_interop.py "
                    "test_memory_leaks.py",
    "_core/base": "core/test_pool.py test_memory_in_use.py test_memory_leaks.py "
                  "ops/test_creation.py",
    "_core/create": "ops/test_creation.py ops/test_random.py ops/test_repeating.py",
    "_core/graph": "autograd/test_backward.py autograd/test_hooks.py autograd/test_inplace.py "
                   "test_memory_leaks.py autograd/test_sweeps_and_memory.py",
    "_core/index": "core/test_keys.py core/test_gather.py ops/test_positions.py ops/test_forms.py",
    "_core/layout": "core/test_joining.py ops/test_forms.py ops/test_values.py",
    "_core/products": "core/test_blas.py ops/test_linalg.py",
    "_core/reduce": "core/test_reduction_loops.py ops/test_reductions.py ops/test_values.py",
    "_core/sweep": "autograd/test_backward.py autograd/test_hooks.py autograd/test_inplace.py "
                   "test_memory_leaks.py autograd/test_sweeps_and_memory.py",
    "_core/tensor": "core/test_convert.py autograd/test_inplace.py ops/test_forms.py",
    "_core": "core/test_tiles.py core/test_large_layouts.py ops/test_forms.py ops/test_values.py",
    "autograd": "autograd func",
    "batch": "func ops/test_complete.py",
    "func": "func",
    "graph": "test_graph_pictures.py test_graph_pictures_composed.py autograd/test_graph_tools.py",
    "io": "test_numpy_functions.py test_interop.py",
    "ops": "ops",
    "testing": "test_testing.py ops/test_check_op.py ops/test_complete.py",
    "": "test_reachable.py test_documents.py",
}
SLOW = {"saved_values.py", "properties.py", "threads.py", "stubs.py", "graph_pictures.py",
        "fuzz.py", "cycles.py", "structure.py", "documents.py", "deep_graphs.py", "benchmarks.py"}
QUICK = ["tests/core", "tests/func", "tests/ops", "tests/kernels"]      # before the others
RUNNING = set()                 # the leaders of groups of processes


class Outcome(NamedTuple):
    caught: bool
    how: str


def drawn(root, seed):
    """(number, fault) of all lines of a checkout, in the order of the seed."""
    lines = [line for suffix in ("py", "pyx", "pxd")
             for path in sorted((root / "tensorlib").rglob(f"*.{suffix}"))
             if path.name != "samples.py"           # data for tests
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
             for path in sorted((root / "tests").rglob("test_*.py"))}
    above = (root / fault.path).read_text()[:fault.start]
    names = re.findall(r"^(?:c?p?def|class)\s[^(\n=]*?(\w+)\s*[(:]", above, re.MULTILINE)[-1:]
    near = []
    for name in names + [Path(fault.path).stem]:
        near += [path for path, text in tests.items() if re.search(rf"\b{name}\b", text)][:6]
    below = fault.path.removeprefix("tensorlib/")
    for part in next(part for head, part in NEAREST.items() if below.startswith(head)).split():
        near += [path for path in tests if path.startswith(part)]
    slow = {path for path in near if path.rpartition("test_")[2] in SLOW}
    return [f"tests/{path}" for path in dict.fromkeys(near) if path not in slow] + [
        f"tests/{path}" for path in sorted(slow)]


def run(folder, *command):
    """(exit status, or None of what hangs; the output) of a command in a copy."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0",
           "TENSORLIB_QUICK": _kernels.level}
    process = subprocess.Popen(
        [sys.executable, *command], cwd=folder, env=env, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, preexec_fn=limit_addresses)
    RUNNING.add(process.pid)
    try:
        output, _ = process.communicate(timeout=SECONDS)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        end(process.pid)                # it, or what it left running


def end(pid):
    RUNNING.discard(pid)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end_all(*_):
    """Where this program is stopped."""
    for pid in list(RUNNING):
        end(pid)
    os._exit(1)


def limit_addresses():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))


def build(folder):
    return run(folder, "setup.py", "build_ext", "-i")


def test(folder, *paths):
    return run(folder, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider",
               "-o", f"faulthandler_timeout={TEST_SECONDS}", "-o",
               "faulthandler_exit_on_timeout=true", "--hypothesis-seed=0", *paths)


class Judge:
    """Builds and tests mutants beside a copy without a fault."""

    def __init__(self, folder):
        self.folder = folder
        self.sound = folder / "sound"
        self.lock = threading.Lock()
        self.trusted = set()            # tests that pass without a fault
        copy_checkout(self.sound)
        status, output = build(self.sound)
        if status:
            raise SystemExit(f"the checkout itself is not built: {output[-2000:]}")

    def outcome(self, fault):
        """How the tests see the fault; None where it does not compile."""
        copy = self.folder / threading.current_thread().name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.sound, copy, symlinks=True)
        path = copy / fault.path
        path.write_text(fault.apply(path.read_text()))
        if path.suffix == ".py":
            status = run(copy, "-c", "import sys; compile(open(sys.argv[1]).read(), '', 'exec')",
                         fault.path)[0]
        else:
            status = build(copy)[0]
        if status != 0:
            return None
        if run(copy, "-c", "import tensorlib.testing")[0] != 0:
            return Outcome(True, "import tensorlib")
        near = nearest(self.sound, fault)
        for paths in (near, [*QUICK, "tests", *(f"--ignore={path}" for path in near)]):
            status, output = test(copy, *paths)
            if status != 0:
                return Outcome(True, self.reason(status, output))
        return Outcome(False, "")

    def reason(self, status, output):
        if status is None:
            return f"runs for more than {SECONDS} s"
        failed = re.search(r"^(?:FAILED|ERROR) (tests/[^\n]*?)(?: - |$)", output, re.MULTILINE)
        if status in (4, 5) and "conftest" not in output:
            raise SystemExit(f"pytest found no tests: {output[-500:]}")
        if status not in (1, 2) or not failed:
            return f"exit status {status}"
        with self.lock:
            if failed[1] not in self.trusted and test(self.sound, failed[1])[0] != 0:
                raise SystemExit(f"{failed[1]} fails without a fault, too")
            self.trusted.add(failed[1])
        return failed[1]


def report(number, fault, changed, outcome, seconds):
    line, old, new = changed
    verdict = "caught" if outcome.caught else "SURVIVES"
    print(f"{number:5} {verdict} {seconds:4.0f} s  {fault.path}:{line}  {outcome.how}\n"
          f"      - {old}\n      + {new}", flush=True)


def difference(root, fault):
    before = (root / fault.path).read_text()
    return "".join(difflib.unified_diff(
        before.splitlines(True), fault.apply(before).splitlines(True), fault.path, fault.path, n=2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--only", type=int, nargs="+", help="numbers of faults of this seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the copies are kept for the next call")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, end_all)
    signal.signal(signal.SIGTERM, end_all)
    known = equivalents()
    judge = Judge((args.folder or Path(tempfile.mkdtemp(prefix="mutants-"))).resolve())

    def judged(item):
        number, fault = item
        begin = time.monotonic()
        outcome = judge.outcome(fault)
        if outcome:
            report(number, fault, change(judge.sound, fault), outcome,
                   time.monotonic() - begin)
        return fault, outcome

    done, same, draws = [], [], drawn(judge.sound, args.seed)
    if args.only:
        draws = (item for item in draws if item[0] in args.only)
        args.count = len(args.only)
    with ThreadPoolExecutor(args.jobs, thread_name_prefix="mutant") as threads:
        while len(done) < args.count:
            batch = []
            for item in draws:
                key = (item[1].path, *change(judge.sound, item[1])[1:])
                if key in known:
                    same.append((item[0], key, known[key]))
                else:
                    batch.append(item)
                if len(batch) == args.count - len(done):
                    break
            if not batch:
                break
            done += [pair for pair in threads.map(judged, batch) if pair[1]]
    for number, (path, old, new), reason in same:
        print(f"{number:5} equivalent  {path}\n      - {old}\n      + {new}\n      {reason}")
    survivors = [fault for fault, outcome in done if not outcome.caught]
    for fault in survivors:
        print(difference(judge.sound, fault))
    print(f"mutants: caught {len(done) - len(survivors)} of {len(done)}")


if __name__ == "__main__":
    main()
