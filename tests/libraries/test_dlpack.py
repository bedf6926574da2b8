"""Tensors lent to other libraries and borrowed from them by DLPack."""

import ctypes
import gc
import sys
import weakref

import numpy as np
import pytest
from cases import each
from process import run_python

import tensorlib as tl
from tensorlib.utils import dlpack

SHARED = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
          "float16", "float32", "float64"]
DTYPES = [*SHARED, "bfloat16"]
VIEWS = [lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1], lambda x: x[1, 1],
         lambda x: x[:0], lambda x: x[None], lambda x: x[0].expand(3, 4)]


class OnlyDLPack:
    """An array of a library that has the protocol and nothing else."""

    def __init__(self, array, **refused):
        self.array, self.refused, self.asked = array, refused, []

    def __dlpack__(self, **wishes):
        self.asked.append(wishes)
        for name in self.refused:
            if name in wishes:
                raise TypeError(f"unexpected keyword {name!r}")
        return self.array.__dlpack__(**wishes)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


# ---- round trips ---------------------------------------------------------------------------------

@each("dtype", DTYPES)
@each("view", VIEWS)
def test_a_round_trip_shares_memory(dtype, view):
    x = view(tl.ones(3, 4, dtype=getattr(tl, dtype)))
    y = tl.from_dlpack(x)
    assert y.dtype == x.dtype and y.shape == x.shape
    assert y.tolist() == x.tolist()
    if x.numel():
        assert y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
        if y.stride() != (0, 1):
            y.zero_()
            assert not x.any()


@each("dtype", SHARED)
@each("view", VIEWS)
def test_numpy_shares_memory_both_ways(dtype, view):
    x = view(tl.ones(3, 4, dtype=getattr(tl, dtype)))
    array = np.from_dlpack(x)
    assert array.dtype == dtype and array.shape == tuple(x.shape)
    back = tl.from_dlpack(OnlyDLPack(x.numpy()))
    if x.numel():
        assert array.ctypes.data == back.data_ptr() == x.data_ptr()


def test_what_shows_dlpack_alone_becomes_a_tensor():
    array = np.arange(3.0)
    for make in (tl.tensor, tl.as_tensor, tl.asarray):
        assert make(OnlyDLPack(array)).tolist() == [0.0, 1.0, 2.0]
    assert tl.as_tensor(OnlyDLPack(array)).data_ptr() == array.ctypes.data
    assert tl.tensor(OnlyDLPack(array)).data_ptr() != array.ctypes.data


@each("refused", [{}, {"max_version": 1}, {"max_version": 1, "copy": 1}])
@each("copy", [None, True, False])
def test_producers_of_any_age_are_understood(refused, copy):
    producer = OnlyDLPack(array := np.arange(3.0), **refused)
    x = tl.from_dlpack(producer, copy=copy)
    assert (x.data_ptr() == array.ctypes.data) is not (copy is True)
    assert x.tolist() == [0.0, 1.0, 2.0]


def test_an_error_of_the_producer_is_raised():
    class Broken:
        def __dlpack__(self, **wishes):
            raise TypeError("no such luck")

    with pytest.raises(TypeError, match="no such luck"):
        tl.from_dlpack(Broken())


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (2, 0)])
def test_copies_and_versions(max_version):
    x = tl.arange(3.0)
    capsule = x.__dlpack__(max_version=max_version, copy=True, dl_device=(1, 0), stream=None)
    new = max_version is not None and max_version[0] >= 1
    assert ("dltensor_versioned" in repr(capsule)) == new
    assert flags_of(capsule) == 2 if new else True
    y = tl.from_dlpack(capsule)
    assert y.data_ptr() != x.data_ptr() and y.tolist() == x.tolist()


def test_capsules_of_older_scripts():
    x = tl.arange(3.0)
    for lend in (tl.to_dlpack, dlpack.to_dlpack):
        assert dlpack.from_dlpack(lend(x)).data_ptr() == x.data_ptr()
    assert x.__dlpack_device__() == (dlpack.DLDeviceType.kDLCPU, 0)


# ---- read-only memory ----------------------------------------------------------------------------

def test_read_only_memory_stays_so():
    array = np.arange(3.0)
    array.flags.writeable = False
    x = tl.from_dlpack(array)
    with pytest.raises(RuntimeError, match="read-only"):
        x.zero_()
    assert flags_of(x.__dlpack__(max_version=(1, 0))) == 1
    with pytest.raises(RuntimeError, match="read-only"):
        tl.from_dlpack(x).zero_()
    assert not np.from_dlpack(x).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()
    assert array.tolist() == [0.0, 1.0, 2.0]


# ---- how long memory lives -----------------------------------------------------------------------

def test_memory_outlives_either_side():
    array = np.from_dlpack(tl.full((100_000,), 3.0))
    x = tl.from_dlpack(np.full(100_000, 4.0))
    gc.collect()
    churn = [np.zeros(100_000), tl.zeros(100_000)]
    assert array.mean() == 3.0 and x.mean().item() == 4.0
    del churn


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("consumed", [True, False])
def test_what_was_lent_is_given_back_once(max_version, consumed):
    class Array(np.ndarray):
        pass

    array = np.zeros(1000).view(Array)
    gone = weakref.ref(array)
    x = tl.from_numpy(array)
    capsule = x.__dlpack__(max_version=max_version)
    del x, array
    y = tl.from_dlpack(capsule) if consumed else None
    del capsule
    assert (gone() is None) is not consumed
    if consumed:
        assert y.sum() == 0
        y = None
        assert gone() is None


def test_a_capsule_is_used_once():
    capsule = tl.ones(2).__dlpack__()
    kept = tl.from_dlpack(capsule)
    with pytest.raises(BufferError, match="used before"):
        tl.from_dlpack(capsule)
    assert kept.tolist() == [1.0, 1.0]


def test_no_memory_is_lost():
    x, before = tl.ones(1000), None
    for turn in range(40):
        for max_version in (None, (1, 0)):
            x.__dlpack__(max_version=max_version)
            tl.from_dlpack(x.__dlpack__(max_version=max_version, copy=True))
        if turn == 4:
            before = tl.memory.stats()["in_use"], sys.getrefcount(x)
    assert (tl.memory.stats()["in_use"], sys.getrefcount(x)) == before


def test_a_capsule_may_outlive_the_interpreter():
    assert run_python(
        "import sys, tensorlib as tl, numpy as np\n"
        "x = tl.ones(3)\n"
        "sys.kept = x.__dlpack__(), np.from_dlpack(x), tl.from_dlpack(np.ones(2))\n"
        "print('done')").strip() == "done"


# ---- what is refused -----------------------------------------------------------------------------

@each("call, error, message", [
    (lambda: tl.ones(2, requires_grad=True).__dlpack__(), BufferError, "require gradient"),
    (lambda: tl.ones(3)[::-1].__dlpack__(), BufferError, "steps below 0"),
    (lambda: tl.ones(2).__dlpack__(stream=1), BufferError, "streams"),
    (lambda: tl.ones(2).__dlpack__(stream="1"), TypeError, "stream"),
    (lambda: tl.ones(2).__dlpack__(dl_device=(2, 0)), BufferError, "CPU"),
    (lambda: tl.ones(2).__dlpack__(dl_device=3), TypeError, "pairs of ints"),
    (lambda: tl.ones(2).__dlpack__(max_version="a"), TypeError, "pairs of ints"),
    (lambda: tl.to_dlpack([1]), TypeError, "to_dlpack"),
    (lambda: tl.from_dlpack([1]), TypeError, "__dlpack__"),
    (lambda: tl.from_dlpack(np.ones(2), device="cuda"), RuntimeError, "CUDA"),
])
def test_what_cannot_be_shared_is_an_error(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_another_device_is_asked_for_nothing():
    class Elsewhere:
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **wishes):
            raise AssertionError("asked")

    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        tl.from_dlpack(Elsewhere())


# ---- structures made by hand ---------------------------------------------------------------------

class Structure(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Structure), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", Structure)]


pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def flags_of(capsule):
    """The flags of a capsule of version 1; None for one before it."""
    if "versioned" not in repr(capsule):
        return None
    return Versioned.from_address(pointer_of(capsule, b"dltensor_versioned")).flags


class Foreign:
    """Six float32 as a library would lend them, with any field of the structure changed."""

    def __init__(self, versioned, shape=(2, 3), strides=None, version=1, flags=0, deleter=True,
                 **fields):
        self.memory = np.arange(8, dtype=np.float32)
        self.deleted = 0
        self.keep = [DELETER(self.delete)]
        made = self.made = (Versioned if versioned else Managed)()
        lent = made.tensor
        lent.data, lent.device[0], lent.ndim = self.memory.ctypes.data, 1, len(shape or ())
        lent.code, lent.bits, lent.lanes = 2, 32, 1
        lent.shape = self.numbers(shape)
        lent.strides = self.numbers(strides)
        if deleter:
            made.deleter = self.keep[0]
        if versioned:
            made.version[0], made.flags = version, flags
        for name, value in fields.items():
            if name == "device":
                lent.device[0] = value
            else:
                setattr(lent, name, value)
        self.name = b"dltensor_versioned" if versioned else b"dltensor"

    def numbers(self, values):
        if values is None:
            return None
        array = (ctypes.c_int64 * max(1, len(values)))(*values)
        self.keep.append(array)
        return array

    def delete(self, address):
        assert address == ctypes.addressof(self.made)
        self.deleted += 1

    def capsule(self):
        return new_capsule(ctypes.addressof(self.made), self.name, None)


@pytest.fixture(params=[False, True], ids=["old", "versioned"])
def versioned(request):
    return request.param


@each("fields, values", [
    ({}, [[0, 1, 2], [3, 4, 5]]),
    ({"strides": (1, 2)}, [[0, 2, 4], [1, 3, 5]]),
    ({"byte_offset": 8}, [[2, 3, 4], [5, 6, 7]]),
    ({"shape": (3,), "strides": (-1,), "byte_offset": 8}, [2, 1, 0]),
    ({"shape": (), "byte_offset": 4}, 1),
    ({"shape": (2, 0)}, [[], []]),
    ({"shape": (0, 2**40), "data": None}, []),
    ({"shape": (2, 2), "strides": (0, 1)}, [[0, 1], [0, 1]]),
    ({"shape": (1, 2), "strides": (2**62, 1)}, [[0, 1]]),
    ({"deleter": False}, [[0, 1, 2], [3, 4, 5]]),
])
def test_structures_of_other_libraries(versioned, fields, values):
    lent = Foreign(versioned, **fields)
    x = tl.from_dlpack(lent.capsule())
    assert x.tolist() == values and lent.deleted == 0
    y = x[...]
    del x
    assert lent.deleted == 0
    del y
    assert lent.deleted == fields.get("deleter", True)


@each("fields", [
    {"ndim": -1}, {"ndim": 65}, {"ndim": 2**31 - 1}, {"shape": None, "ndim": 2},
    {"shape": (-1, 2)}, {"shape": (2**62, 8)}, {"shape": (2**63 - 1,)}, {"shape": (2**31, 2**31)},
    {"strides": (2**62, 2)}, {"strides": (-2**63, 1)}, {"strides": (2**63 - 1, 2**63 - 1)},
    {"shape": (2, 2), "strides": (2**61, 2**61)}, {"shape": (2,), "strides": (-2**60,)},
    {"lanes": 2}, {"lanes": 0}, {"bits": 31}, {"bits": 0}, {"bits": 128}, {"code": 3}, {"code": 5},
    {"code": 200}, {"device": 2}, {"device": 0}, {"device": -1}, {"data": None},
    {"byte_offset": 2}, {"byte_offset": 2**64 - 4}, {"byte_offset": 2**63},
])
def test_hostile_structures_are_refused(versioned, fields):
    lent = Foreign(versioned, **fields)
    with pytest.raises(BufferError, match="from_dlpack"):
        tl.from_dlpack(lent.capsule())
    assert lent.deleted == 1              # it was taken over, and released


@pytest.mark.parametrize("version", [0, 2, 2**32 - 1])
def test_other_versions_are_refused(version):
    lent = Foreign(True, version=version, ndim=-5)
    with pytest.raises(BufferError, match=f"version {version}.0"):
        tl.from_dlpack(lent.capsule())
    assert lent.deleted == 1


def test_the_flag_of_read_only_memory_is_heeded():
    lent = Foreign(True, flags=1)
    with pytest.raises(RuntimeError, match="read-only"):
        tl.from_dlpack(lent.capsule()).add_(1)
    assert lent.memory.tolist() == list(range(8))


@each("name", [None, b"", b"dltensor_of_another", b"used_dltensor", b"\xff"])
def test_capsules_of_others_are_refused(name):
    lent = Foreign(False)
    with pytest.raises(BufferError, match="capsule"):
        tl.from_dlpack(new_capsule(ctypes.addressof(lent.made), name, None))
    assert lent.deleted == 0
