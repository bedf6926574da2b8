"""The least time that a machine can take: bytes over a bandwidth, operations over a peak."""

from time import perf_counter_ns

import numpy as np

# Bytes of two buffers, of which one is copied to the other: in the caches, in memory.
BUFFERS = (1 << 14, 1 << 18, 1 << 22, 1 << 27)
PRODUCT = 1_024             # rows of the matrices whose product reaches the peak


def fastest(function, repeats, times):
    """The nanoseconds of one call, in the fastest of several loops."""
    least = float("inf")
    for _ in range(repeats):
        start = perf_counter_ns()
        for _ in range(times):
            function()
        least = min(least, (perf_counter_ns() - start) / times)
    return least


def machine():
    """Bytes per nanosecond that a copy moves, by the bytes that take part; operations per
    nanosecond in a product of float32; the nanoseconds of a call. Of one core."""
    import tensorlib as tl
    threads = tl.get_num_threads()
    tl.set_num_threads(1)
    rates = []
    for size in BUFFERS:
        a, b = np.zeros(size // 2, np.uint8), np.zeros(size // 2, np.uint8)
        rates.append((size, size / fastest(lambda a=a, b=b: np.copyto(a, b), 5,
                                           max(1, (1 << 24) // size))))
    x, small = tl.rand(PRODUCT, PRODUCT), tl.rand(16)
    peak = 2 * PRODUCT ** 3 / fastest(lambda: x @ x, 5, 1)
    call = fastest(small.neg, 5, 1_000)
    tl.set_num_threads(threads)
    return {"rates": rates, "peak": peak, "call": call}


def least(machine, size, operations, threads):
    """The nanoseconds below which no call can be that touches `size` bytes and computes so much."""
    rate = next((rate for buffer, rate in machine["rates"] if size <= 2 * buffer),
                machine["rates"][-1][1])
    return machine["call"] + max(size / rate, operations / machine["peak"]) / threads
