"""The functions that networks are made of, after `torch.nn.functional`.

They are operations like those of `tensorlib.ops`, declared in the same way; they stand apart, and
are imported when first used, since many programs do without them.
"""

from tensorlib.nn.functional.activations import (
    gelu,
    glu,
    hardsigmoid,
    hardswish,
    log_softmax,
    logsigmoid,
    mish,
    relu,
    relu_,
    selu,
    selu_,
    silu,
    softmax,
    softmin,
    softsign,
    tanhshrink,
)
from tensorlib.nn.functional.adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    channel_shuffle,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    pixel_shuffle,
    pixel_unshuffle,
)
from tensorlib.nn.functional.attention import scaled_dot_product_attention
from tensorlib.nn.functional.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from tensorlib.nn.functional.elementwise_losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from tensorlib.nn.functional.embedding_bags import embedding_bag, one_hot
from tensorlib.nn.functional.ctc import ctc_loss
from tensorlib.nn.functional.distances import pdist
from tensorlib.nn.functional.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    gumbel_softmax,
    rrelu,
)
from tensorlib.nn.functional.fractional import fractional_max_pool2d, fractional_max_pool3d
from tensorlib.nn.functional.group_norms import group_norm, instance_norm, local_response_norm
from tensorlib.nn.functional.likelihoods import cross_entropy, nll_loss
from tensorlib.nn.functional.linear import bilinear, embedding, linear
from tensorlib.nn.functional.margins import (
    cosine_embedding_loss,
    cosine_similarity,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    normalize,
    pairwise_distance,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from tensorlib.nn.functional.multihead import multi_head_attention_forward
from tensorlib.nn.functional.norms import batch_norm, layer_norm, rms_norm
from tensorlib.nn.functional.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from tensorlib.nn.functional.resampling import (
    affine_grid,
    grid_sample,
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from tensorlib.nn.functional.unfolding import col2im as fold, im2col as unfold
from tensorlib.nn.functional.parametric_activations import (
    celu,
    celu_,
    elu,
    elu_,
    hardshrink,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    prelu,
    relu6,
    softplus,
    softshrink,
    threshold,
    threshold_,
)
from tensorlib._core.base.explained import explain
from tensorlib.ops.lazy import declared, gathered
from tensorlib.nn import _reduction as _Reduction
from tensorlib.nn.functional import in_place, other_arguments  # functions of the package above
from tensorlib.ops.pending import FUNCTIONS
from tensorlib.ops.shape.padding import pad
from tensorlib.ops.pointwise.unary import sigmoid, tanh

declared(__name__)
rrelu_ = FUNCTIONS["rrelu_"]
__all__ = gathered(__name__)
explain(vars(), __all__)


def __dir__():
    return __all__
