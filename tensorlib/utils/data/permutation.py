"""Permutations of more positions than memory holds, computed position by position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Generator

__all__ = ["permuted"]

IN_MEMORY = 1 << 22      # positions: up to here the permutation is a tensor
CHUNK = 4096             # positions that become Python's integers at a time
ROUNDS = 6


def permuted(size: int, generator: Generator | None) -> Iterator[int]:
    """The integers below `size` in a random order, given one by one."""
    if size <= IN_MEMORY:
        order = tl.randperm(size, generator=generator)
        for start in range(0, size, CHUNK):
            yield from order[start:start + CHUNK].tolist()
        return
    keys = tl.randint(0, 2**62, (ROUNDS,), generator=generator).numpy().astype(np.uint64)
    half = ((size - 1).bit_length() + 1) // 2
    for start in range(0, size, CHUNK):
        yield from scattered(start, min(start + CHUNK, size), size, half, keys).tolist()


def scattered(start: int, stop: int, size: int, half: int, keys: Any) -> Any:
    """Where a permutation of `size` positions, given by its keys, takes those from start to stop.

    It is a Feistel network: each round mixes one half of a number's bits with a hash of the other,
    which can be undone, so that all of 2 ** (2 * half) numbers are permuted. A number that lands
    beyond `size` is sent on until it lands inside; since at most 4 numbers are there for each
    position, few rounds do. Source: Black and Rogaway, Ciphers with arbitrary finite domains, 2002.
    """
    mask, shift = np.uint64((1 << half) - 1), np.uint64(half)
    values = np.arange(start, stop, dtype=np.uint64)
    outside = np.arange(len(values))
    while len(outside):
        moving = values[outside]
        left, right = moving >> shift, moving & mask
        for key in keys:
            left, right = right, left ^ (hashed(right, key) & mask)
        values[outside] = moved = left << shift | right
        outside = outside[moved >= size]
    return values


def hashed(values: Any, key: Any) -> Any:
    """64 mixed bits of each number and the key. Source: the finalizer of SplitMix64."""
    mixed = values + key
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return mixed ^ mixed >> np.uint64(31)
