"""Damaged and hostile files, made from good ones; loading gives a value or a LoadError.

    python tests/saving/damage.py SECONDS [SEED]    tries as many as there is time for
"""

import io
import json
import random
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np

import tensorlib as tl
from tensorlib.serialization import LoadError

FILES = Path(__file__).parent / "files"
NUMBERS = ["-1", "2", "9223372036854775808", "18446744073709551615", "1e400", "99999999999", "null",
           "true", "[]", '"a"', "{}"]


class Safetensors(io.BytesIO):
    """A file in memory whose name says its format."""

    name = "x.safetensors"


def seeds():
    """Good files of each format, by name."""
    found = {path.name: path.read_bytes() for path in FILES.iterdir()}
    x = tl.arange(12.0).reshape(3, 4)
    plain = {"w": x, "b": tl.ones(4).bfloat16(), "flag": tl.tensor([True, False])}
    nested = {"model": plain, "more": [x[1], (1, 2.5, "s", b"b", {3: None})], "size": x.shape,
              "array": np.arange(3), "number": np.float32(2), "type": tl.float32}
    for name, obj in (("plain", plain), ("nested", nested)):
        for file in (Safetensors(), io.BytesIO()):
            tl.save(obj, file)
            found[f"{name}-{getattr(file, 'name', 'x.pt')}"] = file.getvalue()
    for name, write in (("x.npz", np.savez), ("small.npz", np.savez_compressed)):
        file = io.BytesIO()
        write(file, a=np.arange(6.0), b=np.array([True]))
        found[name] = file.getvalue()
    file = io.BytesIO()
    np.save(file, np.arange(6).reshape(2, 3))
    found["x.npy"] = file.getvalue()
    return found


def damaged(rng, data, others):
    """The file with one to four kinds of damage."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at, end = rng.randrange(len(data) + 1), min(len(data), 600)
        kind = rng.randrange(9)
        if kind == 0:
            del data[at:]
        elif kind == 1 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 2 and data:
            place = rng.randrange(end)             # where headers and pickles are
            data[place] = rng.randrange(256)
        elif kind == 3:
            data[at:at] = rng.randbytes(rng.randrange(1, 20))
        elif kind == 4:
            del data[at:at + rng.randrange(1, 20)]
        elif kind == 5:
            data[:8] = rng.choice([0, 1, 2**63, 2**64 - 1, len(data), 10**8]).to_bytes(8, "little")
        elif kind == 6:
            other = rng.choice(others)
            data[at:] = other[rng.randrange(len(other)):]
        elif kind == 7:
            digits = [i for i in range(end) if chr(data[i]).isdigit()]
            if digits:
                place = rng.choice(digits)
                data[place:place + 1] = rng.choice(NUMBERS).encode()
        else:
            number = rng.choice([0, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1])
            size = rng.choice([4, 8])
            data[at:at + size] = (number % 2**(8 * size)).to_bytes(size, "little")
    return bytes(data)


def judge(data, path=None):
    """Loads a file, mapped if it has a path. Returns the error, or None."""
    try:
        if path is None:
            loaded = tl.load(io.BytesIO(data))
        else:
            path.write_bytes(data)
            loaded = tl.load(path, mmap=True)
        repr(loaded)                              # looks at the elements
    except LoadError as error:
        assert str(error).startswith("load: "), error
        return error
    return None


def run(seconds, seed, path):
    """Judges damaged files for so long; returns how many loaded and how many did not."""
    good, rng = seeds(), random.Random(seed)
    assert not [name for name, data in good.items() if judge(data)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counts, until = [0, 0], time.monotonic() + seconds
    while time.monotonic() < until or sum(counts) < 800:
        name = rng.choice(list(good))
        data = damaged(rng, good[name], list(good.values()))
        try:
            began = time.monotonic()
            counts[judge(data, path if rng.random() < 0.3 else None) is not None] += 1
            assert time.monotonic() - began < 5, "too slow"
        except BaseException:
            print(f"from {name}: {data!r}", file=sys.stderr)
            raise
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000, f"{grown} KiB more"
    return counts


def safetensors(header, data=b"", length=None):
    """A file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def zipped(members, **options):
    """A zip file of names and bytes, even of the same name twice."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def torch_file(program, more=(), byteorder=b"little"):
    """A file of torch.save with any pickle."""
    order = [("a/byteorder", byteorder)] if byteorder else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zipped([("a/data.pkl", program), *order, *more])


if __name__ == "__main__":
    file = Path(tempfile.gettempdir()) / "damaged"
    print(run(float(sys.argv[1]), int((sys.argv[2:] or ["0"])[0]), file))
