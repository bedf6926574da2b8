"""Where samples of PyTorch's test catalogue differ on purpose, each with its reason.

A row says: names of entries, the beginning of what differs, dtypes, the reason; all but the reason
are patterns.
"""

import re

NO_COUNTERPART = {
    "max_pool2d_with_indices_backward",     # PyTorch's own function for its graph
    "empty_strided", "new_empty_strided", "to_sparse",
}

ANY, FLOATS, INTEGERS = "", "float", "u?int"
FIXED = [
    (r"(addmv|addbmm|baddbmm)$", "error", INTEGERS,
     "a float as a factor of integers is refused; PyTorch refuses it for some sums, and rounds it "
     "toward 0 for others"),
    (r"(arange|full_like|scalar_tensor)$", "error: tensorlib raised OutOfRange", "uint8",
     "a number that the dtype cannot hold is refused; in PyTorch it wraps"),
    (r"(kthvalue|topk|mode|sort|argsort)$", "values", ANY,
     "which one of equal elements is named"),
    (r"__rpow__$", "error", INTEGERS, "integers to negative powers are refused; PyTorch gives 0"),
    (r"(svd|linalg\.(svd|eigh?))$", "values", "float|complex",
     "vectors of decompositions are determined up to signs, complex ones up to phases"),
    (r"(cholesky_inverse|cholesky_solve)$", "gradient", "float64|complex128",
     "only one triangle is read, and has a gradient"),
    (r"as_strided_scatter$|nn\.functional\.max_unpool\dd$", "gradient", "float64|complex128",
     "of values that are written to one place only the one that stays has a gradient"),
    (r"as_strided \(partial_views\)", "", ANY,
     "the sample is a part of a larger storage; its counterpart has one of its own"),
    (r"sum_to_size$", "dtype", ANY, "what has the size already stays as it is, and so its dtype"),
    (r"cov$", "dtype", "float16", "weights of another dtype take on that of the data"),
    (r"cov$", "values", "float64",
     "PyTorch takes one product of weights for another where there are few observations"),
    (r"nn\.functional\.ctc_loss$", "gradient", "float64",
     "PyTorch's gradient of ctc_loss is that of log_softmax before it"),
    (r"nn\.functional\.batch_norm$", "error", FLOATS, "a batch without a dim of channels"),
    (r"(normal|bernoulli)", "graph", "float64", "a random draw has no gradient"),
    (r"istft$", "gradient", "complex128", "PyTorch gives a complex window no gradient"),
    (r"linalg\.lstsq", "graph", "float64|complex128",
     "residuals that are not computed are in no graph"),
    (r"histc$", "values", "float16", "bounds are not rounded to float16 first"),
    (r"matrix_exp$", "error", "float16",
     "decompositions and what is made of them take float32 and float64"),
    (r"nn\.functional\.soft_margin_loss$", "values", "float16",
     "exp overflows in PyTorch's, and does not here"),
    (r"nn\.functional\.(margin_ranking_loss|triplet_margin_loss|pairwise_distance)$", "values",
     "uint8", "differences of unsigned integers are computed in float32, and do not wrap"),
    (r"nn\.functional\.(triplet_margin_loss|pairwise_distance)$", "error", "bool", "bools"),
    (r"nn\.functional\.fractional_max_pool3d$", "error", FLOATS, "no images, of no channels"),
    (r"nn\.functional\.multi_head_attention_forward$", "values", FLOATS,
     "dropout draws other numbers"),
    (r"nn\.functional\.feature_alpha_dropout", "error", "u?int|bool",
     "dropout takes floating dtypes"),
    (r"gather$", "error", ANY, "an empty index of another number of dims"),
    (r"logspace", "values", INTEGERS,
     "powers are computed in floats; PyTorch rounds each base and exponent first"),
    (r"nextafter$", "error", "float16", "takes float32 and float64"),
    (r"(dist|linalg\.vector_norm)$", "values", "float16",
     "powers of float16 overflow where their root would not"),
    (r"nn\.functional\.interpolate", "values", "uint8",
     "weights of cubic convolution are rounded from float64; PyTorch's from float32"),
    (r"linspace", "values", INTEGERS,
     "the numbers are computed from the bounds as they are given; PyTorch rounds these first"),
    (r"(complex|view_as_complex)$", "kind of error", "float16",
     "there is no complex dtype of half types"),
    (r"chalf$", "kind of error", ANY, "there is no complex dtype of half types"),
    (r"(linalg\.)?cholesky(_ex)?$", "gradient", "complex128",
     "the diagonal of a factor is real; PyTorch gives it a gradient that is not"),
]


# Among elements of few values, which are equal, or where a function has a kink or a pole.
TIES = [
    (r"(linalg\.|lu|ormqr|cholesky|logdet)", "", ANY, "the matrices are singular"),
    (r"(histogram|bucketize|searchsorted)$", "values", ANY, "the boundaries do not rise"),
    (r"gradient$", "values", ANY, "places that coincide"),
    (r"(acosh|corrcoef|hypot|polar)$", "gradient", ANY,
     "PyTorch's gradient is infinite or NaN, or that of |abs|, where the function has a slope"),
    (r"(digamma|(special\.)?polygamma)", "", ANY, "PyTorch has large numbers at poles"),
    (r"(index|scatter)_reduce \(am(ax|in)\)", "gradient", ANY,
     "an element that does not take part (include_self=False) has no share of the gradient"),
    (r"msort$", "gradient", ANY, "which one of equal elements is named"),
    (r"nextafter$", "gradient", ANY, "the neighbour moves with the number, wherever it lies"),
    (r"cov$", "gradient", ANY, "weights of float32 beside data of float64"),
    (r"(cdist|nn\.functional\.pdist)$", "gradient", ANY,
     "the gradient of the largest difference is shared by equal ones, as that of a norm is"),
    (r"nn\.functional\.(poisson_nll_loss|kl_div)$", "gradient", ANY,
     "PyTorch's gradient of t * log(t) at 0 is NaN, which is left out of the loss there"),
    (r"nn\.functional\.binary_cross_entropy$", "gradient", ANY,
     "PyTorch's gradient for a target is not that of the bounded logarithms"),
]


def reason_for(name, dtype, text, ties=False):
    """The reason why a sample may differ, or None."""
    for names, beginning, dtypes, reason in [*FIXED, *(TIES if ties else ())]:
        if re.match(names, name) and re.match(beginning, text) and re.match(dtypes, dtype):
            return reason
    return None
