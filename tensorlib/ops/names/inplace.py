"""In-place methods that PyTorch has as functions, too: `tensorlib.relu_(x)` is `x.relu_()`."""

from inspect import Signature, signature

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, alias, publish
from tensorlib.ops.late import FAMILIES, declared


def function_of(name):
    """The function that calls the method of this name: an example of a batch has one of its own."""
    def function(input: Tensor, *args, **kwargs):
        return getattr(input, name)(*args, **kwargs)
    first, *others = signature(getattr(Tensor, name)).parameters.values()
    function.__signature__ = Signature([first.replace(name="input", annotation=Tensor), *others])
    return function


_names = {name: getattr(Tensor, name) for name in FAMILIES[__name__].functions.split()}
for _name, _method in _names.items():
    if _method.__name__ == _name:
        publish(_name, function_of(_name), _method.__doc__, method=False)
for _name, _method in _names.items():
    if _method.__name__ != _name:
        alias(_name, FUNCTIONS[_method.__name__], method=False)

declared(__name__)
