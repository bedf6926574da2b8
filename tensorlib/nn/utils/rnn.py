"""Sequences of different lengths: padded to the longest, or as a `PackedSequence`.

A packed sequence holds the first elements of all sequences, then the second ones of those that have
one, and so on, the longest sequence first. So each step of a recurrent layer is a run of rows.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

from tensorlib import (
    Tensor, arange, as_tensor, cat, empty_like, float16, float32, float64, int8, int16, int32,
    int64, stack, uint8,
)

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
           "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence"]


class Packed(NamedTuple):
    """The fields of a packed sequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(Packed):
    """Sequences without padding: what `pack_padded_sequence` and `pack_sequence` return.

    data: the elements, step after step. batch_sizes: how many there are of each step.
    sorted_indices: from the order given to that by length; unsorted_indices: back again. Both are
    None where the sequences came in order.
    """

    __slots__ = ()

    def __new__(cls, data: Any, batch_sizes: Tensor | None = None,
                sorted_indices: Tensor | None = None,
                unsorted_indices: Tensor | None = None) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (tuple, list)) or len(data) != 2:
                raise AssertionError("PackedSequence: without batch_sizes, data is the pair of "
                                     f"data and batch_sizes, got {type(data).__name__}")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """The sequence with its data in another dtype: see `Tensor.to`."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._replace(data=data)

    def double(self) -> "PackedSequence":
        """The sequence in float64."""
        return self.to(float64)

    def float(self) -> "PackedSequence":
        """The sequence in float32."""
        return self.to(float32)

    def half(self) -> "PackedSequence":
        """The sequence in float16."""
        return self.to(float16)

    def long(self) -> "PackedSequence":
        """The sequence in int64."""
        return self.to(int64)

    def int(self) -> "PackedSequence":
        """The sequence in int32."""
        return self.to(int32)

    def short(self) -> "PackedSequence":
        """The sequence in int16."""
        return self.to(int16)

    def char(self) -> "PackedSequence":
        """The sequence in int8."""
        return self.to(int8)

    def byte(self) -> "PackedSequence":
        """The sequence in uint8."""
        return self.to(uint8)

    def cpu(self) -> "PackedSequence":
        """The sequence itself."""
        return self

    def pin_memory(self) -> "PackedSequence":
        """The sequence itself."""
        return self

    def is_pinned(self) -> bool:
        """False: there is no other device to copy to."""
        return False

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another; None of None.

    >>> invert_permutation(tensorlib.tensor([1, 2, 0]))
    tensor([2, 0, 1])
    """
    if permutation is None:
        return None
    return empty_like(permutation).index_copy_(
        0, permutation, arange(permutation.numel(), dtype=permutation.dtype))


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """The first lengths[i] elements of each sequence i of a batch, without the padding.

    enforce_sorted: False for sequences in any order; otherwise the longest must come first.
    Shapes: (T, B, *), with `batch_first` (B, T, *), and B lengths.
    Raises: RuntimeError for lengths that do not fit, are not above 0, or not in order.

    >>> x = tensorlib.tensor([[1, 3], [2, 0]])
    >>> pack_padded_sequence(x, [2, 1]).data
    tensor([1, 3, 2])
    """
    if input.ndim < 2:
        raise RuntimeError(f"pack_padded_sequence: expected an input of 2 dims or more, got "
                           f"{input.ndim}")
    sizes = as_tensor(lengths).to(int64)
    steps = input.transpose(0, 1) if batch_first else input
    if sizes.ndim != 1 or sizes.shape[0] != steps.shape[1]:
        raise RuntimeError("pack_padded_sequence: Expected `len(lengths)` to be equal to "
                           f"batch_size, but got {sizes.numel()} (batch_size={steps.shape[1]})")
    if not sizes.numel():
        raise RuntimeError("pack_padded_sequence: cannot pack a batch without sequences")
    if bool(sizes.amin() <= 0):
        raise RuntimeError("pack_padded_sequence: Length of all samples has to be greater than 0, "
                           "but found an element in 'lengths' that is <= 0")
    if bool(sizes.amax() > steps.shape[0]):
        raise RuntimeError(f"pack_padded_sequence: a length of {int(sizes.amax())} is more than "
                           f"the {steps.shape[0]} steps of the input")
    order = None
    if not enforce_sorted:
        sizes, order = sizes.sort(descending=True, stable=True)
        steps = steps.index_select(1, order)
    elif bool((sizes[1:] > sizes[:-1]).any()):
        raise RuntimeError(
            "pack_padded_sequence: `lengths` array must be sorted in decreasing order when "
            "`enforce_sorted` is True. You can pass `enforce_sorted=False` for other orders.")
    there = arange(int(sizes[0])).unsqueeze(1) < sizes
    return PackedSequence(steps[:there.shape[0]][there], there.sum(1), order)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False,
                        padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """A packed sequence with padding, in the order in which it was packed, and the lengths.

    total_length: pads to this many steps, not to the longest sequence.
    Shapes: (T, B, *), with `batch_first` (B, T, *), and B lengths.
    Raises: ValueError for a total_length below the longest sequence, TypeError for what is not
    packed.

    >>> packed = pack_sequence([tensorlib.tensor([1, 2]), tensorlib.tensor([3])])
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    if not isinstance(sequence, PackedSequence):
        raise TypeError("pad_packed_sequence: expects a PackedSequence, not "
                        f"{type(sequence).__name__}")
    data, batch_sizes, _, back = sequence
    longest, count = batch_sizes.shape[0], int(batch_sizes[0])
    if total_length is not None and total_length < longest:
        raise ValueError("pad_packed_sequence: Expected total_length to be at least the length of "
                         f"the longest sequence in input, but got total_length={total_length} and "
                         f"max sequence length being {longest}")
    steps = longest if total_length is None else total_length
    there = arange(count) < batch_sizes.unsqueeze(1)
    padded = data.new_full((steps * count, *data.shape[1:]), padding_value)
    places = there.reshape(-1).nonzero().squeeze(1)
    padded = padded.index_copy(0, places, data).reshape((steps, count, *data.shape[1:]))
    lengths = there.sum(0)
    if back is not None:
        padded, lengths = padded.index_select(1, back), lengths[back]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Sequences as one tensor, padded to the longest, on the "right" or the "left".

    Shapes: each (L, *) -> (T, B, *), with `batch_first` (B, T, *).
    Raises: RuntimeError for no sequences, what are none, sizes that differ beside their lengths,
    and for another side.

    >>> pad_sequence([tensorlib.tensor([1, 2]), tensorlib.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError("pad_sequence: Expected padding_side to be one of left or right, but "
                           f"got {padding_side}.")
    if not isinstance(sequences, Iterable):
        raise RuntimeError("pad_sequence: Expected iterable for input sequences, but got arg of "
                           f"type: {type(sequences)}")
    parts = list(sequences)
    if not parts:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    longest = max(len(x) for x in parts)

    def padded(x: Tensor) -> Tensor:
        if len(x) == longest:
            return x
        rest = x.new_full((longest - len(x), *x.shape[1:]), padding_value)
        return cat([rest, x] if padding_side == "left" else [x, rest])
    return stack([padded(x) for x in parts], 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Any,
                   batch_first: bool = False) -> list[Tensor]:
    """The sequences of a batch, each without its padding on the right: undoes `pad_sequence`.

    >>> unpad_sequence(tensorlib.tensor([[1, 3], [2, 0]]), [2, 1])
    [tensor([1, 2]), tensor([3])]
    """
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    sizes = as_tensor(lengths).tolist()
    if len(sizes) != len(batch):
        raise RuntimeError(f"unpad_sequence: got {len(sizes)} lengths for {len(batch)} sequences")
    return [x[:size] for x, size in zip(batch, sizes)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences of different lengths without padding: see `pack_padded_sequence`.

    Shapes: each (L, *). Raises: RuntimeError as `pack_padded_sequence`.

    >>> pack_sequence([tensorlib.tensor([1, 2]), tensorlib.tensor([3])]).batch_sizes
    tensor([2, 1])
    """
    return pack_padded_sequence(pad_sequence(sequences), [len(x) for x in sequences],
                                enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed: undoes `pack_sequence`."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True),
                          batch_first=True)
