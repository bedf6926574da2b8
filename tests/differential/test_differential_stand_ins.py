"""What scripts ask of devices they do not have, and DLPack, beside PyTorch built for CPUs alone."""

import warnings

import numpy as np
import pytest
from cases import each

import tensorlib as tl

torch = pytest.importorskip("torch")

ANSWERS = """
cuda.is_available() cuda.device_count() cuda.is_initialized() cuda.is_bf16_supported()
cuda.memory_allocated() cuda.max_memory_allocated() cuda.memory_reserved() cuda.get_arch_list()
cuda.get_rng_state_all() cuda.manual_seed(1) cuda.manual_seed_all(1) cuda.empty_cache()
cuda.device(-1).__enter__() cuda.stream(None).__enter__()
accelerator.is_available() accelerator.device_count() accelerator.current_accelerator()
mps.is_available() mps.device_count() xpu.is_available() xpu.device_count() version.cuda
backends.cudnn.is_available() backends.cudnn.version() backends.cudnn.enabled
backends.cudnn.benchmark backends.cudnn.deterministic backends.cudnn.allow_tf32
backends.mps.is_available() backends.mps.is_built() backends.cuda.is_built()
backends.cuda.matmul.allow_tf32 backends.mkldnn.enabled backends.cuda.flash_sdp_enabled()
backends.cuda.matmul.allow_fp16_reduced_precision_reduction
are_deterministic_algorithms_enabled() get_float32_matmul_precision() get_default_device().type
is_deterministic_algorithms_warn_only_enabled() get_deterministic_debug_mode()
set_default_device(None) use_deterministic_algorithms(False)
set_float32_matmul_precision("highest") is_warn_always_enabled() is_autocast_enabled()
is_autocast_enabled("cpu") amp.is_autocast_available("cpu") is_autocast_cpu_enabled()
is_autocast_cache_enabled() clear_autocast_cache()
device("cuda").type device("cuda:1").index device("cuda",1).index device("cpu").index
str(device("cuda",1)) repr(device("cuda:1")) repr(device("cpu")) str(device(device("mps")))
device("cpu",0)==device("cpu") device("cpu")==device("cpu:0") device("cuda:2")==device("cuda",2)
device(type="cuda",index=3)==device("cuda:3") hash(device("cpu"))==hash(device("cpu"))
ones(2,device="cpu:0").device.type ones(2).cpu().is_cuda ones(2).to(device("cpu")).device.type
ones(2).type(LongTensor) ones(2).type(float64) LongTensor([1,2]) LongTensor(2,3).shape
LongTensor([1.5]) FloatTensor([[1,2]]) FloatTensor() BoolTensor([1,0]) HalfTensor([1])
BFloat16Tensor([1]) DoubleTensor([2.5]) ByteTensor([1]) CharTensor([1]) IntTensor([1])
isinstance(ones(2),FloatTensor) isinstance(ones(2),LongTensor) isinstance(3,FloatTensor)
isinstance(arange(3),LongTensor) issubclass(FloatTensor,Tensor) FloatTensor.__name__
FloatTensor(ones(2)) amp.GradScaler(enabled=False).is_enabled()
amp.GradScaler(enabled=False).get_scale() amp.GradScaler(enabled=False).scale(ones(2))
amp.GradScaler(enabled=False).state_dict() amp.GradScaler("cpu").state_dict()
amp.GradScaler("cpu").scale(ones(2)) amp.GradScaler("cpu",init_scale=2.0).scale([ones(2)])
jit.is_scripting() jit.is_tracing() jit.annotate(int,3)
compiler.is_compiling() compiler.is_exporting()
compiler.disable(len)([3]) compiler.disable(recursive=False)(len)([3]) compiler.reset()
multiprocessing.get_all_sharing_strategies() multiprocessing.get_sharing_strategy()
autograd.Variable(ones(2)).requires_grad autograd.Variable(ones(2),requires_grad=True).is_leaf
isinstance(ones(2),autograd.Variable) isinstance(3,autograd.Variable)
isinstance(strided,layout) isinstance(contiguous_format,memory_format)
legacy_contiguous_format==contiguous_format
isinstance(ones(2).layout,layout) distributions.utils.tril_matrix_to_vec(ones(3,3))
distributions.utils.tril_matrix_to_vec(arange(9).reshape(3,3),-1)
distributions.utils.vec_to_tril_matrix(arange(6.0)+1)
distributions.utils.vec_to_tril_matrix(ones(2,3),-1) distributions.utils.broadcast_all(ones(2),3)
distributions.utils.vec_to_tril_matrix(arange(8.0),1)
ones(2).__dlpack_device__() cuda.amp.GradScaler(enabled=False).get_scale()
""".split()

ERRORS = """
ones(3,device="cuda") randn(2,device="cuda") zeros_like(ones(2),device="cuda")
tensor(1.0,device=device("cuda:0")) ones(2).cuda() ones(2).to("cuda") ones(2).to(0)
ones(2,device=0) ones(2,device=3.5) ones(2).cuda(0) ones(2).xpu() arange(3,device="cuda")
ones(2).to(device="cuda:7",dtype=float64) ones(2,device="xpu") ones(2).to(device("mps"))
device("nonsense") device("cuda:-1") device("cuda:x") device("cuda:1",1) device(3.5) device("CPU")
device(0) Generator(device="cuda") cuda.get_device_name() cuda.current_device() cuda.synchronize()
cuda.get_device_properties(0) cuda.Stream() cuda.get_device_capability() cuda.current_stream()
cuda.mem_get_info() cuda.init() cuda.device(0).__enter__() accelerator.synchronize()
accelerator.current_device_index() mps.empty_cache() use_deterministic_algorithms("a")
set_default_tensor_type(LongTensor) set_default_tensor_type("torch.cuda.FloatTensor")
ones(2).type("nonsense") ones(2).type("torch.cuda.FloatTensor") LongTensor(zeros(2))
FloatTensor(3.5) LongTensor(device="cuda") autocast("nonsense") autocast(3)
autograd.Variable(3) autograd.Variable(arange(3),requires_grad=True)
distributions.utils.tril_matrix_to_vec(ones(2,2),3)
from_dlpack(3) ones(2,requires_grad=True).__dlpack__() ones(2).__dlpack__(stream="a")
""".split()

WARNINGS = """
amp.GradScaler() cuda.amp.GradScaler() autocast("cuda") amp.autocast("cuda") cuda.amp.autocast()
autocast("cpu",dtype=float32) set_float32_matmul_precision("nonsense")
""".split()


def run(library, call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(call, vars(library))


def shown(value):
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return [shown(each) for each in value]
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return str(value.dtype).rpartition(".")[2], value.tolist()
    return tuple(value) if isinstance(value, tuple) else value


@each("call", ANSWERS)
def test_the_answers_are_the_same(call):
    assert shown(run(tl, call)) == shown(run(torch, call))


@each("call", ERRORS)
def test_what_is_an_error_there_is_one_here(call):
    with pytest.raises((RuntimeError, AssertionError, TypeError, ValueError, BufferError,
                        NotImplementedError)) as theirs:
        run(torch, call)
    kinds = {NotImplementedError: RuntimeError}      # of MPS alone, which no tensor reaches
    kind = kinds.get(theirs.type, theirs.type)
    with pytest.raises(TypeError if call == "from_dlpack(3)" else kind):
        run(tl, call)


@each("call", WARNINGS)
def test_what_warns_there_warns_here(call):
    for library in (torch, tl):
        with pytest.warns((UserWarning, FutureWarning)):
            eval(call, vars(library))


def test_deterministic_modes_are_kept():
    for library in (torch, tl):
        library.use_deterministic_algorithms(True, warn_only=True)
        assert library.are_deterministic_algorithms_enabled()
        assert library.is_deterministic_algorithms_warn_only_enabled()
        assert library.get_deterministic_debug_mode() == 1
        library.set_deterministic_debug_mode("error")
        assert library.get_deterministic_debug_mode() == 2
        library.set_deterministic_debug_mode(0)
        assert not library.are_deterministic_algorithms_enabled()


def test_default_tensor_types():
    for library in (torch, tl):
        try:
            run(library, "set_default_tensor_type(DoubleTensor)")
            assert library.get_default_dtype() == library.float64
            run(library, "set_default_tensor_type('torch.FloatTensor')")
            assert library.get_default_dtype() == library.float32
        finally:
            library.set_default_dtype(library.float32)


def test_autocast_keeps_what_it_is_told():
    for library in (torch, tl):
        with library.autocast("cpu", dtype=library.float16):
            assert library.is_autocast_enabled("cpu")
            assert library.get_autocast_dtype("cpu") == library.float16
            assert library.get_autocast_cpu_dtype() == library.float16
            assert library.get_autocast_gpu_dtype() == library.float16
            assert library.is_autocast_cpu_enabled() and library.is_autocast_cache_enabled()
            with library.autocast("cpu", enabled=False):
                assert not library.is_autocast_enabled("cpu")
            assert library.is_autocast_enabled("cpu")
        assert not library.is_autocast_enabled("cpu")


class Steps:
    """An optimizer that counts its steps."""

    def __init__(self, params):
        self.param_groups, self.steps = [{"params": params}], 0

    def step(self):
        self.steps += 1
        return self.steps


class Descent(torch.optim.SGD):
    def __init__(self, params):
        super().__init__(params, lr=0.0)
        self.steps = 0

    def step(self, closure=None):
        self.steps += 1
        return self.steps


def test_scaled_losses_step_alike():
    """Over gradients some of which have infinities."""
    found = []
    for library, make in ((torch, Descent), (tl, Steps)):
        x = library.ones(2, requires_grad=True)
        optimizer = make([x])
        scaler = library.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
        told = []
        for factor in (1.0, 2.0, float("inf"), 3.0, float("nan"), 1.0, 1.0, 1.0):
            x.grad = None
            scaler.scale((x * factor).sum()).backward()
            told += [scaler.step(optimizer), x.grad.tolist()]
            scaler.update()
            told.append(scaler.get_scale())
        found.append(repr(told))
        fresh = library.amp.GradScaler("cpu")
        fresh.load_state_dict(scaler.state_dict())
        assert fresh.state_dict() == scaler.state_dict()
        scaler.unscale_(optimizer)
        with pytest.raises(RuntimeError, match="already been called"):
            scaler.unscale_(optimizer)
        with pytest.raises((RuntimeError, AssertionError)):
            library.amp.GradScaler("cpu").update()
    assert found[0] == found[1]


# ---- DLPack --------------------------------------------------------------------------------------

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32",
          "uint64", "float16", "bfloat16", "float32", "float64"]
VIEWS = [lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1], lambda x: x[1, 1],
         lambda x: x[:0], lambda x: x[None], lambda x: x[0].expand(3, 4)]


@each("dtype", DTYPES)
@each("view", VIEWS)
def test_memory_is_shared_both_ways(dtype, view):
    x = view(tl.arange(12).reshape(3, 4).to(getattr(tl, dtype)))
    theirs = torch.from_dlpack(x)
    ours = tl.from_dlpack(theirs)
    assert str(theirs.dtype) == f"torch.{dtype}" and ours.dtype == x.dtype
    assert theirs.tolist() == ours.tolist() == x.tolist()
    assert theirs.stride() == ours.stride() == x.stride()
    if x.numel():
        assert theirs.data_ptr() == ours.data_ptr() == x.data_ptr()


@each("dtype", [d for d in DTYPES if d != "bfloat16"])
def test_as_tensor_shares_memory_both_ways(dtype):
    x = tl.arange(6).to(getattr(tl, dtype))
    assert torch.as_tensor(x).data_ptr() == x.data_ptr()
    y = torch.arange(6).to(getattr(torch, dtype))
    assert tl.as_tensor(y).data_ptr() == tl.asarray(y).data_ptr() == y.data_ptr()
    assert tl.tensor(y).tolist() == y.tolist() and tl.tensor(y).data_ptr() != y.data_ptr()


@each("copy", [None, True, False])
def test_copies_are_made_where_they_are_asked_for(copy):
    x, y = tl.ones(3), torch.ones(3)
    assert (torch.from_dlpack(x, copy=copy).data_ptr() != x.data_ptr()) is (copy is True)
    assert (tl.from_dlpack(y, copy=copy).data_ptr() != y.data_ptr()) is (copy is True)


def test_capsules_of_either_age_cross():
    for max_version in (None, (1, 0)):
        assert torch.from_dlpack(tl.ones(3).__dlpack__(max_version=max_version)).sum() == 3
        assert tl.from_dlpack(torch.ones(3).__dlpack__(max_version=max_version)).sum() == 3
    assert torch.utils.dlpack.from_dlpack(tl.utils.dlpack.to_dlpack(tl.ones(3))).sum() == 3
    assert tl.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(3))).sum() == 3


def test_what_requires_grad_is_not_lent():
    with pytest.raises(BufferError, match="require gradient"):
        torch.from_dlpack(tl.ones(2, requires_grad=True))
    with pytest.raises(BufferError, match="require gradient"):
        tl.from_dlpack(torch.ones(2, requires_grad=True))


def test_memory_outlives_the_library_that_lent_it():
    theirs = torch.from_dlpack(tl.full((9999,), 3.0))
    ours = tl.from_dlpack(torch.full((9999,), 4.0))
    churn = [tl.zeros(9999), torch.zeros(9999), np.zeros(9999)]
    assert theirs.mean() == 3.0 and ours.mean() == 4.0
    del churn
