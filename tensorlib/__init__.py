"""tensorlib: eager tensors with automatic differentiation on the CPU, in the manner of PyTorch.

>>> from tensorlib import Tensor
>>> x = Tensor([1., 2.], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from math import e, inf, nan, pi

from tensorlib._core.base.importing import deferred as _deferred
from tensorlib._core.base.importing import later as _later
from tensorlib._core.base.garbage import without_collections as _without_collections

with _without_collections():
    from tensorlib import shell as _shell    # the home of `tensorlib.cuda` and the like
    __path__ += _shell.FOLDER
    from tensorlib import ops
    from tensorlib import autograd, func, graph, io

from tensorlib import memory
from tensorlib import utils
from tensorlib._core.base import dtypes as _dtypes
from tensorlib._core.base.formats import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    legacy_contiguous_format,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from tensorlib._core.base.device import NoSuchDevice, device
from tensorlib._core.base.dtypes import can_cast, dtype, get_default_dtype, promote_types
from tensorlib._core.base.limits import finfo, iinfo
from tensorlib._core.create.generator import Generator, default_generator
from tensorlib._core.apply.elementwise import IntegerDivisionByZero, UnfitPower, UnsupportedDtype
from tensorlib._core.base.storage import OutOfMemoryError
from tensorlib._core.base.error_names import IndexOutOfRange
from tensorlib._core.sweep.rules import WrongGradient
from tensorlib._core.tensor.numbers import OutOfRangeError
from tensorlib._core.base.pool import get_num_threads, set_num_threads
from tensorlib._core.arrays.printing import get_printoptions, printoptions, set_printoptions
from tensorlib._core.base.shape import Size
from tensorlib._core.tensor.properties import UntypedStorage
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.errors import DataDependent, WrongArgument
from tensorlib._core.base.version import __version__
from tensorlib.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from tensorlib._settings import (
    are_deterministic_algorithms_enabled,
    get_default_device,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    get_num_interop_threads,
    is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled,
    set_default_device,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_num_interop_threads,
    set_warn_always,
    use_deterministic_algorithms,
)
from tensorlib._absent import (
    Event,
    Future,
    PyTorchFileReader,
    ScriptModule,
    Stream,
    SymBool,
    SymFloat,
    SymInt,
)
from tensorlib._absent import load_library as _load_library
from tensorlib._checks import FUNCTIONS as _CHECKS
from tensorlib._foreach import FUNCTIONS as _FOREACH
from tensorlib._symbols import (
    sym_float,
    sym_int,
    sym_ite,
    sym_max,
    sym_min,
    sym_not,
    sym_sqrt,
    sym_sum,
)
from tensorlib._typed import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    set_default_tensor_type,
)
from tensorlib.amp.autocast_mode import (
    autocast,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
)
from tensorlib.amp.grad_scaler import GradScaler
from tensorlib.func import vmap
from tensorlib.func.compiling import compile
from tensorlib.io.files import load, save
from tensorlib.ops.lazy import publish_in as _publish_in
from tensorlib.profiler.summary import summary
from tensorlib.utils.collect_env import show_config

# the element types, under their names and PyTorch's short ones
globals().update(_dtypes.BY_NAME)
globals().update(_dtypes.ABSENT)
globals().update(
    half=_dtypes.BY_NAME["float16"], float=_dtypes.BY_NAME["float32"],
    double=_dtypes.BY_NAME["float64"], short=_dtypes.BY_NAME["int16"],
    int=_dtypes.BY_NAME["int32"], long=_dtypes.BY_NAME["int64"],
    cfloat=_dtypes.BY_NAME["complex64"], cdouble=_dtypes.BY_NAME["complex128"])

newaxis = None          # as in NumPy: `x[:, newaxis]` has a dim of size 1 more

# the functions, each declared in its block under tensorlib/ops
_publish_in(globals())

_C = _later("tensorlib._C")
ops.aten = _later("tensorlib._aten")
ops.load_library = _load_library
__config__ = _later("tensorlib.__config__")
__future__ = _later("tensorlib.__future__")
_dynamo = _later("tensorlib._dynamo")
_functorch = _later("tensorlib._functorch")
_guards = _later("tensorlib._guards")
_ops = _later("tensorlib._ops")
_higher_order_ops = _later("tensorlib._higher_order_ops")
_inductor = _later("tensorlib._inductor")
_subclasses = _later("tensorlib._subclasses")
_jit_internal = _later("tensorlib._jit_internal")
_tensor = _later("tensorlib._tensor")
_utils = _later("tensorlib._utils")
accelerator = _later("tensorlib.accelerator")
amp = _later("tensorlib.amp")
array_api = _later("tensorlib.array_api")
backends = _later("tensorlib.backends")
compiler = _later("tensorlib.compiler")
cpu = _later("tensorlib.cpu")
cuda = _later("tensorlib.cuda")
fft = _later("tensorlib.fft")
hub = _later("tensorlib.hub")
jit = _later("tensorlib.jit")
library = _later("tensorlib.library")
linalg = _later("tensorlib.linalg")
functional = _later("tensorlib.functional")
export = _later("tensorlib.export")
futures = _later("tensorlib.futures")
fx = _later("tensorlib.program.fx")
mps = _later("tensorlib.mps")
multiprocessing = _later("tensorlib.multiprocessing")
nn = _later("tensorlib.nn")
onnx = _later("tensorlib.onnx")
optim = _later("tensorlib.optim")
overrides = _later("tensorlib.overrides")
distributed = _later("tensorlib.distributed")
einops = _later("tensorlib.einops")
distributions = _later("tensorlib.distributions")
program = _later("tensorlib.program")
serialization = _later("tensorlib.serialization")
signal = _later("tensorlib.signal")
quasirandom = _later("tensorlib.quasirandom")
random = _later("tensorlib.random")
sklearn = _later("tensorlib.sklearn")
sparse = _later("tensorlib.sparse")
storage = _later("tensorlib.storage")
special = _later("tensorlib.special")
profiler = _later("tensorlib.profiler")
autograd.profiler = profiler         # its older home in PyTorch
utils.model_zoo = hub                # and that of `load_url`
return_types = _later("tensorlib.return_types")
data = _later("tensorlib.utils.data")
testing = _later("tensorlib.testing")
types = _later("tensorlib.types")
torch_version = _later("tensorlib.torch_version")
version = _later("tensorlib.version")
vision = _later("tensorlib.vision")
xpu = _later("tensorlib.xpu")

# control flow, which is declared in tensorlib.program
for _name, _parameters in (
        ("cond", ("pred", "true_fn", "false_fn", "operands")), ("scan", ("f", "init", "xs")),
        ("while_loop", ("cond_fn", "body_fn", "loop_vars")), ("case", ("pred_fn_pairs", "default")),
        ("switch_case", ("branch_index", "branch_fns", "default"))):
    globals()[_name] = _deferred("tensorlib.program.control", _name, _parameters)

# what libraries around PyTorch call of its own: lists of tensors, conditions and others
StorageBase = UntypedStorage
globals().update(_FOREACH)
globals().update(_CHECKS)
get_device_module = _deferred("tensorlib.accelerator", "get_device_module", ("device",))
from_file = _deferred("tensorlib.storage", "from_file", ("filename", "shared", "size"))
_standard_gamma = _deferred("tensorlib.distributions.gamma_variates", "standard_gamma")
_segment_reduce = _deferred("tensorlib.ops.index.segments", "segment_reduce")

# sparse tensors, which few programs have
for _name in ("sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
              "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor"):
    globals()[_name] = _deferred("tensorlib.sparse", _name)
for _name in ("convert_indices_from_coo_to_csr", "convert_indices_from_csr_to_coo"):
    globals()["_" + _name] = _deferred("tensorlib.sparse.creation", _name)
spmm = dsmm = hsmm = _deferred("tensorlib.sparse", "mm")


def __dir__():
    """The public names, which completion offers."""
    internal = ("batch", "io", "shell")
    return sorted(name for name in globals() if name[0] != "_" and name not in internal)
