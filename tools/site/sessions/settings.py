# Examples for pages of the reference; tools/site/examples.py says how they are read.
# ---- Event Stream
isinstance(3, tl.Event), isinstance(3, tl.Stream)
# ---- Future
isinstance(tl.futures.Future(), tl.Future)
# ---- PyTorchFileReader ScriptModule
isinstance(tl.nn.Linear(2, 3), (tl.ScriptModule, tl.PyTorchFileReader))
# ---- SymBool SymFloat SymInt
isinstance(3, (int, tl.SymInt)), isinstance(True, tl.SymBool), isinstance(0.5, tl.SymFloat)
# ---- are_deterministic_algorithms_enabled
tl.use_deterministic_algorithms(True)
tl.are_deterministic_algorithms_enabled()
tl.use_deterministic_algorithms(False)
# ---- is_deterministic_algorithms_warn_only_enabled
tl.use_deterministic_algorithms(True, warn_only=True)
tl.is_deterministic_algorithms_warn_only_enabled()
tl.use_deterministic_algorithms(False)
# ---- get_deterministic_debug_mode set_deterministic_debug_mode
tl.set_deterministic_debug_mode("error")
tl.get_deterministic_debug_mode()
tl.set_deterministic_debug_mode("default")
# ---- is_autocast_enabled
with tl.autocast("cpu"):
    tl.is_autocast_enabled("cpu")
# ---- is_autocast_cpu_enabled get_autocast_cpu_dtype get_autocast_gpu_dtype
with tl.autocast("cpu"):
    tl.is_autocast_cpu_enabled(), tl.get_autocast_cpu_dtype()
tl.get_autocast_gpu_dtype()
# ---- is_autocast_cache_enabled clear_autocast_cache
tl.clear_autocast_cache()
tl.is_autocast_cache_enabled()
# ---- get_autocast_dtype
with tl.autocast("cpu", dtype=tl.float16):
    tl.get_autocast_dtype("cpu")
tl.get_autocast_dtype("cpu")
# ---- get_default_device set_default_device
tl.set_default_device("meta")
tl.get_default_device(), tl.ones(2)
tl.set_default_device(None)
# ---- get_float32_matmul_precision set_float32_matmul_precision
tl.set_float32_matmul_precision("high")
tl.get_float32_matmul_precision()
tl.set_float32_matmul_precision("highest")
# ---- is_warn_always_enabled set_warn_always
tl.set_warn_always(True)
tl.is_warn_always_enabled()
tl.set_warn_always(False)
# ---- set_flush_denormal
tl.set_flush_denormal(True)
tl.tensor(1e-40) / 2                    # no zero
# ---- get_num_threads
before = tl.get_num_threads()
tl.set_num_threads(1)
tl.get_num_threads()
tl.set_num_threads(before)
# ---- set_num_threads
x, before = tl.rand(300_000), tl.get_num_threads()
tl.set_num_threads(1)
alone = x.sum()
tl.set_num_threads(2)
x.sum() == alone                        # the same bits
tl.set_num_threads(before)
# ---- get_num_interop_threads set_num_interop_threads
tl.set_num_interop_threads(1)
tl.get_num_interop_threads()
# ---- show_config
found = tl.show_config(mode="dicts")     # by default it is printed, to be put into a report
list(found), found["versions"]
# ---- is_grad_enabled autograd.is_grad_enabled
with tl.no_grad():
    tl.is_grad_enabled()
tl.is_grad_enabled()
# ---- is_inference_mode_enabled autograd.is_inference_mode_enabled
with tl.inference_mode():
    tl.is_inference_mode_enabled()
# ---- memory.empty_cache
x = tl.zeros(1_000_000)
del x
tl.memory.empty_cache()
tl.memory.stats()["kept"] < 1_000_000
# ---- memory.stats
x = tl.zeros(1000, 1000)
tl.memory.stats()["in_use"] >= 4_000_000
sorted(tl.memory.stats())
# ---- memory.reset_peak
tl.memory.reset_peak()
x = tl.zeros(1_000_000)
del x
tl.memory.stats()["peak"] >= 4_000_000
# ---- memory.set_cache_limit
before = tl.memory.stats()["limit"]
tl.memory.set_cache_limit(100_000_000)
tl.memory.stats()["limit"]
tl.memory.set_cache_limit(before)
# ---- memory.set_cache_time
tl.memory.set_cache_time(60)            # a program that rests for long may keep what it has
tl.memory.set_cache_time(10)
# ---- memory.OutOfMemoryError OutOfMemoryError cuda.OutOfMemoryError
try:
    tl.empty(1 << 50)
except MemoryError as error:            # PyTorch's RuntimeError, too
    print(type(error).__name__, isinstance(error, RuntimeError))
# ---- OutOfRangeError (raises)
tl.tensor([300], dtype=tl.uint8)
# ---- IndexOutOfRange (raises)
tl.ones(3).gather(0, tl.tensor([3]))
# ---- IntegerDivisionByZero (raises)
tl.tensor([7]) // tl.tensor([0])
# ---- UnfitPower (raises)
tl.tensor([2]) ** -1
# ---- UnsupportedDtype (raises)
tl.tensor([1.5]) & 1
# ---- WrongArgument (raises)
tl.func.grad(lambda x: x ** 2)("3")
# ---- WrongGradient (raises)
class Wrong(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        return "no tensor"
Wrong.apply(tl.tensor(1.0, requires_grad=True)).backward()
# ---- DataDependent (raises)
tl.func.vmap(lambda x: float(x))(tl.ones(2))
# ---- NoSuchDevice (raises)
tl.ones(2, device="cuda")
# ---- cuda.BFloat16Tensor cuda.BoolTensor cuda.ByteTensor cuda.DoubleTensor (raises)
# ---- cuda.FloatTensor (raises)
# ---- cuda.HalfTensor cuda.IntTensor cuda.LongTensor cuda.can_device_access_peer (raises)
# ---- cuda.current_device cuda.current_stream cuda.default_stream cuda.Event (raises)
# ---- cuda.get_device_capability cuda.get_device_name cuda.get_device_properties (raises)
# ---- cuda.get_rng_state cuda.init cuda.initial_seed cuda.mem_get_info (raises)
# ---- cuda.ipc_collect cuda.set_device cuda.set_rng_state cuda.Stream cuda.synchronize (raises)
# ---- cuda.utilization cuda.CUDAGraph cuda.graph cuda.CharTensor cuda.ShortTensor (raises)
tl.cuda.NAME()
# ---- cuda.device
with tl.cuda.device(None):              # no GPU is chosen
    x = tl.ones(2)
x.device
# ---- cuda.stream cuda.StreamContext
with tl.cuda.NAME(None):                # no stream is chosen
    x = tl.ones(2)
# ---- cuda.is_available
device = "cuda" if tl.cuda.is_available() else "cpu"
tl.ones(2).to(device)
# ---- cuda.device_count cuda.get_arch_list cuda.is_bf16_supported cuda.is_initialized
# ---- cuda.memory_allocated cuda.memory_reserved cuda.max_memory_allocated
# ---- cuda.max_memory_reserved cuda.memory_stats cuda.get_rng_state_all
# ---- cuda.get_sync_debug_mode cuda.is_current_stream_capturing
tl.cuda.NAME()
# ---- cuda.empty_cache cuda.reset_peak_memory_stats cuda.seed cuda.seed_all
# ---- cuda.reset_max_memory_allocated cuda.reset_max_memory_cached
tl.cuda.NAME()                          # nothing is done, and nothing is given
# ---- cuda.manual_seed cuda.manual_seed_all
tl.cuda.NAME(7)                         # for the CPU there is tl.manual_seed(7)
# ---- cuda.set_sync_debug_mode
tl.cuda.set_sync_debug_mode("warn")     # nothing waits for a GPU
# ---- cuda.set_rng_state_all
tl.cuda.set_rng_state_all(tl.cuda.get_rng_state_all())
# ---- jit.annotate
tl.jit.annotate(list[int], [])
# ---- jit.Attribute
tl.jit.Attribute(0.5, float)
# ---- jit.export jit.script_if_tracing jit.unused jit.script_method jit.ignore
@tl.jit.NAME
def double(x):
    return 2 * x
double(tl.ones(2))
# ---- jit.script
@tl.jit.script
def positive(x):
    return x if x.sum() > 0 else -x
positive(tl.tensor([-1.0, -2.0]))       # runs eagerly: the branch depends on the elements
# ---- jit.trace
model = nn.Linear(2, 1)
tl.jit.trace(model, tl.ones(1, 2)) is model
# ---- jit.trace_module
model = nn.Linear(2, 1)
tl.jit.trace_module(model, {"forward": tl.ones(1, 2)}) is model
# ---- jit.freeze jit.optimize_for_inference
model = nn.Linear(2, 1).eval()
tl.jit.NAME(model) is model
# ---- fx.Graph fx.Node
graph = tl.fx.Graph()
x = graph.placeholder("x")
y = graph.call_function(tl.relu, (x,))
x.users, graph.output(y).args
# ---- fx.Proxy
graph = tl.fx.Graph()
x = tl.fx.Proxy(graph.placeholder("x"))
(tl.relu(x) * 2).node.args
# ---- fx.symbolic_trace fx.Interpreter
traced = tl.fx.symbolic_trace(nn.Sequential(nn.ReLU(), nn.Softplus()))
[node.op for node in traced.graph.nodes]
tl.fx.Interpreter(traced).run(tl.tensor([0.0]))
# ---- fx.Tracer fx.Transformer
tl.fx.Tracer().trace(lambda x: x + 1).output_node()
tl.fx.Transformer(tl.fx.symbolic_trace(lambda x: x + 1)).transform()(2)
# ---- fx.replace_pattern
traced = tl.fx.symbolic_trace(lambda x: tl.relu(x) + 1)
len(tl.fx.replace_pattern(traced, lambda x: tl.relu(x), lambda x: tl.tanh(x)))
traced(tl.tensor(-1.0))
# ---- fx.map_arg
graph = tl.fx.Graph()
tl.fx.map_arg([graph.placeholder("x"), 2], lambda node: node.name)
# ---- fx.has_side_effect
tl.fx.has_side_effect(tl.relu_) is tl.relu_
# ---- fx.wrap
tl.fx.wrap(tl.relu) is tl.relu
# ---- jit.is_scripting jit.is_tracing
tl.jit.NAME()
# ---- jit.load (raises)
tl.jit.load("model.pt")
# ---- jit.save (raises)
tl.jit.save(nn.Linear(2, 1), "model.pt")
# ---- jit.ScriptFunction
isinstance(tl.jit.script(lambda x: x), tl.jit.ScriptFunction)
# ---- jit.ScriptModule
class Doubled(tl.jit.ScriptModule):
    def forward(self, x):
        return 2 * x
Doubled()(tl.ones(2))
# ---- library.custom_op library.CustomOpDef
@tl.library.custom_op("example::cube", mutates_args=())
def cube(x: tl.Tensor) -> tl.Tensor:
    return tl.from_numpy(x.numpy() ** 3)
cube
cube(tl.tensor([2.0])), tl.ops.example.cube(tl.tensor([3.0]))
# ---- library.triton_op library.wrap_triton
square = tl.library.triton_op("example::square", lambda x: x * x, mutates_args=())
square(tl.tensor([3.0]))
try:
    tl.library.wrap_triton(square)
except NotImplementedError as error:
    print(error)
# ---- library.register_autograd
cube = tl.library.custom_op("example::cubed", lambda x: x ** 3, mutates_args=())
def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)
tl.library.register_autograd(
    "example::cubed", lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2, setup_context=keep)
x = tl.tensor([2.0], requires_grad=True)
cube(x).backward()
x.grad
# ---- library.register_fake
twice = tl.library.custom_op("example::twice", lambda x: 2 * x, mutates_args=())
_ = tl.library.register_fake("example::twice", tl.empty_like)
twice(tl.ones(2, 3, device="meta")).shape
# ---- library.register_kernel
half = tl.library.custom_op("example::half", lambda x: x / 2, mutates_args=(), device_types="cuda")
_ = tl.library.register_kernel("example::half", "cpu", lambda x: x / 2)
half(tl.ones(2))
# ---- library.register_vmap
sums = tl.library.custom_op("example::sums", lambda x: x.sum(-1), mutates_args=())
def rule(info, in_dims, x):
    return sums(x.movedim(in_dims[0], 0)), 0
_ = tl.library.register_vmap("example::sums", rule)
tl.vmap(sums)(tl.ones(3, 2))
# ---- library.opcheck
twice = tl.library.custom_op("example::doubled", lambda x: 2 * x, mutates_args=())
_ = tl.library.register_fake(twice, tl.empty_like)
tl.library.opcheck(twice, (tl.ones(2),))
# ---- cpu.is_available cpu.is_initialized cpu.device_count cpu.current_device cpu.set_device
tl.cpu.is_available(), tl.cpu.is_initialized()
tl.cpu.set_device("cpu")
tl.cpu.device_count(), tl.cpu.current_device()
# ---- cpu.synchronize
y = tl.ones(2) + 1
tl.cpu.synchronize()
# ---- cpu.Event
event = tl.cpu.Event()
event.record()
event.query()
# ---- cpu.Stream cpu.StreamContext cpu.stream cpu.current_stream
stream = tl.cpu.Stream()
with tl.cpu.stream(stream):
    tl.cpu.current_stream() is stream
# ---- get_device_module
tl.get_device_module("cpu").is_available(), tl.get_device_module("cuda").is_available()
# ---- sym_float sym_int sym_min
tl.sym_float(3), tl.sym_int(3.7)
tl.sym_min(3, 2.5)
# ---- sym_not sym_ite
tl.sym_not(False), tl.sym_ite(True, "yes", "no")
# ---- sym_sqrt sym_sum
tl.sym_sqrt(16), tl.sym_sum([1, 2, 3])
