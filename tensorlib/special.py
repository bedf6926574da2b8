"""The special functions, under the names of `torch.special`.

>>> tensorlib.special.ndtr(tensorlib.tensor([0., 1.96]))
tensor([0.5000, 0.9750])
"""

from tensorlib import (
    digamma, erf, erfc, erfinv, exp2, expm1, i0, log1p, log_softmax, logit, logsumexp, polygamma,
    round, sigmoid, sinc, softmax, xlogy)
from tensorlib import igamma as gammainc
from tensorlib import igammac as gammaincc
from tensorlib import lgamma as gammaln
from tensorlib import mvlgamma as multigammaln
from tensorlib.ops.special import (
    entr, erfcx, i0e, i1, i1e, log_ndtr, ndtr, ndtri, xlog1py, zeta)

expit, psi = sigmoid, digamma
modified_bessel_i0, modified_bessel_i1 = i0, i1

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc",
    "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "log1p", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "multigammaln", "ndtr", "ndtri",
    "polygamma", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy", "zeta",
]
