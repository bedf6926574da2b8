"""Access to MPI: finding mpi4py and the launcher, and MPI's view of the elements of a tensor."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import tensorlib
from tensorlib.distributed import single_process
from tensorlib.distributed.errors import DistError

# What launchers put into the environment of the processes that they start.
LAUNCHERS = ("PMI_RANK", "PMI_ID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK",
             "PALS_RANKID", "ALPS_APP_PE", "SLURM_PROCID")

# MPI's name for the elements of each dtype. Half types are two bytes to it, with sums of our own.
TYPES = {
    "bool": "UINT8_T", "uint8": "UINT8_T", "int8": "INT8_T", "int16": "INT16_T",
    "int32": "INT32_T", "int64": "INT64_T", "uint16": "UINT16_T", "uint32": "UINT32_T",
    "uint64": "UINT64_T", "float16": "UINT16_T", "bfloat16": "UINT16_T", "float32": "FLOAT",
    "float64": "DOUBLE", "complex64": "C_FLOAT_COMPLEX", "complex128": "C_DOUBLE_COMPLEX",
}
OPERATIONS = {"sum": "SUM", "avg": "SUM", "product": "PROD", "min": "MIN", "max": "MAX",
              "band": "BAND", "bor": "BOR", "bxor": "BXOR"}
# A bool is true where the sum of the numbers that stand for it is not zero.
OF_BOOLS = {"sum": "LOR", "max": "LOR", "bor": "LOR", "product": "LAND", "min": "LAND",
            "band": "LAND", "bxor": "LXOR"}
IN_FLOAT32 = {"SUM": tensorlib.add, "PROD": tensorlib.mul, "MIN": tensorlib.minimum,
              "MAX": tensorlib.maximum}


def is_available() -> bool:
    """True: a group of one process needs nothing else. For more there is `is_mpi_available()`.

    >>> tensorlib.distributed.is_available()
    True
    """
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return find_spec("mpi4py") is not None


def is_launched() -> bool:
    """Whether a launcher of MPI (`mpiexec`, `mpirun`, `srun`) started this process.

    A script that makes a group only then runs by itself and under a launcher unchanged.
    """
    return any(name in os.environ for name in LAUNCHERS)


@cache
def mpi() -> Any:
    """The module `mpi4py.MPI`, which starts MPI when it is first imported.

    A process that no launcher started needs none: without mpi4py it gets `single_process`.
    """
    if not is_mpi_available() and not is_launched():
        return single_process
    if not is_mpi_available():
        raise DistError("tensorlib.distributed: mpi4py is not installed; "
                        "pip install 'tensorlib[mpi]'")
    try:
        found = import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise DistError(
            "tensorlib.distributed: mpi4py found no MPI library on this machine; pip install "
            f"mpich, or load the MPI of your cluster ({error})") from error
    if found.Query_thread() < found.THREAD_MULTIPLE:
        raise DistError("tensorlib.distributed: MPI runs without the support of threads that is "
                        "needed (MPI_THREAD_MULTIPLE), since loaders and sweeps have threads; "
                        "leave mpi4py.rc.thread_level at 'multiple', or use an MPI that has it")
    return found


@cache
def mpi_type(dtype: Any) -> Any:
    """How MPI calls the elements of this dtype."""
    return getattr(mpi(), TYPES[dtype.name])


@cache
def mpi_operation(name: str, dtype: Any) -> Any:
    """MPI's operation for this reduction of these elements, or None where there is none."""
    if dtype == tensorlib.bool:
        return getattr(mpi(), OF_BOOLS[name]) if name in OF_BOOLS else None
    called = OPERATIONS[name]
    if name in ("band", "bor", "bxor") and (dtype.is_floating_point or dtype.is_complex):
        return None
    if name == "avg" and not (dtype.is_floating_point or dtype.is_complex):
        return None
    if name in ("min", "max") and dtype.is_complex:
        return None
    if dtype in (tensorlib.float16, tensorlib.bfloat16):
        return in_float32(called, dtype)
    return getattr(mpi(), called)


def in_float32(called: str, dtype: Any) -> Any:
    """An MPI operation on half types: computed in float32, rounded where two meet."""
    function = IN_FLOAT32[called]

    def combine(incoming: Any, result: Any, datatype: Any) -> None:
        with tensorlib.no_grad():
            a, b = (tensorlib.frombuffer(part, dtype=dtype) for part in (incoming, result))
            b.copy_(function(a.float(), b.float()))

    return mpi().Op.Create(combine, commute=True)


@cache
def lent() -> Any:
    """What makes memory at an address one that mpi4py takes."""
    return mpi().memory.fromaddress


def memory(x: Any) -> list[Any]:
    """The elements of a contiguous tensor, or of several, as mpi4py takes them: no copy."""
    return [lent()(x.data_ptr(), x.nbytes), mpi_type(x.dtype)]


def memory_in_parts(x: Any, counts: list[int]) -> list[Any]:
    """The same, as parts of so many elements each, one after the other."""
    places, total = [], 0
    for count in counts:
        places.append(total)
        total += count
    return [memory(x)[0], counts, places, mpi_type(x.dtype)]
