"""`save` and `load`, whose implementation is imported when they are first called."""

from os import PathLike
from typing import IO, Any

from tensorlib._core.base.explained import explain
from tensorlib._core.base.importing import deferred

save_it = deferred("tensorlib.io.files.saving", "save")
load_it = deferred("tensorlib.io.files.loading", "load")


def save(
    obj: Any, f: "str | PathLike[str] | IO[bytes]", pickle_module: Any = None,
    pickle_protocol: Any = None, _use_new_zipfile_serialization: Any = None,
) -> None:
    """Writes an object to a file: tensors, containers of them, or anything that has a pickle.

    The file is one that `torch.load` opens, unless the path, or the name of the open file, ends
    with `.safetensors`, which other programs read: there containers are dicts, lists, tuples and
    sets, nested as you like, and beside tensors they may hold numbers, strings, bytes, None,
    dtypes, sizes, and NumPy's arrays and numbers. `.npz` makes a NumPy archive of a dict of
    tensors, `.npy` one array. Tensors that share memory share it after loading.

    A path is replaced all at once: whatever happens while it is written, there is the old file or
    the new one. The last three parameters are PyTorch's and make no difference.

    Raises: TypeError for objects that the file can't hold, with the place of the first where there
    is no pickle; ValueError for what is nested too deeply.

    >>> import io
    >>> file = io.BytesIO()
    >>> tensorlib.save({"w": tensorlib.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> tensorlib.load(file)
    {'w': tensor([1., 1.]), 'epoch': 3}
    """
    save_it(obj, f)


def load(
    f: "str | PathLike[str] | IO[bytes]", map_location: Any = None, pickle_module: Any = None, *,
    weights_only: "bool | None" = None, mmap: "bool | None" = None, **pickle_load_args: Any,
) -> Any:
    """What a file holds that `save`, `torch.save`, `numpy.save` or a safetensors program wrote.

    Nothing in the file is executed, unless `weights_only=False` says that it can be trusted: whole
    models, and other objects of any class, are made by their pickles, which may run anything. By
    default a file of `save` or `torch.save` that names another class than tensors and containers
    are made of is refused, unless `serialization.add_safe_globals` allows the class.

    All is read into memory of its own. With `mmap=True` tensors of a safetensors file, or one of
    `torch.save`, that is given by its path lie in the file's mapped memory: what is not used is not
    read, and writing to a tensor changes the tensor alone. That is for files that nobody writes to
    in place or cuts off: the system ends a process that touches memory whose file is gone. All
    tensors are on the CPU, wherever they were; `map_location` may say so, or `"meta"`, for tensors
    without memory.

    Raises: serialization.LoadError, a RuntimeError, ValueError and pickle.UnpicklingError, for what
    is no such file or is damaged, also an EOFError for an empty file; OSError where it can't be
    read; RuntimeError for another device.

    >>> import io
    >>> file = io.BytesIO()
    >>> tensorlib.save([tensorlib.arange(3)], file)
    >>> _ = file.seek(0)
    >>> tensorlib.load(file, weights_only=True)
    [tensor([0, 1, 2])]
    """
    return load_it(f, map_location=map_location, weights_only=weights_only, mmap=mmap)


explain(vars(), ["load", "save"])
