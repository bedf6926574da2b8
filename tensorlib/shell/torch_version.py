"""Versions that compare by their numbers, as `torch.__version__` does: 2.13 is after 2.4.

>>> tensorlib.torch_version.TorchVersion("2.13.0") >= (2, 4)
True
"""

import re
from collections.abc import Iterable
from typing import Any

from tensorlib._core.base.explained import explain

__all__ = ["TorchVersion"]

# a version as PEP 440 writes it
FORM = re.compile(r"""
    v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<stage>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre>\d*))?
    (?:-(?P<bare>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<count>\d*))?
    (?:[-_.]?(?P<dev>dev)[-_.]?(?P<day>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?""", re.VERBOSE | re.IGNORECASE)
STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "pre": 2, "preview": 2, "rc": 2}
FINAL = 3


def _place(version: Any) -> tuple[Any, ...] | None:
    """What a version is ordered by, or None for what is not a version. Source: PEP 440."""
    if isinstance(version, Iterable) and not isinstance(version, str):
        version = ".".join(map(str, version))
    elif not isinstance(version, str) and not hasattr(version, "release"):
        return None
    found = FORM.fullmatch(str(version).strip())
    if found is None:
        return None
    release = list(map(int, found["release"].split(".")))
    while release and not release[-1]:
        release.pop()
    posted = found["bare"] or found["post"] and (found["count"] or "0")
    post = int(posted) if posted else -1
    if found["stage"]:
        stage = (STAGES[found["stage"].lower()], int(found["pre"] or 0))
    else:               # what is in development for a version comes before its first stage
        stage = (-1, 0) if found["dev"] and post < 0 else (FINAL, 0)
    dev = int(found["day"] or 0) if found["dev"] else float("inf")
    local = re.split("[-_.]", found["local"].lower()) if found["local"] else []
    parts = [(1, int(x), "") if x.isdecimal() else (0, 0, x) for x in local]
    return int(found["epoch"] or 0), release, stage, post, dev, parts


class TorchVersion(str):
    """A version that compares with strings, with tuples of numbers and with `packaging`'s.

    What is not a version is compared as a string.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> Any:
        a, b = _place(self), _place(other)
        return str.__eq__(self, other) if a is None or b is None else a == b  # type: ignore

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        a, b = _place(self), _place(other)
        return str.__lt__(self, other) if a is None or b is None else a < b

    def __le__(self, other: Any) -> bool:
        a, b = _place(self), _place(other)
        return str.__le__(self, other) if a is None or b is None else a <= b

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other


explain(vars(), __all__)
