"""Functions of `functools.cache` and `lru_cache`: what a call finds there is guarded.

A replay looks it up once more, as the call does, which counts it and makes it the latest one. A
call that finds nothing changes the cache, and the next one is captured.
"""

import functools
import gc
from typing import Any

from tensorlib.program.guards.values import MISSING
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.reads.known import ATOMS

CACHED = type(functools.lru_cache(lambda: None))


class CacheHit:
    """What a call finds in the cache of `f`. counts: whether it is looked up as the call does it,
    or only whether it is there.

    The cache has it under its key, or in an entry. An entry is taken for another key where a cache
    of limited size finds nothing.
    """

    def __init__(self, f: Any, cache: dict[Any, Any], key: Any, args: tuple[Any, ...],
                 kwargs: dict[str, Any]):
        self.f, self.cache, self.key, self.args, self.kwargs = f, cache, key, args, kwargs
        self.found: Any = MISSING
        self.seen: Any = None                # the entry, and how often nothing was found then
        self.counts = False

    def __call__(self, f: Any, _: Any) -> Any:
        if not self.is_there():
            return MISSING
        return f(*self.args, **self.kwargs) if self.counts else self.found

    def is_there(self) -> bool:
        """Whether the cache has it."""
        entry = self.cache.get(self.key, MISSING)
        if entry is self.found:
            return True
        now = entry, misses_of(self.f, None)
        if self.seen is None or self.seen[0] is not entry or self.seen[1] != now[1]:
            if entry is MISSING or not any(x is self.found for x in gc.get_referents(self.f)):
                return False
            self.seen = now
        return True


def record_cached_call(recorder: Any, f: Any, args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> None:
    """Records what a call of a function with a cache reads there."""
    held = gc.get_referents(f)
    caches = [x for x in held if type(x) is dict and x is not vars(f)]
    marks = [x for x in held if type(x) is object]
    if len(caches) != 1 or len(marks) != 1 or not all(map(is_compared_safely, (
            *args, *kwargs.values()))):
        recorder.fail(f"whether {f.__qualname__}() has a result for its arguments in its cache is "
                      f"not known, {user_line()}")
        return
    cache, key = caches[0], key_of(args, kwargs, f.cache_parameters()["typed"], marks[0])
    if key in cache:
        recorder.hit = CacheHit(f, cache, key, args, kwargs)
    else:
        recorder.instrument(f.__wrapped__)
        recorder.record_value(f, misses_of, None)


def key_of(args: tuple[Any, ...], kwargs: dict[str, Any], is_typed: bool, mark: Any) -> Any:
    """What is in the cache under these arguments is under this key. mark: what stands between those
    by place and those by name."""
    if len(args) == 1 and not kwargs and not is_typed and type(args[0]) in (int, str):
        return args[0]
    named = (mark, *(part for pair in kwargs.items() for part in pair)) if kwargs else ()
    kinds = map(type, (*args, *kwargs.values())) if is_typed else ()
    return (*args, *named, *kinds)


def is_compared_safely(x: Any) -> bool:
    """Whether no code of the user's compares an object, which is equal to itself; NaN is not."""
    kind = type(x)
    return id(kind) in ATOMS and x == x or kind is tuple and all(map(is_compared_safely, x)) or (
        kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__)


def misses_of(f: Any, _: Any) -> int:
    """How often a function with a cache found nothing there."""
    misses: int = f.cache_info().misses
    return misses
