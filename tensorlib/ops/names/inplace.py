"""In-place methods that PyTorch has as functions, too: `tensorlib.relu_(x)` is `x.relu_()`."""

from inspect import Signature, signature

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import alias, publish
from tensorlib.ops.lazy import declared
from tensorlib.ops.pending import function_named

NAMES = (
    "abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ "
    "atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ "
    "detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ "
    "log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ "
    "rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_")


def function_of(name):
    """The function that calls the method of this name: an example of a batch has one of its own."""
    def function(input: Tensor, *args, **kwargs):
        return getattr(input, name)(*args, **kwargs)
    first, *others = signature(getattr(Tensor, name)).parameters.values()
    function.__signature__ = Signature([first.replace(name="input", annotation=Tensor), *others])
    return function


_names = {name: getattr(Tensor, name) for name in NAMES.split()}
for _name, _method in _names.items():
    if _method.__name__ == _name:
        publish(_name, function_of(_name), _method.__doc__, method=False)
for _name, _method in _names.items():
    if _method.__name__ != _name:
        alias(_name, function_named(_method.__name__), method=False)

declared(__name__)
