# Examples for pages of the reference; tools/site/examples.py says how they are read.
# ---- distributions.Beta: 2.0, 3.0
# ---- distributions.ContinuousBernoulli: probs=0.3
# ---- distributions.FisherSnedecor: 3.0, 8.0
# ---- distributions.Kumaraswamy: 2.0, 3.0
# ---- distributions.Uniform: 0.0, 2.0
d = tl.distributions.NAME(VALUE)
d.sample((3,))
d.mean, d.log_prob(tl.tensor(0.5))
# ---- distributions.Chi2: 3.0
# ---- distributions.Exponential: 2.0
# ---- distributions.Gamma: 2.0, 3.0
# ---- distributions.GeneralizedPareto: 0.0, 1.0, 0.2
# ---- distributions.Gumbel: 0.0, 1.0
# ---- distributions.HalfNormal: 1.0
# ---- distributions.InverseGamma: 3.0, 2.0
# ---- distributions.Laplace: 0.0, 1.0
# ---- distributions.LogNormal: 0.0, 0.5
# ---- distributions.StudentT: 5.0
# ---- distributions.VonMises: 0.0, 4.0
# ---- distributions.Weibull: 1.0, 1.5
d = tl.distributions.NAME(VALUE)
d.sample((3,))
d.mean, d.log_prob(tl.tensor(1.5))
# ---- distributions.Pareto
d = tl.distributions.Pareto(1.0, 3.0)
d.sample((3,))
d.mean, d.log_prob(tl.tensor(1.5))
# ---- distributions.Cauchy: 0.0, 1.0
# ---- distributions.HalfCauchy: 1.0
d = tl.distributions.NAME(VALUE)        # without a mean: its tail is too long
d.sample((3,))
d.log_prob(tl.tensor(1.5)), d.cdf(tl.tensor(1.0))
# ---- distributions.Binomial: 10, probs=0.3
# ---- distributions.Geometric: probs=0.3
# ---- distributions.NegativeBinomial: 5, probs=0.3
# ---- distributions.Poisson: 3.0
d = tl.distributions.NAME(VALUE)
d.sample((5,))
d.mean, d.log_prob(tl.tensor(2.0))
# ---- distributions.Multinomial
d = tl.distributions.Multinomial(10, probs=tl.tensor([0.2, 0.3, 0.5]))
d.sample()                              # how often each of three kinds is among ten
d.mean
# ---- distributions.OneHotCategorical
d = tl.distributions.OneHotCategorical(probs=tl.tensor([0.2, 0.3, 0.5]))
d.sample()
d.log_prob(tl.tensor([0.0, 0.0, 1.0]))
# ---- distributions.OneHotCategoricalStraightThrough
probs = tl.tensor([0.2, 0.3, 0.5], requires_grad=True)
drawn = tl.distributions.OneHotCategoricalStraightThrough(probs=probs).rsample()
drawn.detach()
(drawn * tl.tensor([1.0, 2.0, 3.0])).sum().backward()
probs.grad                              # as if the sample were the probabilities
# ---- distributions.RelaxedBernoulli distributions.LogitRelaxedBernoulli
probs = tl.tensor([0.2, 0.9], requires_grad=True)
d = tl.distributions.NAME(tl.tensor(0.5), probs=probs)
drawn = d.rsample()                     # differentiable, unlike a sample of Bernoulli
drawn.sum().backward()
drawn.detach(), probs.grad
# ---- distributions.RelaxedOneHotCategorical
probs = tl.tensor([0.2, 0.3, 0.5])
d = tl.distributions.RelaxedOneHotCategorical(tl.tensor(0.1), probs=probs)
d.rsample().round(decimals=3)           # near one of three corners, and differentiable
# ---- distributions.LKJCholesky
factor = tl.distributions.LKJCholesky(3, concentration=2.0).sample()
factor @ factor.mT                      # a matrix of correlations
# ---- distributions.LogisticNormal
d = tl.distributions.LogisticNormal(tl.zeros(2), tl.ones(2))
d.sample()                              # three shares, whose sum is 1
# ---- distributions.LowRankMultivariateNormal
d = tl.distributions.LowRankMultivariateNormal(
    tl.zeros(3), cov_factor=tl.ones(3, 1), cov_diag=tl.full((3,), 0.5))
d.covariance_matrix
d.log_prob(tl.zeros(3))
# ---- distributions.Wishart
d = tl.distributions.Wishart(tl.tensor(4.0), covariance_matrix=tl.eye(2))
d.mean
d.log_prob(tl.eye(2))
# ---- distributions.Distribution distributions.ExponentialFamily
d = tl.distributions.Normal(tl.zeros(3), 1.0)
isinstance(d, tl.distributions.NAME), d.batch_shape
d.sample((2,)).shape
# ---- distributions.register_kl
from tensorlib.distributions import Normal, kl_divergence, register_kl
class Shifted(Normal):
    """A normal distribution, moved by one."""
@register_kl(Shifted, Shifted)
def shifted(p, q):
    return kl_divergence(Normal(p.loc, p.scale), Normal(q.loc, q.scale))
kl_divergence(Shifted(0.0, 1.0), Shifted(1.0, 1.0))
# ---- distributions.AbsTransform:
# ---- distributions.AffineTransform: loc=1.0, scale=2.0
# ---- distributions.ExpTransform:
# ---- distributions.PowerTransform: 2.0
# ---- distributions.SigmoidTransform:
# ---- distributions.SoftplusTransform:
# ---- distributions.TanhTransform:
t = tl.distributions.NAME(VALUE)
y = t(tl.tensor([0.5, 1.0]))
y, t.inv(y)
# ---- distributions.SoftmaxTransform distributions.StickBreakingTransform
t = tl.distributions.NAME()
t(tl.tensor([0.5, 1.0, -1.0]))
# ---- distributions.ComposeTransform
from tensorlib.distributions import AffineTransform, ComposeTransform, ExpTransform
t = ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])
x = tl.tensor([0.0, 1.0])
t(x)                                    # exp(2 * x)
t.log_abs_det_jacobian(x, t(x))
# ---- distributions.IndependentTransform
from tensorlib.distributions import ExpTransform, IndependentTransform
t = IndependentTransform(ExpTransform(), 1)
x = tl.ones(2, 3)
t.log_abs_det_jacobian(x, t(x))         # one number for each row
# ---- distributions.ReshapeTransform
t = tl.distributions.ReshapeTransform((4,), (2, 2))
t(tl.arange(4))
# ---- distributions.StackTransform
from tensorlib.distributions import ExpTransform, StackTransform, TanhTransform
StackTransform([ExpTransform(), TanhTransform()])(tl.tensor([1.0, 1.0]))
# ---- distributions.CorrCholeskyTransform
factor = tl.distributions.CorrCholeskyTransform()(tl.tensor([0.3, -0.5, 0.8]))
factor @ factor.mT                      # a matrix of correlations
# ---- distributions.LowerCholeskyTransform distributions.PositiveDefiniteTransform
tl.distributions.NAME()(tl.tensor([[0.5, 9.0], [2.0, -1.0]]))
# ---- distributions.identity_transform
tl.distributions.identity_transform(tl.tensor([1.0, 2.0]))
# ---- distributions.Transform
class Doubled(tl.distributions.Transform):
    domain = codomain = tl.distributions.constraints.real
    bijective, sign = True, 1
    def _call(self, x):
        return 2 * x
    def _inverse(self, y):
        return y / 2
    def log_abs_det_jacobian(self, x, y):
        return tl.full_like(x, 2.0).log()
d = tl.distributions.TransformedDistribution(tl.distributions.Normal(0.0, 1.0), [Doubled()])
d.log_prob(tl.tensor(1.0)).equal(tl.distributions.Normal(0.0, 2.0).log_prob(tl.tensor(1.0)))
# ---- distributions.biject_to distributions.transform_to
from tensorlib.distributions import NAME, constraints
to_positive = NAME(constraints.positive)        # for scales that are learned as any numbers
to_positive(tl.tensor([-1.0, 0.0, 2.0]))
