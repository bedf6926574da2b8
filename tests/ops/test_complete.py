"""Every registered operation is declared in full, and what it waives is counted."""

import doctest

import numpy as np
from cases import each
from catalogue import for_each

import tensorlib as tl
from tensorlib._core.graph.op import registry
from tensorlib.autograd.jvp import jvp_of
from tensorlib.autograd.tangent import RULES
from tensorlib.nn.functional import other_arguments
from tensorlib.ops.complete import TESTING
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.testing.catalogue import ASPECTS, waived

# The number of waivers now. It may only fall.
WAIVERS = 1

# Public functions that are not operations: they compute nothing from tensors, nor make one.
EXEMPT = {
    "broadcast_shapes": "takes sizes",
    "empty_strided": "takes sizes and strides; made of `empty`",
    "empty_permuted": "takes sizes and an order; made of `empty`",
    "is_inference": "asks how a tensor was made",
    "histogramdd": "gives a tensor and a tuple of tensors; tests/core/test_bin_counts.py has it",
    "from_numpy": "takes an array, in whose place the tests put a Tensor",
    "from_dlpack": "takes what other libraries lend",
    "to_dlpack": "lends memory to other libraries",
    "manual_seed": "sets the default generator",
    "seed": "sets the default generator",
    "initial_seed": "asks the default generator",
    "get_rng_state": "asks the default generator",
    "set_rng_state": "sets the default generator",
    "set_default_dtype": "sets what new tensors have",
    "result_type": "gives a dtype",
    "typename": "gives a text",
    "is_storage": "asks what something is",
    "is_tensor": "asks what something is",
    "feature_dropout": "made of `dropout1d` and the like",
    **dict.fromkeys(("fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine"),
                    "made of others; its gradient is not that of the steps which it computes"),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell"),
                    "takes tuples of tensors beside its input; made of `recurrent`"),
}

TWICE = {function.__name__ for function in other_arguments.TWICE}


def gaps(op):
    """What is missing from a declaration."""
    if not op.testing.get("reference"):
        yield "no reference"
    if not op.testing.get("samples"):
        yield "no samples"
    if op.elementwise and not op.testing.get("edges") and "floating" in op.testing.get(
            "takes", "floating"):
        yield "no edges"
    lines = (op.doc or "").strip().splitlines()
    first = " ".join(lines[:lines.index("")] if "" in lines else lines)
    if not first.endswith((".", ":")) or not first[:1].isprintable():
        yield "no docstring whose first sentence ends"
    if op.differentiable and op.linearity != "composite":
        without = [name for i, (name, rule) in enumerate(zip(op.arguments, op.rules))
                   if rule is None and i not in op.boolean_inputs]
        if without:
            yield f"no gradient for {', '.join(without)}"
    if op.differentiable and op.linearity not in ("composite", *RULES):
        yield "no rule for forward mode"
    if unknown := set(op.testing) - set(TESTING):
        yield f"unknown keywords {unknown}"
    if op.name in FUNCTIONS and op.name not in TWICE and op.function is not FUNCTIONS[op.name]:
        yield "another function than the public one"
    for aspect, reason in waived(op).items():
        if aspect not in ASPECTS or not reason:
            yield f"a waiver of {aspect!r} for the reason {reason!r}"


@for_each(registry.values())
def test_every_op_is_complete(op):
    assert not list(gaps(op))


def test_every_public_function_is_a_declared_operation(capsys):
    """One name for the function and its record, but for functions that compute nothing, and those
    that `nn.functional` has with other arguments."""
    names = {name for name, function in FUNCTIONS.items()
             if function.__name__ == name and not name.endswith("_")}
    with capsys.disabled():
        print(f"\n{len(EXEMPT)} of {len(names)} public functions are no operations",
              *EXEMPT.items(), sep="\n  ")
    assert names - set(registry) == set(EXEMPT)
    for name in names - set(EXEMPT) - TWICE:
        assert registry[name].function is FUNCTIONS[name] and FUNCTIONS[name].op is registry[name]


def test_the_number_of_waivers_only_falls(capsys):
    found = [f"{op.name}: {aspect}: {reason}" for op in registry.values()
             if "." not in op.name                 # those that other tests declare have modules
             for aspect, reason in waived(op).items()]
    with capsys.disabled():
        print(f"\n{len(found)} waivers", *found, sep="\n  ")
    assert len(found) <= WAIVERS
    assert len(found) == WAIVERS, f"fewer than before: set WAIVERS to {len(found)}"


@each("name", FUNCTIONS)
def test_every_public_function_is_documented(name):
    function = FUNCTIONS[name]
    assert getattr(tl, name) is function
    assert function.__module__ == "tensorlib"
    assert function.__doc__ and function.__doc__.split("\n\n")[0].strip().endswith((".", ":"))


EXAMPLES = {**FUNCTIONS, "jvp_of": jvp_of}


@each("name", [name for name, function in EXAMPLES.items() if ">>>" in (function.__doc__ or "")])
def test_examples_of_public_functions(name):
    names = {"tensorlib": tl, "np": np, "find": registry.__getitem__, "jvp_of": jvp_of}
    example = doctest.DocTestParser().get_doctest(EXAMPLES[name].__doc__, names, name, None, 0)
    report = []
    doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert not report, "".join(report)
