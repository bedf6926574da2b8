"""`python -m tests.random_programs --count N --seed S`: runs random programs, shrinks failures."""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from . import layouts, running, states

KINDS = {"states": states, "layouts": layouts}
CHUNK = 250              # programs in one process


def failing(task):
    """A failing program's number, smallest text and difference, or None."""
    kind, seed, number, shrink = task
    made = KINDS[kind]
    program = made.drawn(seed, number)
    if not wrong(made, program):
        return None
    if shrink:
        program = states.shrunk(made, program,
                                lambda less: wrong(made, less).startswith("step"))
    return number, program, made.text_of(program), wrong(made, program)


def wrong(made, program):
    """What is wrong with a program, in a word or more; "" where nothing is."""
    try:
        return running.difference(made.text_of(program))
    except Exception as error:
        return f"the test itself: {type(error).__name__}: {error}"


def run(given, first, count):
    """Runs programs in this process; how many differ. Their numbers go to a file as they begin."""
    found = 0
    for number in range(first, first + count):
        if given.noted:
            with open(given.noted, "w") as file:
                file.write(str(number))
        result = failing((given.kind, given.seed, number, not given.whole))
        if result is not None:
            found += 1
            number, program, text, what = result
            print(f"--- {given.kind} {given.seed}:{number}: {what[:300]}")
            print(program if given.brief else text, flush=True)
    return found


def run_apart(given, first, count):
    """Runs programs in a process of their own, that may die; how many differ, and what it wrote."""
    found, text, end = 0, "", first + count
    with tempfile.TemporaryDirectory() as folder:
        noted = os.path.join(folder, "number")
        while first < end:
            done = subprocess.run(
                [sys.executable, "-m", "tests.random_programs", "--kind", given.kind,
                 "--seed", str(given.seed), "--first", str(first),
                 "--count", str(end - first), "--noted", noted,
                 *["--whole"] * given.whole, *["--brief"] * given.brief],
                stdout=subprocess.PIPE, text=True)
            lines = done.stdout.splitlines(keepends=True)
            if done.returncode in (0, 1) and lines:
                return found + int(lines[-1].split()[-2]), text + "".join(lines[:-1])
            with open(noted) as file:
                number = int(file.read())
            text += "".join(lines) + f"--- {given.kind} {given.seed}:{number}: the process died\n"
            found, first = found + sum(x.startswith("--- ") for x in lines) + 1, number + 1
    return found, text


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__)
    parser.add_argument("--kind", default="states", choices=KINDS)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=0,
                        help="processes side by side; 0: in this one")
    parser.add_argument("--number", type=int, help="this one alone, with its whole text")
    parser.add_argument("--whole", action="store_true", help="do not make failing ones smaller")
    parser.add_argument("--brief", action="store_true", help="one line for each that fails")
    parser.add_argument("--noted", help="a file for the number of the program that runs")
    given = parser.parse_args()
    if given.number is not None:
        given.first, given.count = given.number, 1
        print(KINDS[given.kind].text_of(KINDS[given.kind].drawn(given.seed, given.number)))
    if not given.workers:
        found = run(given, given.first, given.count)
    else:
        found, end = 0, given.first + given.count
        with ThreadPoolExecutor(given.workers) as pool:
            for n, text in pool.map(lambda first: run_apart(given, first, min(CHUNK, end - first)),
                                    range(given.first, end, CHUNK)):
                print(text, end="", flush=True)
                found += n
    print(f"{given.count:,} programs, {found} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
