"""The process that runs calls in turn: `python -m ...worker PROGRESS KIND SEED FIRST N`.

The number of the call under way stands in the file PROGRESS, which its supervisor reads; findings
are lines of JSON on its standard output.
"""

import json
import mmap
import os
import resource
import struct
import sys
import warnings

MEMORY = 1 << 30        # bytes of addresses beyond its own: what takes more is refused


def limit_memory():
    """Bounds the addresses of this process."""
    used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(progress, kind, seed, first, n):
    """Runs the calls [first, first + n)."""
    from . import kinds
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)       # what calls print
    with open(progress, "r+b") as file:
        place = mmap.mmap(file.fileno(), 16)
    if sys.platform == "linux" and "asan" not in os.environ.get("LD_PRELOAD", ""):
        limit_memory()      # AddressSanitizer takes terabytes, and has limits of its own
    for number in range(first, first + n):
        place[:8] = struct.pack("q", number)
        try:
            call = kinds.made(kind, seed, number)
        except MemoryError:                            # of calls before this one
            continue
        wrong = kinds.run(kind, call)
        if wrong is not None:
            out.write(json.dumps({"number": number, "what": wrong}) + "\n")
    place[:8] = struct.pack("q", first + n)
    out.flush()
    os._exit(0)                                        # no clean-up: threads may be left


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
