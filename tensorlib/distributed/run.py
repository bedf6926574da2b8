"""Starts a script in several processes: `python -m tensorlib.distributed.run -n 4 train.py`.

It finds the `mpiexec` of the environment, shares out the cores among the processes, and ends all of
them when one fails: an error that nobody catches is shown with its traceback and its rank, also
before `init_process_group()`. What it returns is the exit status of the job.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorlib.distributed import mpi as door

__all__ = ["main"]

GRACE = 5                        # seconds in which mpiexec may end its ranks after an interrupt
# What libraries take their number of threads from.
THREADS = ("TENSORLIB_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status of the job."""
    args = parse_arguments(argv)
    if args.as_rank:
        return run_script(args)
    launcher = find_mpiexec()
    if launcher is None:
        sys.stderr.write("tensorlib.distributed.run: there is no mpiexec beside this Python and on "
                         "the PATH; pip install 'tensorlib[mpi]', or load the MPI of your "
                         "cluster\n")
        return 2
    count = args.nproc_per_node
    threads = args.threads or max(1, len(os.sched_getaffinity(0)) // count)
    environment = {**{name: str(threads) for name in THREADS}, **os.environ}
    if args.threads:
        environment.update({name: str(threads) for name in THREADS})
    command = [launcher, "-n", str(count), sys.executable, "-m", "tensorlib.distributed.run",
               "--as-rank", *["-m"] * args.module, args.script, *args.arguments]
    return waited_for(subprocess.Popen(command, env=environment))


def parse_arguments(argv: Sequence[str] | None) -> Any:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tensorlib.distributed.run",
                                     description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("-n", "--nproc-per-node", "--nproc_per_node", type=int, default=1,
                        help="the number of processes")
    parser.add_argument("--threads", type=int, default=0,
                        help="of each process; by default the cores are shared out")
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module's name")
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args(argv)
    if args.nproc_per_node < 1 or args.threads < 0:
        parser.error("-n and --threads take numbers of 1 or more")
    return args


def find_mpiexec() -> str | None:
    """The launcher of this environment, or that of the machine."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def waited_for(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a job, which is ended with this process."""
    def passed_on(number: int, frame: Any) -> None:
        process.send_signal(number)

    signal.signal(signal.SIGTERM, passed_on)
    try:
        status = process.wait()
    except KeyboardInterrupt:                # mpiexec has got it too, from the terminal
        process.send_signal(signal.SIGINT)
        try:
            process.wait(GRACE)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()
        return 130
    return status if status >= 0 else 128 - status


def run_script(args: Any) -> int:
    """One rank: runs the script as Python would, and ends the job if it fails."""
    sys.argv = [args.script, *args.arguments]
    try:
        if args.module:
            sys.path[0] = os.getcwd()
            runpy.run_module(args.script, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(args.script).resolve().parent)
            runpy.run_path(args.script, run_name="__main__")
    except SystemExit as left:
        if left.code in (None, 0):
            return 0
        if isinstance(left.code, str):
            sys.stderr.write(left.code + "\n")
        end_all(left.code if isinstance(left.code, int) else 1)
    except BaseException as error:
        rank = next((os.environ[name] for name in door.LAUNCHERS if name in os.environ), "?")
        text = "".join(traceback.format_exception(error))
        sys.stderr.write(f"rank {rank} ends the job:\n{text}")
        end_all(130 if isinstance(error, KeyboardInterrupt) else 1)
    return 0


def end_all(status: int) -> None:
    """Ends all ranks. Before MPI begins a signal does that, which the launcher sees."""
    sys.stdout.flush()
    sys.stderr.flush()
    if door.mpi.cache_info().currsize:
        door.mpi().COMM_WORLD.Abort(status)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
