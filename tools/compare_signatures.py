"""Compares the arguments of public functions and methods with PyTorch's, name by name.

    python -m tools.compare_signatures           prints what differs, and how much
    python -m tools.compare_signatures --check   fails where a difference has no reason

It needs an environment that has PyTorch too. PyTorch's arguments are those of all overloads in its
schemas, and of its functions in Python. A difference that is wanted has its reason in REASONS.
"""

import inspect
import re
import sys
from inspect import Parameter

import torch

import tensorlib

# Overloads that take what only PyTorch has.
FOREIGN_TYPES = ("Dimname", "Stream", "Storage", "__torch__")
# Taken under PyTorch's name too, though the signature does not show it.
ALSO_TAKEN = {("mm", "mat2"), ("bmm", "mat2"), ("mv", "vec"), ("dot", "tensor"),
              ("expand", "size"), ("view", "size"), ("view", "dtype")}
UNDOCUMENTED = "PyTorch does not document it"
# Why an argument of PyTorch's is not taken, by name or by function and name.
REASONS = {
    "out_dtype": "PyTorch has it for CUDA alone",
    "blocksize": "there are no layouts of blocks", "dense_dim": "it follows from sparse_dim",
    "masked_grad": "it concerns sparse tensors, which are a class of their own",
    "from": "a keyword of Python's; it is called from_ here",
    "tensor_indices_or_sections": "indices_or_sections takes tensors",
    "train": "it is training here, as in nn.functional", "cudnn_enabled": "it chooses a back end",
    "element": "elements takes a number", "test_element": "test_elements takes a number",
    "_disable_byteorder_record": UNDOCUMENTED, "batch_sizes": "the packed form goes by position",
    **{(name, "data"): "the packed form goes by position"
       for name in ("gru", "lstm", "rnn_relu", "rnn_tanh")},
    **{("compile", name): "at most 16 kinds of call are kept, each of fixed shapes"
       for name in ("recompile_limit", "isolate_recompiles", "shapes_spec")},
    ("sort", "reverse"): "TorchScript's own", ("cholesky_solve", "input2"): "TorchScript's own",
    ("ormqr", "input2"): "TorchScript's own", ("ormqr", "input3"): "TorchScript's own",
    ("rrelu", "generator"): UNDOCUMENTED, ("rrelu_", "generator"): UNDOCUMENTED,
    **{(name, "out"): "PyTorch has deprecated the function"
       for name in ("chain_matmul", "svd", "triangular_solve")},
    **{(name, "out"): "it gives several tensors, or is a step of others that take it"
       for name in ("geqrf", "lu_solve", "lu_unpack", "ormqr")},
    ("copy_", "other"): "TorchScript's own", ("expand", "implicit"): UNDOCUMENTED,
    ("to", "layout"): UNDOCUMENTED, ("to", "pin_memory"): UNDOCUMENTED,
}


def our_functions():
    """Pairs of a name and what has it, of functions and then of methods."""
    for name, value in sorted(vars(tensorlib).items()):
        if not name.startswith("_") and callable(value) and not isinstance(value, type):
            yield name, value, getattr(torch, name, None)
    for name, value in sorted(vars(tensorlib.Tensor).items()):
        if not name.startswith("_") and callable(value):
            yield f"Tensor.{name}", value, getattr(torch.Tensor, name, None)


def their_arguments(name, function):
    """The arguments of PyTorch's function by name, each with whether it is by keyword only."""
    is_method = name.startswith("Tensor.")
    plain = name.rpartition(".")[2]
    found, doc = {}, (getattr(function, "__doc__", None) or "").partition("\n\n")[0]
    has_out = re.search(r"\bout=", doc) is not None
    if inspect.isfunction(function):
        return in_python(function)
    for schema in SCHEMAS.get(plain, ()):
        arguments = schema.arguments
        if arguments and arguments[0].name in ("a", "t") or not any(
                of_tensors(x) for x in (*arguments[:1], *schema.returns)):
            continue                         # TorchScript's own, of numbers and lists
        if any(kind in str(argument.type) for argument in arguments for kind in FOREIGN_TYPES):
            continue
        if is_method and not (arguments and arguments[0].name == "self"):
            continue
        for argument in arguments:
            if argument.name != "self" and (has_out or not argument.is_out):
                found.setdefault("out" if argument.is_out else argument.name, argument.kwarg_only)
    return found


def of_tensors(argument):
    """Whether an argument or a result is a tensor, or several."""
    return "Tensor" in str(argument.type)


def in_python(function):
    """The arguments of a function in Python, none where they are not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return {p.name: p.kind is Parameter.KEYWORD_ONLY for p in parameters
            if p.kind in named and p.name not in ("self", "input", "tensors")}


def our_arguments(function):
    """The names of the arguments that our function takes; None where it takes any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is Parameter.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters}


def reason_for(name, argument):
    """Why an argument is not taken, or None."""
    plain = name.rpartition(".")[2]
    return REASONS.get((plain, argument)) or REASONS.get(argument)


def schemas():
    """PyTorch's schemas by the names of their functions."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten":
            found.setdefault(name, []).append(schema)
    return found


SCHEMAS = schemas()


def main(check=False):
    compared, refused, excused = 0, [], []
    for name, ours, theirs in our_functions():
        taken = our_arguments(ours)
        if theirs is None or taken is None:
            continue
        compared += 1
        for argument in their_arguments(name, theirs):
            if argument not in taken and (name.rpartition(".")[2], argument) not in ALSO_TAKEN:
                reason = reason_for(name, argument)
                (excused if reason else refused).append((name, argument, reason))
    for name, argument, reason in excused:
        print(f"{name}({argument}=): {reason}")
    for name, argument, _ in refused:
        print(f"{name}({argument}=): is not taken")
    print(f"{compared} functions and methods compared; {len(refused)} arguments of PyTorch's are "
          f"not taken, {len(excused)} for a reason")
    return bool(check and refused)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
