"""Anomaly detection: which operation a wrong gradient belongs to."""

from tensorlib._core.base.settings import Setting
from tensorlib._core.graph.modes import _set_anomaly


class set_detect_anomaly(Setting):
    """Switches the detection of anomalies on this thread; as a context manager, until its end.

    `detect_anomaly` describes what it does and raises in a sweep.
    """

    swaps = (_set_anomaly,)

    def __init__(self, mode, check_nan=True):
        self.mode = mode
        self.check_nan = check_nan
        self.values = ((mode, check_nan),)
        self.earlier = (_set_anomaly(*self.values),)


class detect_anomaly(Setting):
    """Under it each operation records its stack trace, and a gradient with a NaN is an error.

    Errors in `backward` then name the line at which the operation ran, and a warning shows the
    whole traceback. The forward pass must run under it too. It makes every operation slower.

    Raises: RuntimeError, in the sweep, for NaN (unless `check_nan` is False).

    >>> x = tensorlib.tensor([0.0], requires_grad=True)
    >>> import warnings
    >>> with warnings.catch_warnings(), detect_anomaly():
    ...     warnings.simplefilter("ignore")
    ...     (x - 1).sqrt().sum().backward()
    Traceback (most recent call last):
    RuntimeError: backward: Function 'SqrtBackward0' returned nan values in its 0th output ...
    """

    swaps = (_set_anomaly,)

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        self.values = ((True, check_nan),)


__all__ = ["detect_anomaly", "set_detect_anomaly"]
