"""Where results differ from PyTorch's on purpose, each with its reason."""

import re

import numpy as np

# Calls that PyTorch does not come back from: it ends with a segfault, or searches for ever.
NEVER_RETURNS = {
    "lu_unpack": lambda call: call.arrays()[-1].values.shape != (3,),
    "binomial": lambda call: not all(np.isfinite(x.values).all() and (np.abs(x.values) < 1e6).all()
                                     for x in call.arrays()),
    "linalg.eigvals": lambda call: not all(np.isfinite(x.values).all() for x in call.arrays()),
    **{name: lambda call: not all(x.values.size for x in call.arrays())      # back
       for name in ("pdist", "nn.functional.pdist")},
}

# (what PyTorch's error says, reason): calls that work here and not there
WORKS_HERE = [
    (r"must be Tensor, not (int|float|bool)|must be Number, not Tensor|invalid combination of"
     r"|doesn't apply to a '(int|float|bool)'|Boolean value of Tensor with"
     r"|must be (tuple of ints|int|float), not|'(int|float|bool)' object has no attribute",
     "numbers and tensors stand for one another wherever that has a meaning"),
    (r"not implemented for|only supports|Unsupported dtype|not supported for|unsupported"
     r"|does not support|not currently supported|(?i:expected a? ?floating.point)|not support dtype"
     r"|with (two|a) bool tensors?|be a boolean tensor|[Ii]ntegral inputs|could not infer output",
     "every dtype that the operation has a meaning for"),
    (r"same (d|scalar )?type|expected scalar type|Found dtype|to have one of the following"
     r"|mixed dtype|Input dtypes must be the same|result type .* can't be cast"
     r"|dtype of .* should|have dtypes? .* but",
     "arguments of several dtypes promote"),
    (r"index -\d+ is out of bounds|index out of range|out of bounds for dimension .* with size",
     "positions may count from the end"),
    (r"alpha only supported|For integral input tensors|Boolean (alpha|beta)",
     "a factor may have any type that the result can hold"),
    (r"Expected dtype int32 or int64 for index|Expected dtype int32/int64 for index|"
     r"scalar types? .*Long|expected (int64|Long|Int)|[Ee]xpected a long tensor"
     r"|Expected dtype int64"
     r"|tensors used as indices must be long",
     "positions may have any signed integer dtype"),
    (r"shape must match self|pivots|must be greater or equal to other|of length 1 or 2"
     r"|tau\.shape\[-1\]|non-zero size|0 dim batch|positive length|N must be greater"
     r"|can require gradients|index 0 out of range for tensor",
     "forms of arguments, and empty ones, that have a meaning"),
    (r"slice shapes|broadcast shape|same number of dimensions|invalid slice"
     r"|dimension specified as 0",
     "shapes that broadcast"),
    (r"all elements of target|elements of std|margin must be|eps must be|more than 1 value",
     "values are not looked at where the formula has a meaning, or NaN"),
    (r"takes from 2 to 1 positional|missing 1 required positional",
     "PyTorch's signature refuses its own options"),
    (r"view size is not compatible|unsupported operation: some elements",
     "PyTorch's implementation stands in its own way"),
]
REFUSED_HERE = [
    (r"takes matrices of floating|must have floating dtypes|must be a floating one|"
     r"not implemented for (tensorlib\.(bool|u?int\d+)|bools)|to negative integer powers|"
     r"must be of numbers|must not be a floating point number|takes floating-point"
     r"|expected a floating point|takes float32 and float64|"
     r"expects floating-point|floating-point tensors",
     "functions of reals refuse integers that PyTorch lets through for some options, or where "
     "there are no elements"),
    (r"failed to converge", "what is not finite has no decomposition"),
    (r"one dtype$", "a bias has the dtype of the weight"),
    (r"out of bounds|out of range|does not fit|do not fit|must have the shape|don't fit"
     r"|takes matrices|differ in size|expected a bias|should contain|at least one dim|exceeds"
     r"|not aligned"
     r"|ambiguous|batches of square|must be a Tensor, not (int|float|bool)|must be between",
     "arguments that PyTorch does not look at"),
]


# (names of operations, beginning of what differs, reason)
BY_NAME = [
    (r"unique_consecutive", "^(values|shape)",
     "PyTorch gives empty positions where counts alone were asked for"),
    (r"topk", "^values", "which one of equal elements"),
    (r"linalg\.lstsq", "^derivative", "PyTorch's singular values of lstsq have no gradient"),
    (r"(index_put|put|scatter|max_unpool\dd|nn\.functional\.max_unpool\dd)", "^derivative",
     "of values that are written to one place only the one that stays has a gradient"),
    (r"nn\.functional\.multi\w*margin_loss", "^values",
     "NaN is no number to compare with, and the mean of nothing is NaN"),
    (r"empty(_like|_strided)?$", "^values", "memory that nobody has written"),
    (r"(frombuffer|adjoint|lu_unpack|triangular_solve)$", "^(dtype/error|shape)",
     "what does not fit into a dtype, is not aligned or has no dims"),
    (r"linalg\.vander|linalg\.vecdot", "^dtype/error", "PyTorch does not look at dims of vectors"),
    (r"as_strided_scatter", "", "PyTorch writes into a clone of another layout, and passes "
     "gradients to the elements that were replaced"),
    (r"linalg\.eig(vals)?$", "^dtype", "eigenvalues are real where they are real"),
    (r".*(eigh?|svd|qr|svd_lowrank|householder_product|geqrf)$", "^values",
     "vectors of decompositions are determined up to signs"),
    (r"(nn\.functional\.)?ctc_loss$", "^derivative",
     "PyTorch's gradient of ctc_loss is that of log_softmax before it"),
    (r"cholesky_(inverse|solve)$", "^derivative", "only one triangle is read"),
    (r"bucketize|searchsorted", "^values", "the order of unsorted boundaries is the user's"),
    (r"(special\.)?(i0|i1|sinc|polygamma)$", "^(values|derivative)", "limits at infinity"),
]


# (names of operations, beginning of what differs, reason), where an argument is not finite
NOT_FINITE = [
    (r"linalg\.|.*(inverse|cholesky|lu_|_solve|matrix_exp|logdet|slogdet|det$|lstsq|svd|qr|eigh)",
     "^(values|derivative|dtype/error)", "what is not finite has no decomposition"),
    (r"(maximum|minimum|nn\.functional\.(glu|hardshrink|prelu|relu6?|selu))$", "^derivative",
     "there is no derivative at NaN and infinities; here zero is strong"),
    (r"nn\.functional\.(ctc_loss|group_norm|multi_margin_loss)$|(std|var)_mean$", "^values",
     "in what order sums and differences with NaN and infinities are taken"),
]


def excuse(name, call, mine, other, text):
    """The reason why a call may differ, or None."""
    if not all(np.isfinite(x.values).all() for x in call.arrays()):
        for names, start, reason in NOT_FINITE:
            if re.match(names, name) and re.match(start, text):
                return reason
    for names, start, reason in BY_NAME:
        if re.match(names, name) and re.match(start, text):
            return reason
    if text.startswith("dtype: ") and len({x.dtype for x in call.arrays()}) > 1:
        return "arguments of several dtypes promote"
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
