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
from tensorlib.ops.pointwise.bessel import (
    bessel_j0, bessel_j1, bessel_y0, bessel_y1, chebyshev_polynomial_t, chebyshev_polynomial_u,
    chebyshev_polynomial_v, chebyshev_polynomial_w, hermite_polynomial_h, hermite_polynomial_he,
    laguerre_polynomial_l, legendre_polynomial_p, modified_bessel_k0, modified_bessel_k1,
    scaled_modified_bessel_k0, scaled_modified_bessel_k1, shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w, spherical_bessel_j0)
from tensorlib.ops.pointwise.special import (
    entr, erfcx, i0e, i1, i1e, log_ndtr, ndtr, ndtri, xlog1py, zeta)
from tensorlib.ops.lazy import gathered

psi = digamma
modified_bessel_i0, modified_bessel_i1 = i0, i1

__all__ = gathered(__name__)


def __dir__():
    return __all__
