"""What scripts ask of devices and libraries that are not here, and settings that change nothing."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import accelerator, backends, cuda, mps, xpu

NO_CUDA = "tensorlib is not compiled with CUDA enabled: tensors are on 'cpu'"
NONE_THERE = "Cannot access accelerator device when none is available."
OF_GPUS = sorted(name for name in cuda.__all__
                 if (getattr(cuda, name).__doc__ or "").startswith("Raises RuntimeError: "))


def test_there_are_no_devices():
    for module in (cuda, mps, xpu, accelerator, *(getattr(backends, name) for name in (
            "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"))):
        assert module.is_available() is False
    assert [module.device_count() for module in (cuda, mps, xpu, accelerator)] == [0] * 4
    assert accelerator.current_accelerator() is None
    assert cuda.is_initialized() is cuda.is_bf16_supported() is False
    assert cuda.get_arch_list() == cuda.get_rng_state_all() == [] and cuda.memory_stats() == {}
    assert [ask() for ask in (cuda.memory_allocated, cuda.max_memory_allocated,
                              cuda.memory_reserved, cuda.max_memory_reserved)] == [0] * 4
    assert backends.cuda.is_built() is backends.mps.is_built() is False
    assert backends.mps.is_macos_or_newer(13, 0) is False
    assert backends.cudnn.version() is None
    assert backends.cudnn.is_acceptable(tl.ones(2)) is False
    assert backends.cuda.preferred_linalg_library() == "default"


def test_what_there_is_nothing_to_do_for():
    before = tl.get_rng_state()
    for done in (cuda.manual_seed(1), cuda.manual_seed_all(1), cuda.seed(), cuda.seed_all(),
                 cuda.empty_cache(), cuda.reset_peak_memory_stats(), cuda.set_rng_state_all([]),
                 mps.manual_seed(1), xpu.manual_seed(1), xpu.manual_seed_all(1),
                 xpu.empty_cache()):
        assert done is None
    assert tl.get_rng_state().equal(before)


@each("call, words", [
    *((lambda name=name: getattr(cuda, name)(0), f"^cuda.{name}: {NO_CUDA}$") for name in OF_GPUS),
    (lambda: cuda.set_rng_state_all([tl.ones(2)]), f"^cuda.set_rng_state_all: {NO_CUDA}$"),
    (lambda: cuda.device(0).__enter__(), f"^cuda.device: {NO_CUDA}$"),
    (lambda: cuda.device("cuda").__enter__(), f"^cuda.device: {NO_CUDA}$"),
    (lambda: cuda.stream(3), f"^cuda.stream: {NO_CUDA}$"),
    *((lambda name=name: getattr(accelerator, name)(0), f"^accelerator.{name}: {NONE_THERE}$")
      for name in ("current_device_index", "current_stream", "set_device_index", "set_stream",
                   "synchronize")),
    (mps.synchronize, "^mps.synchronize: tensorlib is not compiled with MPS enabled$"),
    (mps.empty_cache, r"^mps.empty_cache: Cannot execute emptyCache\(\) without MPS backend.$"),
    (xpu.synchronize, "^xpu.synchronize: tensorlib is not compiled with XPU enabled$"),
])
def test_what_needs_a_device(call, words):
    with pytest.raises(RuntimeError, match=words) as error:
        call()
    assert isinstance(error.value, AssertionError)       # as which PyTorch raises some of them


def test_each_function_that_needs_a_gpu_has_its_name():
    assert {"Event", "Stream", "FloatTensor", "current_device", "get_device_name", "set_device",
            "synchronize"} < set(OF_GPUS)
    for name in OF_GPUS:
        assert getattr(cuda, name).__name__ == getattr(cuda, name).__qualname__ == name
    assert accelerator.current_device_idx is accelerator.current_device_index
    assert accelerator.set_device_idx is accelerator.set_device_index


@each("given, index", [
    (None, -1), (-1, -1), (3, 3), (0, 0), ("cuda", 0), ("cuda:2", 2), (tl.device("cuda:1"), 1),
    (tl.device("cuda"), 0)])
def test_the_gpu_that_is_chosen(given, index):
    assert cuda.device(given).idx == index
    if index < 0:
        with cuda.device(given) as entered, cuda.stream(None) as stream:
            assert entered is stream is None


# ---- settings ------------------------------------------------------------------------------------

SETTINGS = {
    backends.cudnn: {
        "enabled": True, "benchmark": False, "benchmark_limit": 10, "deterministic": False,
        "allow_tf32": True, "fp32_precision": "none"},
    backends.mkldnn: {"enabled": True, "deterministic": False, "allow_tf32": True},
    backends.opt_einsum: {"enabled": False, "strategy": None},
    backends.cuda.matmul: {
        "allow_tf32": False, "allow_fp16_reduced_precision_reduction": True,
        "allow_bf16_reduced_precision_reduction": True, "allow_fp16_accumulation": False,
        "fp32_precision": "none"},
}


@pytest.mark.parametrize("place", SETTINGS)
def test_settings_at_first(place):
    assert {name: getattr(place, name) for name in SETTINGS[place]} == SETTINGS[place]


@pytest.mark.parametrize("module", [backends.cudnn, backends.mkldnn])
def test_settings_for_a_while(module):
    with module.flags(enabled=False, deterministic=True):
        assert (module.enabled, module.deterministic, module.allow_tf32) == (False, True, True)
        with module.flags(enabled=True):
            assert (module.enabled, module.deterministic) == (True, True)
        assert module.enabled is False
    with pytest.raises(KeyError), module.flags(allow_tf32=False):
        assert module.allow_tf32 is False
        raise KeyError
    assert {name: getattr(module, name) for name in SETTINGS[module]} == SETTINGS[module]
    for name in ("missing", "flags", "is_available"):
        with pytest.raises(TypeError, match=f"flags: {module.__name__} has no setting '{name}'"):
            with module.flags(**{name: True}):
                pass
    assert module.is_available() is False


@pytest.mark.parametrize("kind", ["flash", "mem_efficient", "math", "cudnn"])
def test_kinds_of_attention_are_switches(kind):
    kinds = {name: getattr(backends.cuda, f"{name}_sdp_enabled")
             for name in ("flash", "mem_efficient", "math", "cudnn")}
    enable = getattr(backends.cuda, f"enable_{kind}_sdp")
    assert all(is_enabled() is True for is_enabled in kinds.values())
    try:
        enable(0)
        assert {name: is_enabled() for name, is_enabled in kinds.items()} == {
            name: name != kind for name in kinds}
    finally:
        enable(True)
    assert kinds[kind]() is True


def test_a_context_of_old_scripts_warns():
    with pytest.warns(FutureWarning, match=r"backends.cuda.sdp_kernel\(\)` is deprecated") as seen:
        with backends.cuda.sdp_kernel(enable_flash=False) as entered:
            assert entered is None and backends.cuda.flash_sdp_enabled()
    assert seen[0].filename == __file__


@pytest.mark.parametrize("level, name", [("v4", "AVX512"), ("v3", "AVX2"), ("v2", "DEFAULT")])
def test_instructions_that_kernels_are_compiled_for(level, name, monkeypatch):
    monkeypatch.setattr(backends.cpu._kernels, "level", level)
    assert backends.cpu.get_cpu_capability() == name


@pytest.mark.parametrize("call", [
    lambda: cuda.nvtx.range_push("forward"), cuda.nvtx.range_pop, lambda: cuda.nvtx.mark("here"),
    lambda: cuda.nvtx.range("step {}", 3).__enter__()])
def test_marks_for_a_profiler_of_gpus_are_refused(call):
    with pytest.raises(RuntimeError, match="NVTX functions not installed. Are you sure you have a "
                                           "CUDA build"):
        call()


def test_calls_in_other_processes_are_not_there_to_libraries_that_ask():
    assert not tl.distributed.rpc.is_available() and not tl.distributed.autograd.is_available()
    assert tl.distributed.elastic.record(len) is len
