"""State of the library that is set between calls of a captured function, which see what is set."""

import ast
from contextlib import contextmanager
from pathlib import Path

import pytest
from beside_eager import seen
from cases import each

import tensorlib as tl
from tensorlib import distributions as D
from tensorlib import nn
from tensorlib.backends import cuda
from tensorlib.distributions.kl import RULES as DIVERGENCES
from tensorlib.nn.modules.module import register_module_forward_hook
from tensorlib.nn.utils import parametrize
from tensorlib.optim.optimizer import register_optimizer_step_post_hook
from tensorlib.utils import _pytree, data
from tensorlib.utils.data.collate import default_collate_fn_map as collated

PACKAGE = Path(tl.__file__).parent


class Noisy(nn.Module):
    """Adds noise to a parameter."""

    def forward(self, x):
        return x + tl.randn(x.shape)


class Pair:
    """A container that is none yet."""

    def __init__(self, *parts):
        self.parts = parts


@contextmanager
def having(set_to, new, old):
    set_to(new)
    try:
        yield
    finally:
        set_to(old)


@contextmanager
def put(registry, key, value):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry, key, value)
        yield


@contextmanager
def put_on(holder, name, value):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holder, name, value, raising=False)
        yield


noisy = parametrize.register_parametrization(nn.Linear(2, 2, bias=False), "weight", Noisy())
linear, w = nn.Linear(2, 2), tl.zeros(2, requires_grad=True)
pair = Pair(1, 2)


def stepped(x):
    w.grad = tl.ones(2)
    with tl.no_grad():
        w.zero_()
    optimizer.step()
    return w.detach().clone()


optimizer = tl.optim.SGD([w], lr=1.0)

# A function, and a context in which it gives something else.
SETTINGS = {
    "validate_args": (lambda x: D.Exponential(-x).mean, lambda: having(
        D.Distribution.set_default_validate_args, False, __debug__)),
    "validate_args in log_prob": (lambda x: D.Normal(x, x).log_prob(x * tl.nan), lambda: having(
        D.Distribution.set_default_validate_args, False, __debug__)),
    "validate_args of one class": (lambda x: D.Uniform(x, x).mean, lambda: put_on(
        D.Uniform, "_validate_args", False)),
    "cached": (lambda x: noisy(x) - noisy(x), parametrize.cached),
    "register_kl": (lambda x: D.kl_divergence(D.Normal(x, x), D.Normal(x, x)), lambda: put(
        DIVERGENCES, (D.Normal, D.Normal), lambda p, q: p.loc * 7)),
    "register_pytree_node": (lambda x: _pytree.tree_flatten(pair)[0][0] is pair, lambda: put(
        _pytree.NODES, Pair, _pytree.Node(lambda x: (list(x.parts), None), Pair))),
    "register_pytree_node for vmap": (
        lambda x: tl.vmap(lambda p: p.parts[0] * p.parts[1])(Pair(x, x + 2)), lambda: put(
            _pytree.NODES, Pair, _pytree.Node(
                lambda x: (x.parts, None), lambda parts, _: Pair(*parts)))),
    "default_collate_fn_map": (lambda x: data.default_collate([1, 2]), lambda: put(
        collated, int, lambda batch, **_: tl.tensor(7))),
    "a hook of all modules": (lambda x: linear(x), lambda: (
        register_module_forward_hook(lambda module, args, result: result * 7))),
    "a hook of all optimisers": (stepped, lambda: (
        register_optimizer_step_post_hook(lambda *args: w.data.fill_(7)))),
    "default dtype": (lambda x: tl.ones(2), lambda: having(
        tl.set_default_dtype, tl.float64, tl.float32)),
    "default device": (lambda x: tl.ones(2).is_meta, lambda: tl.device("meta")),
    "autocast": (lambda x: x @ x, lambda: tl.autocast("cpu")),
    "inference mode": (lambda x: (x * 2).is_inference(), tl.inference_mode),
    "anomalies": (lambda x: tl.autograd.grad((w - 1).sqrt().sum(), w)[0], lambda: (
        tl.autograd.set_detect_anomaly(True))),
    "no hooks on saved tensors": (lambda x: packed(), lambda: (
        tl.autograd.graph.disable_saved_tensors_hooks("none"))),
    "deterministic": (lambda x: x * tl.are_deterministic_algorithms_enabled(), lambda: having(
        tl.use_deterministic_algorithms, True, False)),
    "precision": (lambda x: x * len(tl.get_float32_matmul_precision()), lambda: having(
        tl.set_float32_matmul_precision, "medium", "highest")),
    "kinds of attention": (lambda x: x * cuda.flash_sdp_enabled(), lambda: having(
        cuda.enable_flash_sdp, False, True)),
    "conversions": (lambda x: x * tl.__future__.get_swap_module_params_on_conversion(),
                    lambda: having(tl.__future__.set_swap_module_params_on_conversion,
                                   True, False)),
    "sharing": (lambda x: x * len(tl.multiprocessing.get_sharing_strategy()), lambda: having(
        tl.multiprocessing.set_sharing_strategy, "file_system", "file_descriptor")),
    "format": (lambda x: x * len(str(tl.tensor(1.25).shape) + str(tl.get_printoptions())),
               lambda: having(lambda n: tl.set_printoptions(precision=n), 11, 4)),
}


def packed():
    with tl.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        return tl.autograd.grad((w * w).sum(), w)[0]


def outcome(f):
    """What a call gives or raises, after the same seed."""
    tl.manual_seed(0)
    try:
        found = f(tl.ones(2, 2))
    except (RuntimeError, ValueError) as error:
        return str(error)
    return seen(found) if isinstance(found, tl.Tensor) else found


@each("name", SETTINGS)
@pytest.mark.filterwarnings("ignore:Error detected:UserWarning")
def test_what_is_set_between_calls_is_seen(name):
    function, setting = SETTINGS[name]
    logs = []
    for f in (function, tl.compile(function)):
        log = [outcome(f) for _ in range(3)]
        for _ in range(2):
            with setting():
                log += [outcome(f) for _ in range(3)]
            log += [outcome(f) for _ in range(2)]
        logs.append(log)
    assert logs[1] == logs[0]
    assert logs[0][0] != logs[0][3], "the setting changes nothing"


def test_what_is_kept_for_a_while_is_in_no_capture():
    """A function that is first called within `cached()` has no tensor of it later."""
    def run(wrap):
        f, log = wrap(noisy.forward), []
        tl.manual_seed(0)
        for _ in range(3):
            with parametrize.cached():
                log += [f(tl.eye(2)).tolist() for _ in range(3)]
            log += [f(tl.eye(2)).tolist() for _ in range(2)]
        return log

    assert run(tl.compile) == run(lambda f: f)


# ---- that there is no other state ----------------------------------------------------------------

# What functions write to that is no Registry and no number, since nobody can tell from results what
# is in it: what is filled when the library is imported, or kept to be found again; and what is told
# to captures in another way, or refuses to be captured.
FILLED_BY_IMPORTS = """subclasses.dispatching values.OF_CALLS values.RULES values.ANYWHERE
    pickles.INSTRUCTIONS table.COUNTERPARTS activations.INPLACE writer.HANDLERS
    complete.FROM_OUTSIDE declare.KEPT_UFUNCS lazy.waiting lazy.public pending.HOMES
    value_checks.CHECKS call_types.WRITTEN call_types.RUNNERS simplify.RULES simplify.OF_VIEWS
    direct_steps.STEPS dispatch.DONE""".split()
FOUND_AGAIN = """rules._warned collectives.known fully_shard.addresses group.state group.broken
    subgroups.made memory.SHARED einsum.PLANS optimizer._alive observer.instrumented_codes
    queries.RESULT_TYPES
    sources.installed sources.code_cache sources.files jit._scripted parametrize.cache""".split()
TOLD_OTHERWISE = """printing.options forward_ad._current observer.active options.allowed
    library._defined _symbolic_trace._wrapped node._side_effects""".split()
WRITING = set("""append add update pop clear setdefault remove discard extend insert
    popitem""".split())


def module_level(tree):
    """The names that a module gives values to, each with the code of the value."""
    found = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else (
            [node.target] if isinstance(node, ast.AnnAssign) and node.value else [])
        for each_name in (x for target in targets for x in ast.walk(target)):
            if isinstance(each_name, ast.Name):
                found[each_name.id] = ast.unparse(node.value)
    return found


def written_by_functions(tree):
    """The names of a module that its functions write to, or into."""
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
            continue
        own = {x.arg for x in ast.walk(function.args) if isinstance(x, ast.arg)}
        for node in ast.walk(function):
            if isinstance(node, ast.Global):
                yield from node.names
            holder = None
            if isinstance(node, (ast.Subscript, ast.Attribute)) and (
                    isinstance(node.ctx, (ast.Store, ast.Del))):
                holder = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
                    node.func.attr in WRITING):
                holder = node.func.value
            if isinstance(holder, ast.Name) and holder.id not in own:
                yield holder.id


def test_state_that_the_library_changes_is_seen_by_captures():
    """It is a Registry, or a number or a text, of which captures take note."""
    unseen = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        names = module_level(tree)
        for name in set(written_by_functions(tree)) & set(names):
            if not names[name].startswith("Registry(") and not is_atom(names[name]):
                unseen.add(f"{path.stem}.{name}")
    assert unseen == {*FILLED_BY_IMPORTS, *FOUND_AGAIN, *TOLD_OTHERWISE}


def is_atom(code):
    """Whether code is that of a number, a text, True, False or None."""
    try:
        return not isinstance(ast.literal_eval(code), (dict, list, set, tuple))
    except ValueError:
        return False
