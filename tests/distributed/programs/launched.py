"""A script for the launcher, by what it is told to do."""

import os
import signal
import sys
import time

import tensorlib as tl
from tensorlib import distributed as dist

case = sys.argv[1]
rank = int(os.environ["PMI_RANK"])
if case == "before" and rank == 1:
    raise KeyError("before the group")
dist.init_process_group(timeout=60)
if case == "adds":
    dist.all_reduce(x := tl.ones(2))
    print(f"sum {x[0].item():g} threads {tl.get_num_threads()} {sys.argv[2:]}", flush=True)
elif rank == 1:
    if case == "raises":
        raise KeyError("the reason of rank 1")
    if case == "leaves":
        sys.exit(3)
    if case == "killed":
        os.kill(os.getpid(), signal.SIGSEGV)
    print("waits", flush=True)
    time.sleep(100)
dist.barrier()
