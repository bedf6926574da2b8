"""Compiled functions beside the same functions run eagerly: values, gradients and states, by bits.

What can't be captured runs eagerly, with one warning that names a line: `WARNED` has the words of
warnings, and the functions that get them. Everything else must be replayed.
"""

import re
import warnings

import compiled_branches
import compiled_states
import compiled_training
import compiled_values
import compiled_writes
from cases import each
from compiled_cases import CASES

import tensorlib as tl
from tensorlib import nn

SOURCES = (compiled_writes, compiled_values, compiled_states, compiled_training, compiled_branches)
CALLS = 4
WARNED = {
    "scheduler.step": "scheduler scheduler_inside",
    "options of an optimiser": "lr_set_inside",
    "kept outside": "module_attr_state nonlocal_state state_rebound arg_attr",
    "a Function or a kernel": "param_data_assign numpy_scalar deepcopy",
    "_pickle.dumps() reads or changes is not known": "pickled",
    "writes over a value": "param_data_write leaf_argument_written_without_grad",
    "float":
        "batchnorm_cumulative tensor_of_floats cond_mismatch put_masked_scatter "
        "float_of_a_sum int_of_a_count",
    "changes its arguments": "container_mutated arg_list_appended",
    "hook on a gradient":
        "tensor_hook_step tensor_hook_inside_step post_accumulate_hook param_hook_late retain_grad",
    "create_graph=True":
        "accumulated_with_a_graph",
    "each call changes a list": "forward_hook",
    "saved_tensors_hooks": "saved_hooks",
    "place of a tensor in its memory": "facts_of_memory",
    "checkpoint: is no operation": "checkpointed",
    "write into what is outside": "cond_writes cond_writes_made",
    "out=": "out_argument",
    "tensor: the value": "tensor_of_tensors",
    "set_default_dtype": "default_dtype",
    "data:": "set_data_made module_made_inside",
    "detach_": "detach_",
    "numpy": "by_way_of_numpy",
    "item": "truths_of_all_elements masked_select bool_index item_of_a_sum truth_of_a_sum",
    "repr": "shown_as_text",
    "argument that requires": "leaf_made_inside",
    "by way of what detach": "detached_write_linked",
    "meta tensors": "several_set_by_a_mask",
    "size of what it gives": "nonzero unique where_of_one_argument",
    "Generator": "own_generator_inside",
    "manual_seed": "manual_seed_inside",
    "tolist": "list_of_a_row losses",
}
EAGER = {name: word for word, names in WARNED.items() for name in names.split()}

def parts(value):
    """The leaves of nested containers and modules, and how they are nested."""
    if isinstance(value, nn.Module):
        value = dict(value.state_dict())
    if isinstance(value, dict):
        value = [x for pair in value.items() for x in pair]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(leaf for x in value for leaf in parts(x))]
    if isinstance(value, (tl.Tensor, int, float, str, bool, type(None))):
        return [value]
    return [type(value).__name__]


def tensors(value):
    return [x for x in parts(value) if isinstance(x, tl.Tensor)]


def kept(x):
    """A copy that later calls do not change."""
    return x.detach().clone() if isinstance(x, tl.Tensor) else x


def history(build, wrap):
    """The function, and all that can be seen of some calls of it."""
    tl.manual_seed(0)
    function, make, state = build()
    f = wrap(function)
    tl.manual_seed(1)
    parameters = [p for s in state for p in (
        s.parameters() if isinstance(s, nn.Module) else tensors(s)) if p.requires_grad]
    log = []
    for i in range(CALLS):
        given, named = make(i), {}
        if len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict):
            given, named = given
        arguments = tensors([given, named])
        out = f(*given, **named)
        found = tensors(out)
        log += map(kept, parts(out))
        log += [(x.requires_grad, [x is y for y in arguments]) for x in found]
        log += [x.stride() for x in found if x.numel()]
        linked = [x.double().sum() for x in found if x.requires_grad]
        if linked:
            sum(x * (k + 1) for k, x in enumerate(linked)).backward()
        log += map(kept, arguments)
        log += [kept(x.grad) for x in (*arguments, *parameters) if x.is_leaf]
        log += map(kept, parts(state))
    return f, [*log, tl.rand(2)]


def same(x, y):
    if not isinstance(x, tl.Tensor) or not isinstance(y, tl.Tensor):
        return type(x) is type(y) and x == y
    x, y = (z.float() if z.dtype is tl.bfloat16 else z for z in (x.contiguous(), y.contiguous()))
    return x.dtype is y.dtype and x.shape == y.shape and (
        x.numpy().tobytes() == y.numpy().tobytes())


@each("name", CASES)
def test_compiled_functions_give_what_eager_ones_give(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, wanted = history(CASES[name], lambda f: f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled, found = history(CASES[name], tl.compile)
    assert len(wanted) == len(found)
    assert all(map(same, wanted, found)), [
        (x, y) for x, y in zip(wanted, found) if not same(x, y)][:2]
    told = [str(w.message) for w in caught if str(w.message).startswith("compile: ")]
    replayed = [entry.replay is not None for entry in compiled._entries]
    if name in EAGER:
        assert len(told) == 1 and not replayed[0]
        assert EAGER[name] in told[0] and re.search(r"\.py:\d+", told[0]), told
    else:
        assert not told and all(replayed), told
