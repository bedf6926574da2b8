"""Families of operations that are declared when one of them is first used.

    >>> tensorlib.tensor([180.0]).deg2rad()        # imports tensorlib.ops.pointwise.rare
    tensor([3.1416])

Most programs use few of the functions that there are, and each declaration takes some 50 us. So a
module in `FAMILIES` is not imported with the package, but by the first use of one of its names, in
whose places there are stand-ins until then, and by whoever goes through the registry or asks it for
what it does not have. Such a module ends with `declared(__name__)`.
"""

import sys
from importlib import import_module
from inspect import isfunction, signature
from typing import NamedTuple

from tensorlib._core.graph.op import declared as operations
from tensorlib._core.graph.op import forget
from tensorlib._core.tensor.tensor import Tensor, attach
from tensorlib.ops.complete import check_registry
from tensorlib.ops.publish import FUNCTIONS, check_tensors


class Names(NamedTuple):
    """What a family publishes: functions that are methods too, functions, and methods alone."""

    both: str = ""
    functions: str = ""
    methods: str = ""


FAMILIES = {
    "tensorlib.ops.shape.repeating": Names(
        both="flip fliplr flipud rot90 roll tile repeat_interleave",
        methods="repeat"),
    "tensorlib.ops.shape.stacking": Names(
        both="tensor_split hsplit vsplit dsplit split_with_sizes narrow_copy",
        functions="atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_shapes meshgrid "
                  "hstack vstack dstack column_stack row_stack cartesian_prod combinations"),
    "tensorlib.ops.shape.diagonals": Names(
        both="diag trace diag_embed diagflat",
        functions="block_diag",
        methods="fill_diagonal_"),
    "tensorlib.ops.names.queries": Names(
        both="is_nonzero is_same_size is_signed is_conj is_neg get_device",
        functions="result_type"),
    "tensorlib.ops.pointwise.complex": Names(
        both="conj conj_physical resolve_conj resolve_neg angle adjoint",
        functions="real",
        methods="conj_physical_"),
    "tensorlib.ops.create.windows": Names(
        functions="hann_window hamming_window blackman_window bartlett_window kaiser_window"),
    "tensorlib.ops.products.tensor_products": Names(
        both="addr addbmm kron",
        functions="tensordot vander",
        methods="addr_ addbmm_"),
    "tensorlib.ops.names.legacy": Names(
        functions="fill",
        methods="apply_ map_"),
    "tensorlib._methods": Names(
        methods="type new ndimension is_pinned pin_memory cuda xpu"),
    "tensorlib.ops.products.einsum": Names(functions="einsum"),
    "tensorlib.linalg": Names(
        both="cholesky inverse det slogdet logdet svd qr pinverse lu lu_solve cholesky_solve "
             "cholesky_inverse triangular_solve geqrf orgqr ormqr matrix_power matrix_exp cross",
        functions="lu_unpack chain_matmul"),
    "tensorlib.ops.order.sorting": Names(both="argsort sort msort topk kthvalue"),
    "tensorlib.ops.order.quantiles": Names(both="median nanmedian mode quantile nanquantile"),
    "tensorlib.ops.reduce.scans": Names(
        both="cumprod cummax cummin logcumsumexp nanmean",
        methods="cumprod_"),
    "tensorlib.ops.index.replacing": Names(
        both="index_put put masked_scatter scatter_reduce index_reduce diagonal_scatter "
             "select_scatter slice_scatter",
        methods="index_put_ put_ masked_scatter_ scatter_reduce_ index_reduce_"),
    "tensorlib.ops.index.selecting": Names(
        both="select take argwhere",
        functions="unravel_index"),
    "tensorlib.ops.order.searching": Names(
        both="unique unique_consecutive",
        functions="searchsorted bucketize isin"),
    "tensorlib.nn.functional": Names(
        both="celu hardshrink prelu selu threshold",
        functions="layer_norm rms_norm binary_cross_entropy_with_logits kl_div poisson_nll_loss "
                  "alpha_dropout bilinear dropout feature_alpha_dropout rrelu cosine_similarity "
                  "pairwise_distance hinge_embedding_loss margin_ranking_loss "
                  "cosine_embedding_loss triplet_margin_loss group_norm ctc_loss conv1d conv2d "
                  "conv3d conv_transpose1d conv_transpose2d conv_transpose3d avg_pool1d "
                  "max_pool1d max_pool2d max_pool3d pixel_shuffle pixel_unshuffle "
                  "channel_shuffle"),
    "tensorlib.nn.functional.recurrent": Names(
        functions="lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"),
    "tensorlib.ops.pointwise.rare": Names(
        both="asinh arcsinh acosh arccosh atanh arctanh sinc frac copysign signbit nextafter "
             "frexp ldexp float_power xlogy logit gcd lcm heaviside isposinf isneginf isreal sgn "
             "logaddexp2 deg2rad rad2deg positive nan_to_num",
        methods="deg2rad_ rad2deg_ nan_to_num_ "
                "asinh_ arcsinh_ acosh_ arccosh_ atanh_ arctanh_ sinc_ frac_ copysign_ "
                "nextafter_ ldexp_ float_power_ xlogy_ logit_ gcd_ lcm_ heaviside_ sgn_ "
                "logaddexp2_"),
    "tensorlib.ops.pointwise.special": Names(
        both="lgamma digamma polygamma mvlgamma igamma igammac erfinv i0",
        methods="lgamma_ digamma_ polygamma_ mvlgamma_ igamma_ igammac_ erfinv_ i0_"),
    "tensorlib.ops.reduce.distances": Names(
        both="dist renorm",
        functions="cdist pdist",
        methods="renorm_"),
    "tensorlib.ops.create.variates": Names(
        both="poisson",
        functions="binomial",
        methods="exponential_ cauchy_ log_normal_ geometric_"),
    "tensorlib.ops.reduce.statistics": Names(
        both="bincount histc histogram cov corrcoef"),
    "tensorlib.ops.reduce.integrals": Names(
        both="diff",
        functions="trapezoid trapz cumulative_trapezoid gradient"),
    "tensorlib.ops.shape.padding": Names(),
    "tensorlib.ops.shape.strides": Names(
        both="as_strided as_strided_scatter",
        methods="unfold"),
    "tensorlib.ops.names.inplace": Names(
        functions="abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ "
                  "asin_ asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ "
                  "conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ "
                  "fix_ floor_ frac_ gcd_ i0_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ "
                  "nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ "
                  "sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_"),
}


class StandIn:
    """Stands for a function, and for the method of its name, until the family is declared.

    A reference to it that was kept goes on to do what the function does.
    """

    def __init__(self, name, family):
        vars(self).update(__name__=name, __qualname__=name, __module__="tensorlib", family=family)

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def __get__(self, tensor, kind):
        return self.replaced_in(vars(Tensor)).__get__(tensor, kind)

    def __getattr__(self, attribute):
        if attribute != "function":
            return getattr(self.function, attribute)
        self.function = self.replaced_in(FUNCTIONS)
        return self.function

    def replaced_in(self, names):
        """What has this one's place once its family is declared."""
        load(self.family)
        if names[self.__name__] is self:
            raise RuntimeError(f"{self.__name__}: called by {self.family}, which declares it")
        return names[self.__name__]

    @property
    def __doc__(self):
        return self.function.__doc__

    @property
    def __signature__(self):
        return signature(self.function)

    def __repr__(self):
        return repr(self.function)

    def __reduce__(self):
        return self.__name__


def put_stand_ins(family):
    """Puts stand-ins in the place of all that a family publishes."""
    both, functions, methods = map(str.split, FAMILIES[family])
    for name in both + functions + methods:
        stand_in = StandIn(name, family)
        if name not in methods:
            FUNCTIONS[name] = stand_in
        if name not in functions:
            attach(name, stand_in)


def load(family):
    """Declares a family: the whole of it or, where that fails, nothing."""
    modules, names = set(sys.modules), set(operations)
    try:
        import_module(family)
    except BaseException:
        forget(name for name in set(operations) - names if "." not in name)
        for name in set(sys.modules) - modules:
            if name.startswith(family):
                del sys.modules[name]
        put_stand_ins(family)
        raise


def declared(family):
    """Ends the declaration of a family: its operations are complete, its functions in place."""
    check_registry()
    check_tensors()
    for name, function in FUNCTIONS.items():
        if type(public.get(name)) is StandIn:
            public[name] = function


def publish_in(namespace):
    """Puts all functions into the namespace of the package, and later those that come late."""
    global public
    namespace.update(FUNCTIONS)
    public = namespace


public = {}


for _family in FAMILIES:
    put_stand_ins(_family)
def gathered(package):
    """The names of the functions that a package offers.

    Those that `tensorlib` itself does not have become the package's own: for pickles and stubs.
    """
    names, published = [], {id(function) for function in FUNCTIONS.values()}
    for name, value in vars(sys.modules[package]).items():
        home = getattr(value, "__module__", None) or ""
        if name[0] != "_" and (
                home == "tensorlib" or isfunction(value) and home.startswith(f"{package}.")):
            names.append(name)
            if id(value) not in published:
                value.__module__, value.__qualname__ = package, name
    return sorted(names)


waiting = set(FAMILIES)


def declare_all():
    """Declares the families that nobody asked for yet; whether there were any."""
    found = bool(waiting)
    for family in FAMILIES if found else ():
        load(family)
        waiting.discard(family)
    return found
