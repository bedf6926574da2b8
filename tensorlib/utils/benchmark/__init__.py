"""How long small pieces of a program take, measured with care, in the manner of PyTorch.

>>> from tensorlib.utils.benchmark import Language, Timer
>>> timer = Timer("x + x", globals={"x": tensorlib.ones(16)})
>>> measurement = timer.timeit(1000)
>>> measurement.number_per_run, measurement.median > 0
(1000, True)

`print(timer.blocked_autorange())` shows the median of as many runs as fit in a fifth of a second,
and `Compare([...])` a table of several measurements.
"""

from tensorlib._core.base.explained import explain
from tensorlib.utils.benchmark.compare import Compare
from tensorlib.utils.benchmark.measurement import Measurement, TaskSpec, select_unit
from tensorlib.utils.benchmark.timer import Language, Timer

__all__ = ["Compare", "Language", "Measurement", "TaskSpec", "Timer", "select_unit"]

explain(vars(), __all__)
