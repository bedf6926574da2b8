"""Points for TensorBoard's projector: tables in a folder, and the file that names them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensorlib.utils.tensorboard.protos import protos
from tensorlib.utils.tensorboard.values import array_of, as_bytes, png

LARGEST_SPRITE = 8192
CONFIG = "projector_config.pbtxt"


def write_embedding(folder: Path, mat: Any, metadata: Sequence[Any] | None, label_img: Any,
                    step: int, tag: str, header: Sequence[str] | None) -> None:
    """Writes points (N, D), the metadata of each, and an image of each."""
    points = array_of("add_embedding", mat)
    if points.ndim != 2:
        raise ValueError(f"add_embedding: mat is (N, D), got {points.shape}")
    for name, values in (("metadata", metadata), ("label_img", label_img)):
        if values is not None and len(values) != len(points):
            raise ValueError(f"add_embedding: {name} has {len(values)} entries for {len(points)} "
                             "points")
    name = "".join(c if c.isalnum() or c in "_-" else f"%{ord(c):02x}" for c in tag)
    place = f"{step:05d}/{name}"
    (folder / place).mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(map(repr, map(float, row))) for row in points]
    (folder / place / "tensors.tsv").write_text("\n".join(lines) + "\n")
    config = protos().ProjectorConfig()
    if (folder / CONFIG).exists():
        protos().text_format.Parse((folder / CONFIG).read_text(), config)
    name = f"{tag}:{step:05d}"
    kept = [each for each in config.embeddings if each.tensor_name != name]
    del config.embeddings[:]
    config.embeddings.extend(kept)
    entry = config.embeddings.add(tensor_name=name, tensor_path=f"{place}/tensors.tsv")
    if metadata is not None:
        entry.metadata_path = f"{place}/metadata.tsv"
        rows = [[*header]] if header else []
        rows += [[*row] if header else [row] for row in metadata]
        (folder / entry.metadata_path).write_text("".join(
            "\t".join(str(cell).replace("\t", " ").replace("\n", " ") for cell in row) + "\n"
            for row in rows))
    if label_img is not None:
        sprite, size = sprite_of(array_of("add_embedding", label_img))
        entry.sprite.image_path = f"{place}/sprite.png"
        entry.sprite.single_image_dim.extend(size)
        (folder / place / "sprite.png").write_bytes(sprite)
    (folder / CONFIG).write_text(protos().text_format.MessageToString(config))


def sprite_of(images: Any) -> tuple[bytes, tuple[int, int]]:
    """Images (N, C, H, W) in a square of one PNG, and the width and height of each."""
    if images.ndim != 4 or images.shape[1] not in (1, 3, 4):
        raise ValueError(f"add_embedding: label_img is (N, C, H, W), got {images.shape}")
    count, channels, height, width = images.shape
    across = math.ceil(math.sqrt(count))
    if across * max(height, width) > LARGEST_SPRITE:
        raise ValueError(f"add_embedding: {count} images of {height} x {width} are more than "
                         f"TensorBoard shows: at most {LARGEST_SPRITE} pixels across")
    grid = np.zeros((across * across, height, width, channels), np.uint8)
    grid[:count] = as_bytes(images).transpose(0, 2, 3, 1)
    rows = grid.reshape(across, across, height, width, channels).swapaxes(1, 2)
    return png(rows.reshape(across * height, across * width, channels)), (width, height)
