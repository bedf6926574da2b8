"""Programs as data: lists of steps that hypothesis draws, run by tensorlib or by PyTorch alike.

A program works on a list of values, all float64, of which the first are its leaves. Each step takes
values by number, and adds results to the list or writes in place into what is there. What a step
needs beside its values follows from their shapes, so that it does the same in both libraries. A
step that its library refuses is noted and leaves no trace.
"""

from dataclasses import dataclass

from hypothesis import strategies as st
from program_steps import STEPS

# The values of two leaves that broadcast, and directions for forward mode.
LEAVES = ([[0.31, -0.62, 0.93], [-0.24, 0.55, 0.86]], [-0.47, 0.78, 0.29])
DIRECTIONS = ([[0.5, -1.0, 0.7], [0.9, 0.3, -0.8]], [0.6, -0.4, 1.1])
MAX_ELEMENTS = 24


@dataclass(frozen=True)
class Step:
    """What to do, with which values, and a number."""

    name: str
    i: int
    j: int
    number: float


class Machine:
    """The values of a program that runs in one library."""

    def __init__(self, library, leaves):
        self.library = library
        self.leaves = list(leaves)
        self.values = list(leaves)
        self.refused = []

    def value(self, i):
        return self.values[i % len(self.values)]

    def beside(self, x, j):
        """A value that broadcasts with `x`."""
        fit = [y for y in self.values if broadcasts(x.shape, y.shape)]
        return fit[j % len(fit)]

    def into(self, x, j):
        """A value that broadcasts to the shape of `x`."""
        fit = [y for y in self.values if broadcasts(x.shape, y.shape, into=True)]
        return fit[j % len(fit)] if fit else x

    def source(self, x, j):
        """A value that can be written over the elements of `x`: itself, or one that lies apart."""
        y = self.into(x, j)
        return y.clone() if y is not x and overlap(x, y) else y

    def constant(self, values):
        return self.library.tensor(values, dtype=self.library.float64)

    def spread(self, shape, start=0.0):
        """Numbers of a shape of which no two are alike: they keep values off ties and kinks."""
        count = 1
        for size in shape:
            count *= size
        values = [start + 0.0137 * ((k * 7) % 11) + 0.00071 * k for k in range(count)]
        return self.constant(values).reshape(shape)

    def run(self, program):
        """Runs the steps. Values that are large, or have a NaN, are not gone on with."""
        for number, step in enumerate(program):
            try:
                made = STEPS[step.name](self, self.value(step.i), step.j, step.number)
            except (RuntimeError, IndexError, ValueError, TypeError) as error:
                self.refused.append((number, step.name, error))
                continue
            for x in made if isinstance(made, (tuple, list)) else (made,):
                if x is not None and x.numel() <= MAX_ELEMENTS and not x.detach().isnan().any():
                    self.values.append(laid_out(x))


def laid_out(x):
    """`x`, a view or row by row: where the layouts of operands differ, so do those of results."""
    return x if x._base is not None or x.is_contiguous() else x.contiguous()


def broadcasts(shape, other, into=False):
    """Whether two shapes broadcast; with `into`, the other to the first."""
    if into and len(other) > len(shape):
        return False
    for a, b in zip(reversed(shape), reversed(other)):
        if a != b and b != 1 and (into or a != 1):
            return False
    return True


def overlap(x, y):
    """Whether the memory of two tensors may overlap."""
    (first, last), (other_first, other_last) = extent(x), extent(y)
    return first < other_last and other_first < last


def extent(x):
    reach = sum((size - 1) * step for size, step in zip(x.shape, x.stride()))
    return x.data_ptr(), x.data_ptr() + (reach + 1) * x.element_size()


def weighted_sum(machine):
    """A number that depends on all values of a machine."""
    total = sum((leaf * 0.3).sum() for leaf in machine.leaves)
    for x in machine.values[len(machine.leaves):]:
        total = total + (x * machine.spread(x.shape, 0.4)).sum()
    return total


@st.composite
def programs(draw, max_steps=10, without=()):
    """A strategy for programs without the steps named."""
    place = st.integers(0, 30)
    steps = st.builds(Step, st.sampled_from([name for name in STEPS if name not in without]),
                      place, place, st.sampled_from([0.5, -0.8, 1.2]))
    return draw(st.lists(steps, min_size=1, max_size=max_steps))
