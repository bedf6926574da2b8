"""Texts, as numbers that stand for their characters or words."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.utils.data.dataset import Dataset
from tensorlib.utils.data.datasets.reading import DamagedFile, opened, read_all

WORD = re.compile(r"\w+|[^\w\s]")
UNKNOWN = "<unk>"
Path = str | os.PathLike[str]


class TextDataset(Dataset[Any]):
    """Pieces of text files, each with the same piece moved on by one: what a language model learns.

    An example is a pair of int64 tensors of shape (length,): the tokens from place `index * stride`
    on, and those that follow each of them. `tokens` is the whole text, and `vocabulary` what its
    numbers stand for.

    Args:
        paths: a file, or several, which are joined; they may be compressed by gzip.
        length: the tokens of a piece.
        split: "characters", or "words" (which drops white space), or a function that gives the
            tokens of a text as strings.
        vocabulary: the tokens to use, such as those of the text that a model learnt from. Others
            become "<unk>", which is added where it is missing; None takes all there are, the most
            frequent first.
        stride: from one piece to the next; `length` if None.
        encoding: that of the files.

    Raises: ValueError for a text that is shorter than a piece, damaged or in another encoding, or
    for a length or a stride below 1.

    >>> with open("rhyme.txt", "w") as file:
    ...     _ = file.write("round and round and round")
    >>> text = TextDataset("rhyme.txt", length=3, split="words")
    >>> text[0], text.vocabulary
    ((tensor([0, 1, 0]), tensor([1, 0, 1])), ['round', 'and'])
    >>> text.decode(text.encode("round round and"))
    'round round and'
    """

    def __init__(self, paths: Path | Iterable[Path], length: int, split: Any = "characters",
                 vocabulary: Sequence[str] | None = None, stride: int | None = None,
                 encoding: str = "utf-8") -> None:
        stride = length if stride is None else stride
        for name, value in (("length", length), ("stride", stride)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"TextDataset: {name} must be an int of 1 or more, got {value!r}")
        if split not in ("characters", "words") and not callable(split):
            raise ValueError("TextDataset: split is 'characters', 'words' or a function, got "
                             f"{split!r}")
        self.length, self.stride, self.split = length, stride, split
        single = isinstance(paths, (str, os.PathLike))
        texts = [text_of(path, encoding) for path in ([paths] if single else paths)]
        found = list(chain.from_iterable(map(self.tokenized, texts)))
        known = [token for token, _ in Counter(found).most_common()]
        if vocabulary is not None:
            strange = not set(known) <= set(vocabulary)
            known = list(dict.fromkeys([*vocabulary, *[UNKNOWN] * strange]))
        self.vocabulary = known
        self.numbers = {token: number for number, token in enumerate(known)}
        self.tokens = self.numbered(found)
        if len(self.tokens) <= length:
            raise ValueError(f"TextDataset: a text of {len(self.tokens)} tokens has no piece of "
                             f"{length} and the one that follows")

    def tokenized(self, text: str) -> Iterable[str]:
        """The tokens of a text."""
        if self.split == "characters":
            return text
        if self.split == "words":
            return WORD.findall(text)
        found: Iterable[str] = self.split(text)
        return found

    def numbered(self, tokens: Iterable[str]) -> Tensor:
        """The numbers of tokens. Raises: KeyError for one that is unknown, and has none."""
        numbers, unknown = self.numbers, self.numbers.get(UNKNOWN)
        if unknown is None:
            found = [numbers[token] for token in tokens]
        else:
            found = [numbers.get(token, unknown) for token in tokens]
        return tl.from_numpy(np.array(found, np.int64))

    def encode(self, text: str) -> Tensor:
        """The numbers of a text's tokens.

        Raises: ValueError for one that is not in the vocabulary, where that has no "<unk>".
        """
        try:
            return self.numbered(self.tokenized(text))
        except KeyError as error:
            raise ValueError(f"TextDataset.encode: {error} is not in the vocabulary") from None

    def decode(self, tokens: Any) -> str:
        """The text of some numbers, a tensor or a list; words are joined by a space."""
        numbers = tokens.tolist() if isinstance(tokens, Tensor) else tokens
        between = "" if self.split == "characters" else " "
        return between.join(self.vocabulary[number] for number in numbers)

    def __len__(self) -> int:
        return 1 + (len(self.tokens) - 1 - self.length) // self.stride

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        place = range(len(self))[index] * self.stride
        piece = self.tokens[place:place + self.length + 1]
        return piece[:-1], piece[1:]

    def __getbatch__(self, indices: Sequence[int]) -> list[Tensor]:
        starts = tl.tensor([range(len(self))[index] * self.stride for index in indices],
                           dtype=tl.int64)
        pieces = self.tokens[starts.unsqueeze(1) + tl.arange(self.length + 1)]
        return [pieces[:, :-1], pieces[:, 1:]]


def text_of(path: Path, encoding: str) -> str:
    """The text of a file, its ends of lines as "\\n"."""
    where = f"TextDataset: {os.fspath(path)}"
    with opened(path) as file:
        content = read_all(file, where)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DamagedFile(f"{where}: not in the encoding {encoding}: {error}") from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
