"""A folder with one safetensors file of each rank, and an index that says what lies where.

Each rank writes its stretches of sharded tensors. What all ranks have is written by one of them,
in turn. The index is written last, by rank 0, so that a folder with one is complete. To load, a
rank reads the parts that its own stretches need, from the mapped files of any number of ranks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorlib
from tensorlib import Tensor, no_grad
from tensorlib.distributed.checkpoint.state_dict import Stretch
from tensorlib.distributed.group import ProcessGroup, group_of
from tensorlib.distributed.objects import all_gather_object

__all__ = ["load", "save"]

INDEX = "index.json"
PLAIN = (bool, int, float, str, type(None))


def flattened(state: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any, Any, str]]:
    """Names joined by slashes, values, and the dicts and keys that they are at."""
    for key, value in state.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from flattened(value, name + "/")
        else:
            yield name, value, state, key


def save(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str],
         process_group: ProcessGroup | None = None) -> None:
    """Writes a state into a folder. All ranks make this call.

    The state is made of dicts, tensors, `Stretch`es, numbers, texts, and lists of these last two.
    Raises: TypeError for anything else, on all ranks; what writing raises.
    """
    group = group_of(process_group, "checkpoint.save")
    group.check("checkpoint.save")
    folder, rank, size = Path(checkpoint_id), group.rank(), group.size()
    file = f"rank{rank}of{size}.safetensors"
    tensors, facts, values, refused = written_by(rank, size, state_dict, file)
    told: list[Any] = [None] * size
    all_gather_object(told, (refused, facts), group)
    refusals = [text for text, _ in told if text]
    if refusals:
        raise TypeError(f"checkpoint.save: {refusals[0]}; a state has tensors, numbers, texts and "
                        "lists of these")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / INDEX).unlink(missing_ok=True)
    failed = None
    try:
        tensorlib.save(tensors, folder / file)
    except OSError as error:
        failed = error
    outcomes: list[Any] = [None] * size
    all_gather_object(outcomes, failed and str(failed), group)
    if any(outcomes):
        raise failed or OSError(f"checkpoint.save: another rank could not write: "
                                f"{next(filter(None, outcomes))}")
    if rank == 0:
        index = {"format": 1, "tensors": merged([part for _, part in told]), "values": values}
        part = folder / f"{INDEX}.part"
        part.write_text(json.dumps(index))
        part.replace(folder / INDEX)
    all_gather_object(outcomes, True, group)


def written_by(rank: int, size: int, state_dict: dict[str, Any], file: str) -> tuple[
        dict[str, Tensor], dict[str, Any], dict[str, Any], str | None]:
    """The tensors that a rank of `size` writes into its file, what the index says of all, the plain
    values, and what cannot be saved.

    A `Stretch` is written by the rank that has it; tensors, which all have, by the ranks in turn.
    """
    tensors: dict[str, Tensor] = {}
    facts: dict[str, Any] = {}
    values: dict[str, Any] = {}
    refused = None
    for number, (name, value, _, _) in enumerate(flattened(state_dict)):
        if isinstance(value, Stretch):
            if value.count():
                tensors[name] = value.tensor.reshape(-1)[:value.count()]
            facts[name] = fact(value.tensor, value.full_shape, file, value.start, value.count())
        elif isinstance(value, Tensor):
            own = number % size == rank
            if own:
                tensors[name] = value.detach().reshape(-1)
            facts[name] = fact(value, value.shape, file, 0, value.numel() if own else 0)
        elif is_plain(value):
            values[name] = value
        else:
            refused = refused or f"{name} is a {type(value).__name__}"
    return tensors, facts, values, refused


def is_plain(value: Any) -> bool:
    """Whether JSON has it, without a loss."""
    return isinstance(value, PLAIN) or isinstance(value, (list, tuple)) and all(
        map(is_plain, value))


def fact(x: Tensor, shape: Any, file: str, start: int, count: int) -> dict[str, Any]:
    """What the index says of a tensor, of one rank's part."""
    return {"dtype": x.dtype.name, "shape": list(shape),
            "parts": [[file, start, count]] if count else []}


def merged(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """What all ranks have of each tensor."""
    found: dict[str, Any] = {}
    for each in facts:
        for name, one in each.items():
            known = found.setdefault(name, {**one, "parts": []})
            known["parts"] += [part for part in one["parts"] if part not in known["parts"]]
    return found


def load(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str],
         process_group: ProcessGroup | None = None) -> None:
    """Fills a state with what a folder has, in place: tensors are written, other values replaced.

    Any number of ranks may have written it. Raises: KeyError for a name that it does not have;
    RuntimeError for another shape or dtype; FileNotFoundError for a folder without an index.
    """
    if process_group is not None:
        group_of(process_group, "checkpoint.load").check("checkpoint.load")
    folder = Path(checkpoint_id)
    if not (folder / INDEX).exists():
        raise FileNotFoundError(f"checkpoint.load: {folder} has no {INDEX}; it is not a "
                                "checkpoint, or was not written to its end")
    index = json.loads((folder / INDEX).read_text())
    files: dict[str, Any] = {}
    entries = list(flattened(state_dict))
    for name, value, _, _ in entries:
        known = index["tensors"] if isinstance(value, (Tensor, Stretch)) else index["values"]
        if name not in known:
            raise KeyError(f"checkpoint.load: {folder} has no {name!r}")
        if known is index["tensors"]:
            check_alike(name, value, known[name])
    with no_grad():
        for name, value, place, key in entries:
            if isinstance(value, (Tensor, Stretch)):
                fill(name, value, index["tensors"][name], folder, files)
            else:
                found = index["values"][name]
                place[key] = tuple(found) if isinstance(value, tuple) else found


def check_alike(name: str, value: Any, known: dict[str, Any]) -> None:
    """Raises RuntimeError for a tensor of another shape or dtype."""
    shape = tuple(value.full_shape if isinstance(value, Stretch) else value.shape)
    x = value.tensor if isinstance(value, Stretch) else value
    dtype = x.dtype.name
    if shape != tuple(known["shape"]) or dtype != known["dtype"]:
        raise RuntimeError(f"checkpoint.load: {name} is {dtype} of {shape}, and was saved as "
                           f"{known['dtype']} of {tuple(known['shape'])}")


def fill(name: str, value: Any, known: dict[str, Any], folder: Path, files: dict[str, Any]) -> None:
    """Writes the saved elements over those of a tensor, or of a stretch of one."""
    if isinstance(value, Stretch):
        target, start, count = value.tensor.view(-1), value.start, value.count()
    else:
        target, start, count = value.new_empty(value.numel()), 0, value.numel()
    missing = count
    for file, place, size in known["parts"]:
        first, last = max(start, place), min(start + count, place + size)
        if first < last:
            if file not in files:
                files[file] = tensorlib.load(folder / file)
            target[first - start:last - start].copy_(
                files[file][name][first - place:last - place])
            missing -= last - first
    if missing:
        raise RuntimeError(f"checkpoint.load: {missing} elements of {name} are in no file")
    if not isinstance(value, Stretch):
        value.copy_(target.view(value.shape))
