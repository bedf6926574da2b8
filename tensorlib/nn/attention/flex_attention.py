"""Attention whose scores and mask are functions of places, in the manner of `torch.nn.attention`.

>>> from tensorlib.nn.attention.flex_attention import create_block_mask, flex_attention
>>> q = k = v = tensorlib.rand(2, 4, 10, 8)
>>> near = create_block_mask(lambda b, h, q, kv: (q >= kv) & (q - kv < 3), None, None, 10, 10)
>>> flex_attention(q, k, v, score_mod=lambda s, b, h, q, kv: s - 0.1 * (q - kv),
...                block_mask=near).shape
tensorlib.Size([2, 4, 10, 8])

The functions are those of one score; `vmap` applies them to all. All scores are in memory at once:
it is the meaning of PyTorch's function, and not its saving of memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorlib as tl
from tensorlib import Tensor

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask",
           "create_mask", "flex_attention", "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class AuxRequest(NamedTuple):
    """What `flex_attention` is asked for beside the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What it gives beside the result: None for what was not asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def of_all_places(function: Callable[..., Tensor], first: tuple[int | None, ...]) -> Any:
    """A function of (*scores, batch, head, query, key) for all of these; `first` are the dims of
    the scores that each `vmap` takes."""
    for place in (3, 2, 1, 0):          # the innermost counts keys
        places = [0 if place == each else None for each in range(4)]
        function = tl.vmap(function, in_dims=(*first, *places))
    return function


def places(batch: int, heads: int, queries: int, keys: int) -> list[Tensor]:
    """The numbers of batches, heads, queries and keys."""
    return [tl.arange(count) for count in (batch, heads, queries, keys)]


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """True: each query sees each key."""
    return tl.ones((), dtype=tl.bool)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of what all masks show. Raises: RuntimeError for what is not a function."""
    return combined("and_masks", mask_mods, True, lambda a, b: a & b)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of what one of the masks shows. Raises: RuntimeError for what is not a function."""
    return combined("or_masks", mask_mods, False, lambda a, b: a | b)


def combined(name: str, mask_mods: Iterable[MaskMod], first: bool, both: Any) -> MaskMod:
    """A mask that is made of others."""
    given = tuple(mask_mods)
    if not all(map(callable, given)):
        raise RuntimeError(f"{name}: all inputs must be functions, got {given}")

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        shown = tl.full((), first, dtype=tl.bool)
        for each in given:
            shown = both(shown, each(b, h, q, kv))
        return shown
    return mask


def create_mask(mod_fn: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                device: Any = "cpu") -> Tensor:
    """What a mask shows, as bools.

    Args:
        mod_fn: a function of the places of a batch, head, query and key, each a tensor without
            dims, that returns whether the query sees the key.
        B, H: None for a mask that is the same for all batches, or heads.
    Shapes: (B or 1, H or 1, Q_LEN, KV_LEN).
    """
    given = places(B or 1, H or 1, Q_LEN, KV_LEN)
    return of_all_places(mod_fn, ())(*given).to(device=device, dtype=tl.bool)


class BlockMask:
    """A mask for `flex_attention`, which `create_block_mask` makes.

    `mask_mod` is its function, `shape` (B, H, Q_LEN, KV_LEN), `BLOCK_SIZE` the sizes of a block of
    queries and keys, which say how `to_dense` and `sparsity` count.
    """

    def __init__(self, mask_mod: MaskMod, shown: Tensor, block_size: tuple[int, int]) -> None:
        self.mask_mod, self.shown, self.BLOCK_SIZE = mask_mod, shown, block_size

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes (B or 1, H or 1, Q_LEN, KV_LEN)."""
        return tuple(self.shown.shape)

    def to_dense(self) -> Tensor:
        """1 for each block of which anything is shown, else 0: (B, H, blocks of queries, of keys).
        """
        (rows, columns), (b, h, q, kv) = self.BLOCK_SIZE, self.shown.shape
        padded = tl.nn.functional.pad(self.shown.int(), (0, -kv % columns, 0, -q % rows))
        blocks = padded.view(b, h, padded.shape[2] // rows, rows, padded.shape[3] // columns,
                             columns)
        return blocks.amax((3, 5))

    def sparsity(self) -> float:
        """Which part of the blocks shows nothing, in percent."""
        return 100 * (1 - self.to_dense().double().mean().item())

    def to(self, device: Any) -> BlockMask:
        """The mask on a device."""
        return BlockMask(self.mask_mod, self.shown.to(device), self.BLOCK_SIZE)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(mask_mod: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                      device: Any = "cpu", BLOCK_SIZE: int | tuple[int, int] = 128,
                      _compile: bool = False) -> BlockMask:
    """A mask for `flex_attention`; its arguments are those of `create_mask`.

    Args:
        BLOCK_SIZE: how many queries and keys a block has, as one number or two.
        _compile: changes nothing.
    """
    rows, columns = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
    return BlockMask(mask_mod, create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), (rows, columns))


def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: ScoreMod | None = None,
                   block_mask: BlockMask | None = None, scale: float | None = None,
                   enable_gqa: bool = False, return_lse: bool = False,
                   kernel_options: dict[str, Any] | None = None, *,
                   return_aux: AuxRequest | None = None) -> Any:
    """Attention: the values weighted by the softmax of what `score_mod` makes of the scores.

    Args:
        score_mod: a function of a score and of the places of its batch, head, query and key, all
            tensors without dims, that returns another score.
        block_mask: which keys each query sees, by default all. A query that sees none gets 0.
        scale: the factor of the products, by default 1 / sqrt(E).
        enable_gqa: whether fewer heads of keys and values than of queries each serve several.
        return_lse: whether the logarithms of the sums of exponentials are returned, too.
        kernel_options: changes nothing.
        return_aux: what is returned beside, in an `AuxOutput`: the logarithms, the largest scores.
    Shapes: query (B, H, L, E), key (B, H, S, E), value (B, H, S, Ev) -> (B, H, L, Ev), and with
    `return_lse` (B, H, L).
    Raises: ValueError for other numbers of dims, heads that do not fit and a mask of other sizes.
    Source: J. Dong et al., "Flex Attention", 2024.
    """
    checked(query, key, value, enable_gqa)
    batch, heads, queries, width = query.shape
    if enable_gqa and key.shape[1] != heads:
        key, value = (x.repeat_interleave(heads // key.shape[1], 1) for x in (key, value))
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(width) if scale is None else scale)
    keys = key.shape[2]
    if score_mod is not None:
        given = places(batch, heads, queries, keys)
        scores = of_all_places(score_mod, (0,))(scores, *given).to(query.dtype)
    if block_mask is not None:
        shown = block_mask.shown
        if shown.shape[2:] != scores.shape[2:] or any(
                n not in (1, wanted) for n, wanted in zip(shown.shape, scores.shape, strict=True)):
            raise ValueError(f"flex_attention: block_mask of shape {block_mask.shape} does not fit "
                             f"scores of shape {tuple(scores.shape)}")
        scores = scores.masked_fill(~shown, -math.inf)
    unseeing = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(unseeing, 0).softmax(-1).masked_fill(unseeing, 0)
    out = weights @ value
    if not return_lse and return_aux is None:
        return out
    sums = scores.masked_fill(unseeing, 0).logsumexp(-1)
    sums = sums.masked_fill(unseeing.squeeze(-1), -math.inf)
    if return_aux is None:
        return out, sums
    return out, AuxOutput(sums if return_aux.lse else None,
                          scores.amax(-1) if return_aux.max_scores else None)


def checked(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    """Raises ValueError unless queries, keys and values fit each other."""
    shapes = [tuple(x.shape) for x in (query, key, value)]
    if any(len(shape) != 4 for shape in shapes):
        raise ValueError(f"flex_attention: expects tensors of 4 dims, got shapes {shapes}")
    (b, h, _, e), (kb, kh, s, ke), (vb, vh, vs, _) = shapes
    if (kb, ke) != (b, e) or (vb, vh, vs) != (kb, kh, s) or (
            kh != h and not (enable_gqa and kh and h % kh == 0)):
        raise ValueError(f"flex_attention: shapes {shapes} of query, key and value do not fit"
                         + ("" if enable_gqa else "; enable_gqa=True takes fewer heads of keys"))
