"""`schedule` and `ProfilerActivity`: when a profile is taken, and of what."""

from collections.abc import Callable
from enum import Enum


class ProfilerActivity(Enum):
    """What may be observed; here there is the CPU."""

    CPU = 0
    CUDA = 1
    XPU = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What a profile does in one step of a program."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """What can be observed: the CPU."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """True: `profile` has schedules, as PyTorch's has by Kineto."""
    return True


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """A function from the number of a step to what a profile does in it.

    After `skip_first` steps there are cycles: `wait` steps of rest, `warmup` steps that are
    observed and forgotten, `active` ones that count; `repeat` of them, or 0 for no end.
    `skip_first_wait`: the first cycle has no rest.
    Raises: ValueError for negative numbers and for no active step.

    >>> actions = tensorlib.profiler.schedule(wait=1, warmup=0, active=2)
    >>> [actions(step).name for step in range(4)]
    ['NONE', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError("schedule: wait, warmup, repeat and skip_first must be 0 or more and "
                         f"active 1 or more, got {wait}, {warmup}, {repeat}, {skip_first}, "
                         f"{active}")
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, length)
        if repeat and cycle >= repeat or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE
    return action
