"""Runs one call in this process and says what is wrong with it."""

import itertools
import traceback

import numpy as np

import tensorlib as tl

from . import liars
from .values import NAMES, compiled

# What comes of an argument that nobody looked at, unless it is one of the types that errors have.
SIGNS_OF_NEGLECT = (AttributeError, UnboundLocalError, AssertionError, NameError, OverflowError,
                    ZeroDivisionError, KeyError, StopIteration)
DOCUMENTED = (RuntimeError, TypeError, ValueError, IndexError)


def evaluated(text):
    """What a text stands for. Raises what making it does."""
    return eval(compiled(text), {**NAMES})


def snapshot(x, depth=3):
    """What must stay as it is where a call raises: of tensors and arrays all, of containers their
    items."""
    if isinstance(x, liars.Odd):
        return None
    if isinstance(x, tl.Tensor):
        small = 0 < x.numel() <= 10**5
        held = np.asarray(x.detach().to(tl.float64)).tobytes() if small else None
        return (held, tuple(x.shape), x.stride(), x.dtype, x.requires_grad, x.data_ptr(),
                id(x.grad), x.is_leaf, None if x.is_inference() else x._version)
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf" and x.size <= 10**5:
        return x.tobytes(), x.shape
    if isinstance(x, (list, tuple)) and depth and not isinstance(
            x, (liars.SequenceLiar, liars.TupleLiar)):
        return [snapshot(y, depth - 1) for y in itertools.islice(x, 10)]
    if isinstance(x, dict) and depth:
        return [snapshot(y, depth - 1) for y in x.values()]
    return None


def reset():
    """Sets back what calls may set for the whole library, so that each call stands by itself."""
    tl.set_grad_enabled(True)
    tl.set_default_dtype(tl.float32)
    tl.set_default_device("cpu")
    tl.set_printoptions(profile="default")
    if tl.is_inference_mode_enabled():
        from tensorlib._core.graph.modes import _set_inference
        _set_inference(False)
        tl.set_grad_enabled(True)
    if tl.get_num_threads() > 4:
        tl.set_num_threads(2)


def use(result, depth=2):
    """Reads a result, so that one that looks at memory that is not its own is found out."""
    if isinstance(result, tl.Tensor):
        if type(result) is tl.Tensor and result.numel() <= 10**6:
            repr(result)
            result.detach().clone()
            if result.requires_grad and result.dtype.is_floating_point:
                result.sum().backward()
    elif isinstance(result, (list, tuple)) and depth:
        for x in itertools.islice(result, 5):
            use(x, depth - 1)


def assert_works_still():
    """Raises AssertionError unless the library does sums and gradients."""
    x = tl.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    ((x @ x).tanh() * x[0] + x.sum(0)).sum().backward()
    assert x.grad is not None and x.grad.shape == (2, 2)
    assert (tl.ones(100) + 1).sum().item() == 200


def judged(call):
    """What is wrong with running a call, (function, arguments, keywords) as texts; or None."""
    function, args, kwargs = call
    if call[0].startswith("np.") and any(act in str(call) for act in ("'clear'", "'grow'")):
        return None                              # NumPy reads lists that shrink under it
    liars.ASKED.clear()
    liars.INPUTS.clear()
    try:
        function = evaluated(function)
        args = [evaluated(text) for text in args]
        kwargs = {name: evaluated(text) for name, text in kwargs.items()}
    except SystemError:
        return "SystemError\n" + traceback.format_exc()
    except BaseException:
        return None                              # the arguments themselves are refused
    finally:
        reset()
    if call[0].startswith("np.") and args and isinstance(args[0], tl.Tensor) and (
            args[0].ndim and args[0].shape[0] > 10**6):
        return None                              # where it takes a sequence it goes through all
    before = [snapshot(x) for x in (*args, *kwargs.values())]
    liars.INPUTS.extend((*args, *kwargs.values()))
    raised = None
    try:
        result = function(*args, **kwargs)
    except BaseException as error:
        raised = error
    reset()
    if isinstance(raised, SystemError):
        return "SystemError\n" + "".join(traceback.format_exception(raised))
    if raised is not None and not liars.ASKED and not runs_code(call):
        after = [snapshot(x) for x in (*args, *kwargs.values())]
        if after != before and not call[0].startswith("np."):    # NumPy may write, then raise
            return f"raised {raised!r}, and changed its arguments:\n{before}\n{after}"
    if isinstance(raised, MemoryError) and not isinstance(raised, tl.OutOfMemoryError) and not (
            is_numpys(call)):
        return "no OutOfMemoryError\n" + "".join(traceback.format_exception(raised))
    if isinstance(raised, SIGNS_OF_NEGLECT) and not is_asked_for(call) and (
            not isinstance(raised, DOCUMENTED)
            and not str(raised).startswith("embedding: padding_idx")):
        return f"{type(raised).__name__}\n" + "".join(traceback.format_exception(raised))
    if raised is None:
        return used(result)
    return None


def used(result):
    """What is wrong with reading a result; or None."""
    try:
        use(result)
    except SystemError:
        return "SystemError on reading the result\n" + traceback.format_exc()
    except BaseException:
        pass
    finally:
        reset()
    return None


def runs_code(call):
    """Whether a call is given functions, which may change what they are given, or iterators."""
    text = " ".join([call[0], *call[1], *call[2].values()])
    return any(word in text for word in (
        "lambda", "partial(tl.add", "iter(", "Liar", "Odd", "Collecting", "print", "grad_fn",
        "BytesIO", "backward"))


def is_numpys(call):
    """Whether memory is asked for by NumPy's functions, or by Python's lists, as users ask; also
    by rules that are called by themselves."""
    text = " ".join([call[0], *call[1], *call[2].values()])
    return (call[0].startswith("np.") or "__array" in call[0] or "numpy" in call[0]
            or ".rules[" in call[0] or ".forward" in call[0] or "np.lib" in text
            or "tolist" in call[0]
            or "__reduce" in call[0] or call[0].startswith(("tl.Size", "tl.testing")))


def self_of(call):
    """The first argument of a call."""
    texts = [*call[1], *call[2].values()]
    return evaluated(texts[0]) if texts else None


def is_asked_for(call):
    """Whether an AttributeError is no wonder: for attributes, and where liars are about."""
    text = " ".join([call[0], *call[1], *call[2].values()])
    return (call[0] in ("getattr", "setattr", "delattr")
            or any(word in text for word in ("Liar", "Odd", "Collecting"))
            or "lambda" in text or "__" in call[0] or call[0].startswith("np.")
            or call[0].startswith("tl.Tensor.") and not isinstance(self_of(call), tl.Tensor)
            or ".rules[" in call[0] or ".forward" in call[0] or "tangent" in call[0]
            or "partial(" in text or "print" in text or "int" in (*call[1], *call[2].values())
            or "tl.testing" in call[0] or "Summary" in call[0])
