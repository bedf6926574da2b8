"""Times without garbage collections, which may overlap in several threads."""

import gc
from _thread import allocate_lock      # `threading` takes long to import
from contextlib import contextmanager

_lock = allocate_lock()
_pauses = 0                # of this moment, in all threads
_collected = False         # whether collections were on before the first of them


def pause():
    """Switches collections off until `resume` was called as often as this function."""
    global _pauses, _collected
    with _lock:
        if not _pauses:
            _collected = gc.isenabled()
        _pauses += 1
        gc.disable()           # also where somebody switched them on since the first pause


def resume():
    """Ends one pause; after the last of them collections are on if they were on before."""
    global _pauses
    with _lock:
        _pauses -= 1
        if not _pauses and _collected:
            gc.enable()


@contextmanager
def without_collections():
    """Under it nobody looks for garbage among what is made, of which nearly all stays."""
    pause()
    try:
        yield
    finally:
        resume()
