"""What the programs of the tests begin with."""

import time

import tensorlib as tl
from tensorlib import distributed as dist


def all_parts(namespace):
    """Runs the functions of a program that begin with `test_`, in the same order on all ranks."""
    dist.init_process_group(timeout=20)
    for name, function in list(namespace.items()):
        if name.startswith("test_"):
            start = time.perf_counter()
            function(dist.get_rank(), dist.get_world_size())
            if dist.get_rank() == 0:
                print(f"{name} {time.perf_counter() - start:.2f} s", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    print("passed", flush=True)


def raised(kind, function, *parts):
    """The text of the error that a call raises, of this kind and with these parts."""
    try:
        function()
    except kind as error:
        text = str(error)
    else:
        raise AssertionError(f"no {kind} raised")
    for part in parts:
        assert part in text, (part, text)
    return text


def drawn(seed, *shape, dtype=tl.float32):
    """Small integers, the same on every rank for a seed: sums of them are exact."""
    generator = tl.Generator().manual_seed(seed)
    return tl.randint(-4, 5, shape, generator=generator).to(dtype)
