"""The special functions, under the names of `torch.special`.

>>> tensorlib.special.ndtr(tensorlib.tensor([0., 1.96]))
tensor([0.5000, 0.9750])
"""

from tensorlib import (
    digamma, erf, erfc, erfinv, exp2, expm1, i0, log1p, log_softmax, logit, logsumexp, polygamma,
    round, sinc, softmax, xlogy)
from tensorlib import igamma as gammainc
from tensorlib import igammac as gammaincc
from tensorlib import lgamma as gammaln
from tensorlib import mvlgamma as multigammaln
from tensorlib import sigmoid as expit
from tensorlib.ops.pointwise.special import (
    entr, erfcx, i0e, i1, i1e, log_ndtr, ndtr, ndtri, xlog1py, zeta)
from tensorlib.ops.late import gathered

psi = digamma
modified_bessel_i0, modified_bessel_i1 = i0, i1

__all__ = gathered(__name__)


def __dir__():
    return __all__
