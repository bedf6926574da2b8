"""Hooks that send gradients as they are, or in half of the bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorlib
from tensorlib import Tensor
from tensorlib.distributed.collectives import all_reduce
from tensorlib.distributed.group import ProcessGroup, group_of
from tensorlib.distributed.work import WorkFuture

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
           "fp16_compress_wrapper"]

Hook = Callable[[Any, Any], WorkFuture]


def mean_of(process_group: ProcessGroup | None, x: Tensor) -> WorkFuture:
    """A future of the mean of x over the ranks, in its memory."""
    group = group_of(process_group, "allreduce_hook")
    with tensorlib.no_grad():
        x.div_(group.size())
    future = all_reduce(x, "sum", group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


def allreduce_hook(process_group: ProcessGroup | None, bucket: Any) -> WorkFuture:
    """The mean of the gradients: what is done without a hook."""
    return mean_of(process_group, bucket.buffer())


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: Any) -> WorkFuture:
    """The mean of the gradients, which go as float16."""
    return compressed(process_group, bucket, tensorlib.float16)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: Any) -> WorkFuture:
    """The mean of the gradients, which go as bfloat16."""
    return compressed(process_group, bucket, tensorlib.bfloat16)


def compressed(process_group: ProcessGroup | None, bucket: Any, dtype: Any) -> WorkFuture:
    """The mean, divided before it is rounded, so that a sum does not overflow."""
    group, buffer = group_of(process_group, "fp16_compress_hook"), bucket.buffer()
    half = (buffer / group.size()).to(dtype)
    future = all_reduce(half, "sum", group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].to(buffer.dtype))


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that sees the gradients as float16."""
    return wrapped(hook, tensorlib.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that sees the gradients as bfloat16."""
    return wrapped(hook, tensorlib.bfloat16)


def wrapped(hook: Hook, dtype: Any) -> Hook:
    """`hook` on the bucket cast to `dtype`; its result is cast back."""
    def run(state: Any, bucket: Any) -> WorkFuture:
        whole = bucket.buffer()
        bucket.memory = whole.to(dtype)
        try:
            future = hook(state, bucket)
        finally:
            bucket.memory = whole
        return future.then(lambda done: one_of(done.value()).to(whole.dtype))

    return run


def one_of(value: Any) -> Any:
    """The tensor of a future that may hold it in a list."""
    return value[0] if isinstance(value, (list, tuple)) else value
