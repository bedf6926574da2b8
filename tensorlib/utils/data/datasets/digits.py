"""The digits that come with the library."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

import tensorlib as tl
from tensorlib.utils.data.datasets.vision import Function, LabelledImages

FILE = Path(__file__).with_name("digits.csv.gz")
EVERY = 5                    # each fifth scan is one to test with


class Digits(LabelledImages):
    """1,797 scans of handwritten digits, which come with the library.

    An example is an image, float32 of shape (1, 8, 8) from 0 (paper) to 1 (ink), and its digit. All
    images are `data`, (N, 8, 8), and their digits `targets`. They are the test part of *Optical
    Recognition of Handwritten Digits*, CC BY 4.0.

    Args:
        train: the four fifths to learn from, or the others, or all of them for None.
        transform: a function of each image.
        target_transform: a function of each target.

    Source: Alpaydin and Kaynak, UCI Machine Learning Repository, 1998, doi 10.24432/C50P49.

    >>> len(Digits(train=True)), len(Digits(train=False)), len(Digits())
    (1437, 360, 1797)
    """

    classes = [str(digit) for digit in range(10)]

    def __init__(self, train: bool | None = None, transform: Function | None = None,
                 target_transform: Function | None = None) -> None:
        super().__init__(None, transform=transform, target_transform=target_transform)
        self.train = train
        with gzip.open(FILE, "rt") as file:
            table = np.loadtxt(file, delimiter=",", dtype=np.float32)
        if train is not None:
            held_out = np.arange(len(table)) % EVERY == 0
            table = table[~held_out if train else held_out]
        self.data = tl.from_numpy(table[:, :64].reshape(-1, 8, 8) / 16)
        self.targets = tl.from_numpy(table[:, 64].astype(np.int64))
