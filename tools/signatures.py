"""The signatures of public functions and methods, with their types, from the live package."""

import inspect
import re
import sys
from functools import cache
from inspect import Parameter

from tensorlib import Tensor
from tensorlib._core.graph.op import Op

# In stubs `float`, `int`, `bool`, `dtype` and `device` are dtypes and properties of Tensor, so that
# the types have other names there: (module, name, its name in stubs).
IMPORTS = [
    ("builtins", "bool", "_bool"), ("builtins", "float", "_float"), ("builtins", "int", "_int"),
    ("builtins", "str", "_str"), ("collections.abc", "Callable", "Callable"),
    ("collections.abc", "Iterator", "Iterator"), ("collections.abc", "Sequence", "Sequence"),
    ("typing", "Any", "Any"), ("typing", "Literal", "Literal"),
    ("typing", "NamedTuple", "NamedTuple"), ("typing", "TypeAlias", "TypeAlias"),
    ("typing", "Self", "Self"), ("typing", "overload", "overload"),
    ("numpy", "dtype", "_numpy_dtype"),
    ("numpy", "generic", "_scalar"), ("numpy", "ndarray", "ndarray"),
    ("tensorlib._core.base.formats", "Format", "Format"),
    ("tensorlib._core.base.dtypes", "dtype", "_dtype"),
    ("tensorlib._core.create.generator", "Generator", "Generator"),
    ("tensorlib._core.base.shape", "Size", "Size"),
    ("tensorlib._core.tensor.tensor", "Tensor", "Tensor"),
    ("tensorlib._core.tensor.tensor", "_Extremes", "_Extremes"),
    ("tensorlib._core.tensor.tensor", "_MinMax", "_MinMax"),
    ("tensorlib._core.graph.node", "Node", "Node"),
    ("tensorlib._core.graph.handles", "RemovableHandle", "RemovableHandle"),
    ("tensorlib._core.base.device", "device", "_device"),
]
ALIASES = {
    "_Number": "_float | _bool",
    "_Sizes": "_int | Sequence[_int]",
    "_Operand": "Tensor | _float | _bool | ndarray[Any, Any] | _scalar",
    "_DType": "_dtype | _numpy_dtype[Any] | type[Any]",
    "_Device": "_device | _str",
}

# What a parameter of this name takes, wherever it stands.
PARAMETERS = {
    "alpha": "_Number", "array": "ndarray[Any, Any]", "axis": "_Sizes", "base": "_Number",
    "beta": "_Number", "chunks": "_int", "col": "_int", "condition": "Tensor",
    "copy": "_bool", "correction": "_Number", "d": "_DType", "destination": "_Sizes",
    "device": "_Device", "dim": "_Sizes", "dim0": "_int", "dim1": "_int", "dims": "_Sizes",
    "dtype": "_DType", "end": "_Number | Tensor", "exponent": "Tensor | _Number",
    "fill_value": "_Number | Tensor", "from_": "_DType", "generator": "Generator",
    "gradient": "Tensor", "high": "_int", "hook": "Callable[[Tensor], Tensor | None]",
    "index": "Tensor", "indices": "Tensor", "input": "Tensor", "keepdims": "_bool",
    "dilation": "_Sizes", "kernel_size": "_Sizes", "margin": "_float", "norm_type": "_float",
    "output_padding": "_Sizes", "padding": "_Sizes | _str",
    "stride": "_Sizes | None",
    "layout": "Format", "length": "_int", "low": "_int", "m": "_int", "mask": "Tensor",
    "max": "Tensor | _Number", "mean": "Tensor | _Number", "memory_format": "Format",
    "min": "Tensor | _Number", "n": "_int", "nbytes": "_int", "new_state": "Tensor",
    "num_samples": "_int", "other": "Tensor | _Number", "out": "Tensor", "p": "_Number | Tensor",
    "requires_grad": "_bool", "retain_graph": "_bool", "rounding_mode": "_str", "row": "_int",
    "s": "_Number | Tensor", "seed": "_int", "shape": "_Sizes", "size": "_Sizes",
    "sizes": "_Sizes", "source": "_Sizes", "split_size_or_sections": "_Sizes",
    "src": "Tensor | _Number", "start": "_Number | Tensor", "std": "Tensor | _Number",
    "step": "_Number | Tensor", "steps": "_int", "tensor": "Tensor", "tensors": "Sequence[Tensor]",
    "to": "_DType", "type1": "_DType", "type2": "_DType", "unbiased": "_bool",
    "callable": "Callable[..., _Number | _bool]",
    "window_length": "_int", "value": "_Number | Tensor", "vec": "Tensor", "vec2": "Tensor",
}

# Where the name says something else in one function.
EXCEPTIONS = {
    ("result_type", "tensor"): "_Operand", ("result_type", "other"): "_Operand",
    ("narrow", "start"): "_int | Tensor", ("random_", "from_"): "_int", ("random_", "to"): "_int",
    ("uniform_", "from_"): "_float", ("uniform_", "to"): "_float",
    ("flatten", "start_dim"): "_int", ("manual_seed", "seed"): "_int",
    ("where", "input"): "Tensor | _Number", ("norm", "p"): "_Number | _str",
    ("view", "shape"): "_Sizes | _dtype",
    **{(name, "d"): "_float" for name in ("fftfreq", "rfftfreq")},
    **{(f"{kind}fft{many}", "s"): "_Sizes"
       for kind in ("", "i", "r", "ir", "h", "ih") for many in "2n"},
}

# Functions and methods that do not return one tensor.
RETURNS = {
    "frexp": "tuple[Tensor, Tensor]", "lu": "tuple[Tensor, ...]", "lu_unpack": "tuple[Tensor, ...]",
    "unique": "Any", "unique_consecutive": "Any", "histogram": "Any", "gradient": "Any",
    "qr": "Any",
    "pca_lowrank": "tuple[Tensor, Tensor, Tensor]", "svd_lowrank": "tuple[Tensor, Tensor, Tensor]",
    **dict.fromkeys(("broadcast_tensors", "dsplit", "hsplit", "meshgrid", "split_with_sizes",
                     "tensor_split", "unravel_index", "vsplit"), "tuple[Tensor, ...]"),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), "Any"),
    **dict.fromkeys(("is_conj", "is_neg", "is_nonzero", "is_same_size", "is_signed"), "_bool"),
    "get_device": "_int",
    "block_diag": "Tensor", "broadcast_shapes": "Size",
    "split": "tuple[Tensor, ...]", "chunk": "tuple[Tensor, ...]", "unbind": "tuple[Tensor, ...]",
    "allclose": "_bool", "equal": "_bool",
    "multi_head_attention_forward": "tuple[Tensor, Tensor | None]",
    "aminmax": "_MinMax", "var_mean": "tuple[Tensor, Tensor]", "std_mean": "tuple[Tensor, Tensor]",
    "manual_seed": "Generator", "seed": "_int", "initial_seed": "_int", "set_rng_state": "None",
    "set_default_dtype": "None", "set_num_threads": "None", "get_num_threads": "_int",
    "get_default_dtype": "_dtype", "promote_types": "_dtype", "can_cast": "_bool",
    "to_complex": "_dtype", "to_real": "_dtype",
    "result_type": "_dtype", "type": "Tensor | _str", "ndimension": "_int", "is_pinned": "_bool",
    "is_grad_enabled": "_bool", "usable_processors": "_int", "empty_cache": "None",
    "reset_peak": "None", "set_cache_limit": "None", "set_cache_time": "None",
    "stats": "dict[_str, _int]",
    "backward": "None", "data_ptr": "_int", "dim": "_int", "element_size": "_int",
    "is_complex": "_bool", "is_contiguous": "_bool", "is_floating_point": "_bool",
    "item": "_Number", "name": "_str", "nelement": "_int", "numel": "_int",
    "numpy": "ndarray[Any, Any]", "to_numpy": "ndarray[Any, Any]",
    "register_hook": "RemovableHandle", "register_prehook": "RemovableHandle",
    "register_post_accumulate_grad_hook": "RemovableHandle",
    "retain_grad": "None", "storage_offset": "_int", "untyped_storage": "UntypedStorage",
    "remove": "None",
    "tolist": "Any", "is_inference": "_bool", "is_shared": "_bool",
    "nbytes": "_int", "untyped": "UntypedStorage", "from_file": "UntypedStorage",
    "get_state": "Tensor", "set_state": "Generator",
    "clone_state": "Generator", "backward_all": "None", "add_rule": "None",
    "add_tangent": "Any", "grad": "tuple[Tensor, ...]",
}

# Functions whose result depends on what they are given: (parameters, result) of each form. A method
# has `self` in the place of the first parameter.
_EXTREME = [
    ("input: Tensor, *, out: Tensor | None = None", "Tensor"),
    ("input: Tensor, other: Tensor, *, out: Tensor | None = None", "Tensor"),
    ("input: Tensor, dim: _int, keepdim: _bool = False, *,"
     " out: tuple[Tensor, Tensor] | None = None", "_Extremes"),
]
OVERLOADS = {
    "max": _EXTREME, "min": _EXTREME,
    "nonzero": [("input: Tensor, *, as_tuple: Literal[False] = False", "Tensor"),
                ("input: Tensor, *, as_tuple: Literal[True]", "tuple[Tensor, ...]")],
    "where": [("condition: Tensor", "tuple[Tensor, ...]"),
              ("condition: Tensor, input: Tensor | _Number, other: Tensor | _Number, *,"
               " out: Tensor | None = None", "Tensor")],
    "Node.register_hook": [("self, hook: Callable[..., Any]", "RemovableHandle")],
    "Node.register_prehook": [("self, hook: Callable[..., Any]", "RemovableHandle")],
    "size": [("self, dim: None = None", "Size"), ("self, dim: _int", "_int")],
    "stride": [("self, dim: None = None", "tuple[_int, ...]"), ("self, dim: _int", "_int")],
}


def forms(name, function, owner=""):
    """The forms of a function with their types: pairs of the parameters' text and the result's."""
    known = OVERLOADS.get(f"{owner}.{name}", OVERLOADS.get(name))
    if known is None or owner not in ("", "Tensor", "Node"):
        return [typed(name, function, owner)]
    if owner and name == "where":           # x.where(condition, other) is the form with both
        return [("self, condition: Tensor, other: Tensor | _Number", "Tensor")]
    check_names(name, function, [text for text, _ in known])
    if owner and not known[0][0].startswith("self"):
        return [("self" + text.removeprefix("input: Tensor"), result) for text, result in known]
    return known


def check_names(name, function, texts):
    """Raises ValueError where a form names a parameter that the function does not have."""
    own = {p.name for p in parameters(name, function)} | {"self"}
    for text in texts:
        strange = set(re.findall(r"(\w+):", text)) - own
        if strange and not {"args", "kwargs"} & own:
            raise ValueError(f"{name}: no parameter {', '.join(sorted(strange))} in {sorted(own)}")


def parameters(name, function):
    """The parameters of a public function, under the names that users may write."""
    return list(inspect.signature(function).parameters.values())


def type_of(function, parameter, op=None):
    """The type that a stub gives to one parameter."""
    name, default = parameter.name, parameter.default
    if (function, name) in EXCEPTIONS:
        found = EXCEPTIONS[function, name]
    elif parameter.annotation is Tensor:
        found = "Tensor"
    elif name == "input" and isinstance(op, Op) and op.elementwise and len(op.arguments) > 1:
        found = "Tensor | _Number"
    elif name in PARAMETERS:
        found = PARAMETERS[name]
    elif default is not Parameter.empty and default is not None:
        found = "_" + type(default).__name__
    else:
        found = "Any"
    if default is None and found != "Any":
        found += " | None"
    return found


def plain(name, function):
    """The parameters without types, as the table of operations shows them."""
    return _joined(_text, name, parameters(name, function), None)


def typed(name, function, owner=""):
    """The parameters with their types, and the return type, as a stub has them."""
    found = parameters(name, function)
    if owner and found:
        found = [found[0].replace(name="self", default=Parameter.empty), *found[1:]]
    texts = _joined(_typed_text, name, found, getattr(function, "op", None))
    record = getattr(function, "op", None)
    fields = named_results().get(getattr(record, "name", name))
    result = "Tensor" if fields is None else "_Extremes" if fields == VALUES else "Any"
    return ", ".join(texts), RETURNS.get(name, result)


VALUES = ("values", "indices")


@cache
def named_results():
    """The fields of the named tuples that functions return, by the names of the functions."""
    return {value.__name__: value._fields
            for name, module in sorted(sys.modules.items()) if name.startswith("tensorlib.")
            for value in list(vars(module).values())
            if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")}


def summary(function):
    """The first sentence of a function's documentation."""
    paragraph = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.?!]) (?=[A-Z`])", paragraph)[0]


def _joined(text, name, found, op):
    """The texts of all parameters, with the star that begins those given by keyword only."""
    starred = False
    for parameter in found:
        starred = starred or parameter.kind is Parameter.VAR_POSITIONAL
        if parameter.kind is Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        yield text(name, parameter, op)


def _text(name, parameter, op):
    return _stars(parameter) + parameter.name + _default(parameter, "=")


def _typed_text(name, parameter, op):
    if parameter.name == "self":
        return "self"
    found = type_of(name, parameter, op)
    if parameter.kind is Parameter.VAR_POSITIONAL and found == "Sequence[Tensor]":
        found = "Tensor | Sequence[Tensor]"                # the tensors, or one list of them
    return f"{_stars(parameter)}{parameter.name}: {found}{_default(parameter, ' = ')}"


def _stars(parameter):
    return {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")


def _default(parameter, equals):
    if parameter.default is Parameter.empty:
        return ""
    default = parameter.default
    text = default.__name__ if callable(default) else repr(default)
    if equals == " = " and text.startswith("tensorlib."):    # a stub says that there is one
        text = "..."
    return equals + text
