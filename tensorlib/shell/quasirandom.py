"""Points that fill a cube evenly, under the name of `torch.quasirandom`; SciPy computes them.

    engine = tensorlib.quasirandom.SobolEngine(3)
    engine.draw(4)                  # a tensor of shape (4, 3)
"""

from importlib import import_module

import numpy as np

import tensorlib as tl
from tensorlib import Tensor, dtype as DType

__all__ = ["SobolEngine"]


class SobolEngine:
    """Sobol's sequence in [0, 1): that of PyTorch, scrambled by SciPy with other random numbers.

    Args:
        dimension: how many numbers a point has.
        scramble: whether the points are moved and shuffled at random.
        seed: of the scrambling; by default a number of the default generator.
    Raises: ImportError without SciPy, ValueError for a dimension that it does not take.
    Source: Joe and Kuo, "Constructing Sobol' sequences with better two-dimensional projections",
    SIAM Journal on Scientific Computing 30(5), 2008.
    """

    MAXBIT, MAXDIM = 30, 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError("Supported range of dimensionality for SobolEngine is "
                             f"[1, {self.MAXDIM}]")
        if seed is None and scramble:
            seed = int(tl.randint(2**31, ()).item())
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._points = import_module("scipy.stats.qmc").Sobol(
            dimension, scramble=scramble, bits=self.MAXBIT, rng=np.random.default_rng(seed))

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next `n` points. Shapes: (n, dimension)."""
        self.num_generated += n
        found = tl.from_numpy(self._points.random(n)).to(dtype or tl.get_default_dtype())
        return found if out is None else out.resize_(found.shape).copy_(found)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next 2**m points, which are balanced. Raises: ValueError after another number."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError("The balance properties of Sobol' points require n to be a power of "
                             f"2. {self.num_generated} points have been previously generated")
        return self.draw(2**m, out, dtype)

    def reset(self) -> "SobolEngine":
        """Begins again with the first point."""
        self._points.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> "SobolEngine":
        """Leaves out `n` points."""
        self._points.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        return f"SobolEngine(dimension={self.dimension}" + (
            f", scramble=True, seed={self.seed})" if self.scramble else ")")
