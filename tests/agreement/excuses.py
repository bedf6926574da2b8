"""Where results differ from PyTorch's on purpose, each with its reason."""

import re

import numpy as np

# Calls that PyTorch does not come back from: it ends with a segfault, or searches for ever.
NEVER_RETURNS = {
    "lu_unpack": lambda call: call.arrays()[-1].values.shape != (3,),
    "binomial": lambda call: not all(np.isfinite(x.values).all() and (np.abs(x.values) < 1e6).all()
                                     for x in call.arrays()),
    "linalg.eigvals": lambda call: not all(np.isfinite(x.values).all() for x in call.arrays()),
}

# (what PyTorch's error says, reason): calls that work here and not there
WORKS_HERE = [
    (r"must be Tensor, not (int|float|bool)|must be Number, not Tensor|invalid combination of"
     r"|doesn't apply to a '(int|float|bool)'|must be (tuple of ints|int|float), not|"
     r"'(int|float|bool)' object has no attribute",
     "numbers and tensors stand for one another wherever that has a meaning"),
    (r"not implemented for|only supports|Unsupported dtype|not supported for|unsupported"
     r"|does not support|not currently supported|expected floating point",
     "every dtype that the operation has a meaning for"),
    (r"same (d|scalar )?type|expected scalar type|Found dtype|to have one of the following"
     r"|mixed dtype|result type .* can't be cast|dtype of .* should|have dtypes? .* but",
     "arguments of several dtypes promote"),
    (r"index -\d+ is out of bounds|index out of range|out of bounds for dimension .* with size",
     "positions may count from the end"),
    (r"alpha only supported|For integral input tensors|Boolean (alpha|beta)",
     "a factor may have any type that the result can hold"),
    (r"Expected dtype int32 or int64 for index|Expected dtype int32/int64 for index|"
     r"scalar types? .*Long|expected (int64|Long|Int)",
     "positions may have any signed integer dtype"),
    (r"shape must match self|pivots|must be greater or equal to other|of length 1 or 2"
     r"|non-zero size|can require gradients|index 0 out of range for tensor",
     "forms of arguments, and empty ones, that have a meaning"),
    (r"view size is not compatible|unsupported operation: some elements",
     "PyTorch's implementation stands in its own way"),
]
REFUSED_HERE = [
    (r"takes floating-point|expected a floating point|takes float32 and float64|"
     r"expects floating-point|floating-point tensors",
     "functions of reals refuse integers that PyTorch lets through for some options"),
]


# (names of operations, beginning of what differs, reason)
BY_NAME = [
    (r"as_strided_scatter", "", "PyTorch writes into a clone of another layout, and passes "
     "gradients to the elements that were replaced"),
    (r"linalg\.eig(vals)?$", "^dtype", "eigenvalues are real where they are real"),
    (r".*(eigh?|svd|qr|svd_lowrank|householder_product|geqrf)$", "^(values|derivative)",
     "vectors of decompositions are determined up to signs"),
    (r"(nn\.functional\.)?ctc_loss$", "^derivative",
     "PyTorch's gradient of ctc_loss is that of log_softmax before it"),
    (r"cholesky_(inverse|solve)$", "^derivative", "only one triangle is read"),
    (r"bucketize|searchsorted", "^values", "the order of unsorted boundaries is the user's"),
    (r"(special\.)?(i0|i1|i0e|i1e|sinc|erfcx|digamma|psi)$", "^values", "limits at infinity"),
    (r"nn\.functional\.\w+_loss", "^dtype: float64", "arguments of several dtypes promote"),
]


def excuse(name, call, mine, other, text):
    """The reason why a call may differ, or None."""
    for names, start, reason in BY_NAME:
        if re.match(names, name) and re.match(start, text):
            return reason
    if mine[0] == other[0] == "raised" and isinstance(mine[1], (RuntimeError, ValueError)) and (
            isinstance(other[1], (IndexError, ValueError, AssertionError, RuntimeError))) and (
            re.search("dim", str(mine[1]))):
        return "a wrong number of dims is a RuntimeError, wherever it is found"
    if mine[0] == "returned" and other[0] == "raised":
        return said(str(other[1]), WORKS_HERE)
    if mine[0] == "raised" and other[0] == "returned":
        return said(str(mine[1]), REFUSED_HERE)
    if mine[0] == "raised":
        return said(str(other[1]), WORKS_HERE) or said(str(mine[1]), REFUSED_HERE) and (
            "of two faults another is named")
    return None


def said(message, table):
    """The reason beside the first pattern that a message matches."""
    return next((reason for pattern, reason in table if re.search(pattern, message)), None)
