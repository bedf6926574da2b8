"""Names that libraries around PyTorch import or ask for, and what they are here."""

import copy
import pickle
import threading
import time
from collections import namedtuple

import pytest
from process import run_forked

import tensorlib as tl
from tensorlib.futures import Future, collect_all, wait_all
from tensorlib._C import _functorch, _is_torch_function_mode_enabled
from tensorlib._utils import ExceptionWrapper
from tensorlib.nn.utils._named_member_accessor import swap_tensor
from tensorlib.overrides import BaseTorchFunctionMode
from tensorlib.torch_version import TorchVersion
from tensorlib.utils import _foreach_utils, _pytree, cpp_extension
from tensorlib.utils.data.pin_memory import pin_memory
from tensorlib.utils.data.worker import _generate_state
from tensorlib.utils.hooks import RemovableHandle
from tensorlib.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef

NAMES = """
torch._C._TensorMeta torch._C._disabled_torch_function_impl torch.PyTorchFileReader
torch._dynamo.OptimizedModule torch._dynamo.eval_frame.OptimizedModule torch.ScriptModule
torch._dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex
torch._higher_order_ops.associative_scan.associative_scan torch._tensor_str.PRINT_OPTS
torch.autograd.gradcheck.gradcheck torch.autograd.gradcheck.GradcheckError
torch.autograd.profiler.emit_nvtx torch.profiler.kineto_available
torch.distributed.rpc.rpc_async torch.distributed.device_mesh.DeviceMesh
torch.distributed.tensor.DTensor torch.distributed.constants.default_pg_timeout
torch.distributed.distributed_c10d.ReduceOp torch.distributed.is_torchelastic_launched
torch.utils.tensorboard.summary.hparams torch.utils.data.dataloader._collate_fn_t
torch.distributions.constraints.__all__
torch.distributed._composable.fsdp.fully_shard torch.distributed.fsdp.wrap.ModuleWrapPolicy
torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler torch.functional.einsum
torch.distributed.fsdp.MixedPrecisionPolicy torch.distributed.tensor.placement_types.Shard
torch.distributed._functional_collectives.wait_tensor torch._tensor.Tensor torch._C.Value
torch.distributed.tensor.parallel.ColwiseParallel torch._jit_internal.boolean_dispatch
torch._dynamo.eval_frame.is_dynamo_supported torch.cuda.ShortTensor torch._C._jit_set_profiling_mode
torch.utils._contextlib._DecoratorContextManager torch.cuda.set_sync_debug_mode
torch.backends.flags_frozen torch.distributed._tensor.DTensor torch.uint4 torch.int2
torch._standard_gamma torch.jit.TracerWarning torch.jit.Error
torch.distributions.multivariate_normal.Distribution
torch.hub._get_torch_home torch.jit._script_if_tracing
torch.jit.annotations.List torch.jit._overload torch.jit.fork torch.jit.wait
torch.nn.parallel.scatter_gather.scatter torch.nn.parallel.data_parallel.DataParallel
torch.nn.attention.flex_attention.AuxRequest torch.ops.aten.add
torch.serialization.MAP_LOCATION torch.serialization.DEFAULT_PROTOCOL
torch.storage.UntypedStorage torch.storage.TypedStorage torch.utils._pytree.SUPPORTED_NODES
torch.utils._pytree._namedtuple_flatten
torch.utils.data._utils.collate.default_collate torch.utils.data._utils.worker.get_worker_info
torch.utils.data.dataloader._BaseDataLoaderIter torchvision.ops.misc.FrozenBatchNorm2d
torch._subclasses.fake_tensor.is_fake torch.fx.experimental.proxy_tensor.get_proxy_mode
torch.utils.checkpoint.get_device_states
torch._subclasses.fake_tensor.unset_fake_temporarily torch._C._is_tracing
torch.cuda._initialized torch.cuda.random.get_rng_state
torch.distributions.multivariate_normal._precision_to_scale_tril
torchvision.io torchvision.transforms.v2.Compose torch.quasirandom.SobolEngine
torch.nn.grad.conv2d_input torch.nn.utils.weight_norm.WeightNorm torch._shape_as_tensor
torch.nn.utils.spectral_norm.SpectralNorm torch.nn.modules.module._addindent
torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX
torch.nn.init._no_grad_trunc_normal_ torch.distributions.utils.euler_constant
torch.nn.modules.normalization._shape_t torch.nn.modules.transformer._get_clones
torch.nn.modules.transformer._get_activation_fn torch.legacy_contiguous_format
torch.utils.data._utils.pin_memory.pin_memory torch.library.triton_op torch.StorageBase
torch.utils.cpp_extension.CUDA_HOME torch._guards
torch.nn.utils._named_member_accessor.swap_tensor torch.nn.parameter._ParameterMeta
torch.nn.modules.module._global_parameter_registration_hooks torch._guards.detect_fake_mode
torch._ops.HigherOrderOperator torch._vmap_internals._vmap torch._functorch.apis.vmap
torch.optim.lbfgs._cubic_interpolate torch.autograd.functional._as_tuple
torch._functorch.vmap._maybe_remove_batch_dim torch._C._functorch._add_batch_dim
torch._C._is_torch_function_mode_enabled torch._utils._get_available_device_type
torch._utils.ExceptionWrapper torch.utils.weak.WeakTensorKeyDictionary torch.cuda.nvtx.range
torch.distributed.autograd.context torch.distributed.rpc.is_available
torch.distributed.elastic.multiprocessing.errors.record torch.distributions.kl._KL_REGISTRY
torch.utils._python_dispatch.is_traceable_wrapper_subclass functorch.make_functional
torch.torch_version.TorchVersion torch.types._int torch.types._dtype torch.types._TensorOrTensors
""".split()


def test_they_can_be_imported_under_the_name_of_torch():
    run_forked(f"""
from importlib import import_module
from tensorlib import as_torch
as_torch.install()
for path in {NAMES}:
    home, _, name = path.rpartition(".")
    getattr(import_module(home), name)
import torch
assert torch.__name__ == "torch"
for function in (torch.autograd.gradcheck, torch._higher_order_ops.associative_scan):
    assert callable(function)                   # the modules of these names took no place
""")


def test_subclasses_take_part_under_the_name_of_torch():
    run_forked("""
from tensorlib import as_torch
as_torch.install()
import torch
seen = []
class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})
assert type(torch.ones(2).as_subclass(Named) + 1) is Named and seen == ["add"]
assert torch.overrides.has_torch_function((torch.ones(2).as_subclass(Named),))
""")


def test_handles_of_hooks_that_a_program_keeps_itself():
    hooks, called = {}, {}
    first, second = (RemovableHandle(hooks, extra_dict=called) for _ in range(2))
    assert first.id != second.id
    for handle in (first, second):
        hooks[handle.id], called[handle.id] = print, True
    first.remove()
    first.remove()
    assert list(hooks) == list(called) == [second.id]
    with RemovableHandle(hooks, extra_dict=[called]) as third:
        hooks[third.id] = called[third.id] = len
    assert list(hooks) == list(called) == [second.id]


def test_segments_are_reduced_under_the_name_that_libraries_call():
    assert tl._segment_reduce(tl.tensor([1.0, 5.0, 2.0]), "amax", offsets=tl.tensor([0, 2, 3])
                              ).tolist() == [5.0, 2.0]


def test_the_table_of_modules_can_be_gone_through():
    run_forked("import sys\nfor m in sys.modules.values(): getattr(m, '__file__', 0)")


def test_a_future_gives_what_is_set_from_another_thread():
    future = Future()
    doubled, seen = future.then(lambda done: 2 * done.value()), []
    future.add_done_callback(seen.append)
    with pytest.raises(RuntimeError, match="no result yet"):
        future.value()
    assert not future.done() and not doubled.done()
    thread = threading.Thread(target=future.set_result, args=(4,))
    thread.start()
    assert future.wait() == 4 and doubled.wait() == 8
    thread.join()
    assert seen == [future] and future.done()
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        future.set_result(5)


def test_an_error_of_a_future_is_raised_where_it_is_waited_for():
    future = Future()
    later = future.then(lambda done: done.value())
    future.set_exception(ValueError("no"))
    for each in (future, later):
        with pytest.raises(ValueError, match="no"):
            each.wait()
    with pytest.raises(AssertionError, match="expected an exception"):
        Future().set_exception("no")


def test_futures_are_collected_when_the_last_is_done():
    futures = [Future(), Future()]
    both = collect_all(futures)
    futures[1].set_result("b")
    assert not both.done()
    futures[0].set_result("a")
    assert both.wait() == futures and wait_all(futures) == ["a", "b"] and wait_all([]) == []


def test_what_is_forked_runs_at_once():
    future = tl.jit.fork(lambda x, y=0: x + y, tl.ones(2), y=2)
    assert future.done() and tl.jit.wait(future).tolist() == [3, 3]


def test_a_dtype_that_is_a_name_alone_can_be_compared_and_is_refused():
    name = tl.float8_e4m3fn
    assert name == tl.float8_e4m3fn and name != tl.float16 and {name: 1}[name] == 1
    assert name.itemsize == 1 and name.is_floating_point and not name.is_complex
    assert isinstance(name, tl.dtype) and tl.complex32.is_complex and not tl.quint8.is_signed
    assert (tl.finfo(name).max, tl.finfo(tl.float8_e5m2).max) == (448, 57344)
    for call in (lambda: tl.ones(2, dtype=name), lambda: tl.ones(2).to(name), name.to_complex,
                 lambda: tl.ones(2).type(name), lambda: tl.nn.Linear(2, 2).to(name)):
        with pytest.raises(TypeError, match="float8_e4m3fn is a name alone"):
            call()


def test_types_that_nothing_has():
    for kind in (tl.SymInt, tl.SymFloat, tl.SymBool, tl.PyTorchFileReader, tl.cuda.CUDAGraph):
        assert not isinstance(3, kind) and kind | None
        with pytest.raises((NotImplementedError, RuntimeError)):
            kind()


def test_operations_by_the_names_of_aten():
    add = tl.ops.aten.add
    assert add(tl.ones(2), 1).tolist() == add.Tensor(tl.ones(2), 1).tolist() == [2, 2]
    assert {add.Tensor: 1}[tl.ops.aten.add.Tensor] == 1 and add.Tensor != add.Scalar
    assert copy.deepcopy(add.Tensor) is pickle.loads(pickle.dumps(add)).Tensor is add.Tensor
    with pytest.raises(NotImplementedError, match="aten.nothing: there is no operation"):
        tl.ops.aten.nothing(tl.ones(2))


@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scans_are_those_of_their_functions(reverse):
    x = tl.rand(3, 5)
    scan = tl._higher_order_ops.associative_scan
    wanted = (x.flip(1) if reverse else x).cumprod(1)
    for mode in ("pointwise", "generic"):
        got = scan(lambda a, b: a * b, x, 1, reverse=reverse, combine_mode=mode)
        tl.testing.assert_close(got, wanted.flip(1) if reverse else wanted)


def test_a_tensor_in_parts_and_together_again():
    scatter_gather = tl.nn.parallel.scatter_gather
    xs = {"a": tl.arange(6).reshape(3, 2), "b": 7}
    parts = scatter_gather.scatter(xs, [0, 1])
    assert [part["a"].shape[0] for part in parts] == [2, 1] and parts[1]["b"] == 7
    whole = scatter_gather.gather([{"a": part["a"]} for part in parts], 0)
    assert tl.equal(whole["a"], xs["a"])
    args, kwargs = scatter_gather.scatter_kwargs((xs["a"],), {}, [0, 1])
    assert len(args) == len(kwargs) == 2 and kwargs[0] == {}


def test_a_named_tuple_is_a_container_of_its_own_kind():
    Point = namedtuple("Point", "x y")
    leaves, spec = _pytree.tree_flatten(Point(1, (2, 3)))
    assert leaves == [1, 2, 3] and spec.type is namedtuple
    assert _pytree.tree_unflatten([4, 5, 6], spec) == Point(4, (5, 6))
    node = _pytree.SUPPORTED_NODES[_pytree._get_node_type(Point(1, 2))]
    assert node.flatten_fn(Point(1, 2))[0] == [1, 2]


def test_a_frozen_norm_is_a_batch_norm_in_evaluation():
    norm, wanted = tl.vision.ops.FrozenBatchNorm2d(3), tl.nn.BatchNorm2d(3).eval()
    state = {name: tl.rand_like(x.float()) + 0.5 for name, x in wanted.state_dict().items()}
    norm.load_state_dict(dict(state))
    wanted.load_state_dict(state)
    x = tl.rand(2, 3, 4, 4)
    tl.testing.assert_close(norm(x), wanted(x))
    assert not list(norm.parameters()) and repr(norm) == "FrozenBatchNorm2d(3, eps=1e-05)"


def test_the_function_of_a_class_that_takes_no_part():
    class Plain(tl.Tensor):
        __torch_function__ = tl._C._disabled_torch_function_impl

    x = tl.ones(2).as_subclass(Plain)
    assert type(x + 1) is tl.Tensor and (x + 1).tolist() == [2, 2]


def test_the_configuration_in_words():
    assert "NumPy" in tl.__config__.show() and "threads" not in tl.__config__.parallel_info()[:2]
    assert tl.__config__.parallel_info().startswith("in use: ")


def test_sobol_points_are_those_of_pytorch():
    pytest.importorskip("scipy")
    engine = tl.quasirandom.SobolEngine(3)
    assert engine.draw_base2(1).tolist() == [[0, 0, 0], [0.5, 0.5, 0.5]]
    engine.fast_forward(2)
    wanted = [[0.375, 0.375, 0.625], [0.875, 0.875, 0.125]]        # of torch.quasirandom
    assert engine.draw(2).tolist() == wanted and engine.num_generated == 6
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(0)
    out = tl.empty(0, dtype=tl.float64)
    assert engine.reset().fast_forward(4).draw(2, out) is out and out.tolist() == wanted
    for scrambled in (tl.quasirandom.SobolEngine(2, True, seed=1) for _ in range(2)):
        points = scrambled.draw(64, dtype=tl.float64)
        assert points.dtype == tl.float64 and abs(points.mean().item() - 0.5) < 0.02
    assert repr(engine) == "SobolEngine(dimension=3)"
    with pytest.raises(ValueError, match="Supported range"):
        tl.quasirandom.SobolEngine(0)


def test_tensors_in_groups_of_one_dtype():
    group = _foreach_utils._group_tensors_by_device_and_dtype
    xs, ys = [tl.ones(1), tl.ones(2).double(), tl.ones(3)], [None, tl.ones(4), None]
    cpu = tl.device("cpu")
    got = group([xs, ys, []], with_indices=True)
    assert set(got) == {(cpu, tl.float32), (cpu, tl.float64)}
    (first, second), places = got[cpu, tl.float32]
    assert first[0] is xs[0] and first[1] is xs[2] and second == [None, None] and places == [0, 2]
    assert group([xs])[cpu, tl.float64] == ([[xs[1]]], [])


def test_whether_a_function_runs_for_a_batch():
    seen = []
    tl.vmap(lambda x: seen.append(tl._C._are_functorch_transforms_active()) or x)(tl.ones(2))
    assert seen == [True] and not tl._C._are_functorch_transforms_active()
    assert not tl._subclasses.is_fake(tl.ones(2)) and tl.fx.get_proxy_mode() is None


def test_settings_that_are_equal_have_one_hash():
    kinds = tl.distributed.fsdp.MixedPrecision, tl.distributed.fsdp.CPUOffload
    made = [kind(offload_params=flag) for kind in kinds for flag in (True, False, True)]
    assert len(set(made)) == 4 and made[0] == made[2] != made[1] != made[4]


def test_images_of_noise_are_the_same_each_time():
    from tensorlib.vision.datasets import FakeData

    images = FakeData(size=3, image_size=(3, 4, 4), num_classes=5, transform=lambda x: x / 255)
    state = tl.get_rng_state()
    (first, label), (again, _), (other, _) = images[1], images[1], images[2]
    assert tl.equal(first, again) and not tl.equal(first, other) and 0 <= label < 5
    assert tl.equal(state, tl.get_rng_state()) and len(list(images)) == 3


def test_a_network_is_asked_for_as_torchvision_is():
    from tensorlib.vision import models

    assert models.resnet18(weights=None, num_classes=3).fc.out_features == 3
    for trained in {"weights": "DEFAULT"}, {"pretrained": True}:
        with pytest.raises(NotImplementedError, match="no trained weights"):
            models.resnet18(**trained)


def test_a_loop_is_joined_where_one_process_is_all_or_nothing_is_to_be_waited_for(monkeypatch):
    from tensorlib.distributed.algorithms import join

    with join.Join([tl.nn.Linear(1, 1)]) as joined:
        assert joined is None
    monkeypatch.setattr(join, "is_initialized", lambda: True)
    monkeypatch.setattr(join, "get_world_size", lambda: 2)
    with join.Join([], enable=False, throw_on_early_termination=True) as joined:
        assert joined is None
    with pytest.raises(NotImplementedError, match="DistributedSampler"):
        join.Join([tl.nn.Linear(1, 1)])


def test_small_names_do_what_they_say():
    x = tl.ones(2, 3)
    assert tl._shape_as_tensor(x).tolist() == [2, 3]
    assert tl._shape_as_tensor(tl.tensor(1.0)).dtype is tl.int64
    assert x[1:]._is_view() and not x._is_view() and not x.clone()._is_view()
    assert tl.nn.modules.module._addindent("a\nb\n\nc", 2) == "a\n  b\n\n  c"
    layer = tl.nn.Linear(3, 1)
    assert tl.equal(layer._call_impl(x), layer(x))
    assert callable(tl.nn.utils.weight_norm) and callable(tl.nn.utils.spectral_norm)


# in their order, those in one row alike
VERSIONS = """
1.9.1
1.10.dev2 1.10.0.dev2
1.10a 1.10.0a0
1.10rc1 1.10.0-pre1
1.10 1.10.0 v1.10
1.10+cpu
1.10.post1 1.10-1
2.4
2.13
1!0.1
"""


def test_versions_compare_by_their_numbers():
    rows = [row.split() for row in VERSIONS.split("\n") if row]
    placed = [(i, name) for i, row in enumerate(rows) for name in row]
    for i, a in placed:
        for j, b in placed:
            a_version = TorchVersion(a)
            assert (a_version < b, a_version <= b, a_version == b, a_version != b, a_version >= b,
                    a_version > b) == (i < j, i <= j, i == j, i != j, i >= j, i > j), (a, b)
    version = TorchVersion("2.13.0+cpu")
    assert version > (2, 4) and version >= (2, 13) and not version < (2, 13, 0)
    assert TorchVersion("new") > "2.13" and version != 2 and version != None    # noqa: E711
    assert {version: 1}["2.13.0+cpu"] == 1 and version.startswith("2.")
    with pytest.raises(TypeError):
        version < 2                                                             # noqa: B015


# ---- batches, modes, errors and references -------------------------------------------------------

def test_examples_of_a_batch_are_told_from_tensors():
    seen = []

    def inner(x):
        seen.append((_functorch.is_batchedtensor(x), _functorch.maybe_get_level(x),
                     _functorch.maybe_current_level(), _functorch.get_unwrapped(x).shape))
        return x

    tl.vmap(tl.vmap(inner))(tl.ones(2, 3))
    assert seen == [(True, 2, 2, (3,))]
    assert not _functorch.is_batchedtensor(tl.ones(2)) and _functorch.maybe_current_level() is None
    with pytest.raises(RuntimeError, match="no example of a batch"):
        _functorch.get_unwrapped(tl.ones(2))


def test_a_library_makes_examples_of_a_batch_itself():
    other = tl.arange(6.0).reshape(3, 2)

    def call(x):
        y = x + _functorch._add_batch_dim(other, 1, 1)
        return y, _functorch._remove_batch_dim(y, 1, 2, 1)

    examples, whole = tl.vmap(call, out_dims=(0, None))(tl.zeros(2))
    assert examples.tolist() == other.T.tolist() and whole.tolist() == other.tolist()


def test_whether_a_mode_takes_functions():
    assert not _is_torch_function_mode_enabled()
    with BaseTorchFunctionMode():
        assert _is_torch_function_mode_enabled()
    assert not _is_torch_function_mode_enabled()


@pytest.mark.parametrize("error, kind", [(ValueError("no"), ValueError), (KeyError("a"), KeyError),
                                         (UnicodeDecodeError("utf-8", b"", 0, 1, "no"),
                                          RuntimeError)])
def test_an_error_is_raised_where_it_is_handed_to(error, kind):
    try:
        raise error
    except Exception:
        kept = pickle.loads(pickle.dumps(ExceptionWrapper(where="in a thread")))
    with pytest.raises(kind, match="Caught .* in a thread.\nOriginal Traceback"):
        kept.reraise()


def test_what_is_kept_of_a_tensor_goes_with_it():
    x, y = tl.ones(2), tl.ones(2)
    notes = WeakIdKeyDictionary([(x, "x"), (y, "y")])
    assert notes[x] == "x" and notes[y] == "y" and tl.ones(2) not in notes and 3 not in notes
    assert [key is x for key in notes] == [True, False] and len(copy.deepcopy(notes)) == 2
    first, second, plain = WeakIdRef(x), WeakIdRef(x), TensorWeakRef(x)
    assert first == second and hash(first) == hash(second) != hash(WeakIdRef(y)) and plain() is x
    del x
    assert len(notes) == 1 and first() is plain() is None and first != second and first == first
    del notes[y]
    assert not notes


def test_the_tensor_of_an_attribute_is_exchanged():
    module, new = tl.nn.BatchNorm1d(2), tl.nn.Parameter(tl.zeros(2))
    old = module.weight
    assert swap_tensor(module, "weight", new) is old and module.weight is new
    swap_tensor(module, "running_mean", new)
    assert dict(module.named_buffers())["running_mean"] is new
    missing = swap_tensor(module, "extra", new, allow_missing=True)
    assert module.extra is new and swap_tensor(module, "extra", missing) is new
    assert not hasattr(module, "extra")
    for name, error in (("extra", AttributeError), ("a.b", KeyError), ("training", TypeError)):
        with pytest.raises(error):
            swap_tensor(module, name, new)


def test_classes_of_tuples_are_told_apart():
    point = namedtuple("point", "x y")(1, 2)
    for value, named, made_in_c in ((point, True, False), (time.gmtime(0), False, True),
                                    ((1, 2), False, False), (tl.ones(2).max(0), True, False)):
        assert _pytree.is_namedtuple_instance(value) == named
        assert _pytree.is_structseq_instance(value) == made_in_c


def test_leaves_are_spread_over_the_parts_below_them():
    structure = _pytree.tree_structure((1, [2, {"a": 3}]))
    assert _pytree._broadcast_to_and_flatten((0, 5), structure) == [0, 5, 5]
    assert _pytree._broadcast_to_and_flatten(None, structure) == [None] * 3
    assert _pytree._broadcast_to_and_flatten((0, 5, 6), structure) is None


def test_seeds_of_workers_are_those_of_pytorch():
    assert _generate_state(2**40 + 7, 3) == [400740237, 3779043709, 3128233089, 477537302]


def test_batches_of_types_of_their_own_say_how_they_are_pinned():
    class Batch:
        def pin_memory(self):
            return "pinned"

    x = tl.ones(2)
    batch = pin_memory({"x": x, "parts": [Batch(), 3]})
    assert batch["x"] is x and batch["parts"] == ["pinned", 3]


def test_code_compiled_for_pytorch_is_not_built():
    for build in (cpp_extension.load, cpp_extension.load_inline):
        with pytest.raises(RuntimeError, match="fast: code compiled for PyTorch can't be called"):
            build(name="fast", sources=["fast.cu"])
    with pytest.raises(NotImplementedError, match="library.custom_op"):
        cpp_extension.CUDAExtension("fast", [])
    assert cpp_extension.CUDA_HOME is None
    assert isinstance(tl.ones(2).untyped_storage(), tl.StorageBase)
