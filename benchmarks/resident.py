"""The resident memory of this process."""

import resource
import sys
from pathlib import Path


def _status(field: str) -> int:
    """A field of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(f"/proc/self/status has no {field}")


def peak_bytes() -> int:
    """The most memory that was ever resident."""
    if sys.platform == "linux":  # where ru_maxrss can be that of the parent process
        return _status("VmHWM")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Begins the peak anew, with what is resident now; on Linux alone."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")


def resident_bytes() -> int:
    """The memory resident now; elsewhere than on Linux, the peak."""
    return _status("VmRSS") if sys.platform == "linux" else peak_bytes()
