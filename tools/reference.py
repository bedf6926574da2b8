"""What the reference has beside the operations: public modules, settings, variables."""

import enum
import importlib
import types
from pathlib import Path

import tensorlib
from tools.signatures import plain, summary

ROOT = Path(tensorlib.__file__).parents[1]

# The public modules, in the order of the page: (module, title, what the section says first).
MODULES = [
    ("tensorlib.autograd", "Gradients: tensorlib.autograd",
     "These functions and `Tensor.backward()` run the backward sweep; `no_grad` and the other "
     "modes are under `tensorlib`, too."),
    ("tensorlib.autograd.function", "The context of a Function: tensorlib.autograd.function", ""),
    ("tensorlib.autograd.graph", "Nodes and saved values: tensorlib.autograd.graph", ""),
    ("tensorlib.autograd.functional", "PyTorch's older transforms: tensorlib.autograd.functional",
     "New code should use `tensorlib.func`."),
    ("tensorlib.autograd.forward_ad", "Dual tensors: tensorlib.autograd.forward_ad", ""),
    ("tensorlib.func", "Function transforms: tensorlib.func",
     "[conventions.md](conventions.md#transforms) says how they compose; `vmap` is under "
     "`tensorlib`, too."),
    ("tensorlib.ops", "Operations of your own: tensorlib.ops",
     "[recipes.md](recipes.md#an-operation-around-a-library-call) has an example."),
    ("tensorlib.graph", "Pictures and statistics of graphs: tensorlib.graph", ""),
    ("tensorlib.linalg", "Linear algebra: tensorlib.linalg", ""),
    ("tensorlib.array_api", "The array API standard: tensorlib.array_api",
     "[array_api.md](array_api.md) introduces it."),
    ("tensorlib.fft", "Fourier transforms: tensorlib.fft", "[fft.md](fft.md) introduces them."),
    ("tensorlib.special", "Special functions: tensorlib.special", ""),
    ("tensorlib.distributions", "Distributions: tensorlib.distributions", ""),
    ("tensorlib.nn", "Modules: tensorlib.nn", "[modules.md](modules.md) introduces them."),
    ("tensorlib.nn.functional", "Functions of networks: tensorlib.nn.functional", ""),
    ("tensorlib.nn.init", "Initialisation of parameters: tensorlib.nn.init", ""),
    ("tensorlib.optim", "Optimisers: tensorlib.optim",
     "[optimisers.md](optimisers.md) introduces them."),
    ("tensorlib.optim.lr_scheduler", "Learning-rate schedules: tensorlib.optim.lr_scheduler", ""),
    ("tensorlib.optim.swa_utils", "Averages of models: tensorlib.optim.swa_utils", ""),
    ("tensorlib.optim.scipy", "SciPy's minimisers: tensorlib.optim.scipy",
     "[libraries.md](libraries.md#scipys-minimisers) introduces them."),
    ("tensorlib.program", "Programs: tensorlib.program",
     "[programs.md](programs.md) introduces them, [compile.md](compile.md) `tensorlib.compile`."),
    ("tensorlib.utils.data", "Datasets and loaders: tensorlib.utils.data",
     "[data.md](data.md) introduces them. `tensorlib.data` has the same names."),
    ("tensorlib.utils.data.datasets", "Datasets in files: tensorlib.utils.data.datasets",
     "[images.md](images.md) introduces them, and the two sections that follow."),
    ("tensorlib.utils.data.transforms", "Image transforms: tensorlib.utils.data.transforms", ""),
    ("tensorlib.utils.data.transforms.functional",
     "Image transforms as functions: tensorlib.utils.data.transforms.functional", ""),
    ("tensorlib.nn.zoo", "Well-known models: tensorlib.nn.zoo", ""),
    ("tensorlib.serialization", "Files: tensorlib.serialization",
     "[saving.md](saving.md) introduces `save` and `load`, which are under `tensorlib` too."),
    ("tensorlib.profiler", "Profiling: tensorlib.profiler",
     "[profiling.md](profiling.md) introduces it, and `summary`, which is under `tensorlib`."),
    ("tensorlib.utils.benchmark", "Timers: tensorlib.utils.benchmark", ""),
    ("tensorlib.utils.tensorboard", "Logs: tensorlib.utils.tensorboard",
     "[logging.md](logging.md) introduces them."),
    ("tensorlib.amp", "Mixed precision: tensorlib.amp", ""),
    ("tensorlib.cpu", "The device that there is: tensorlib.cpu", ""),
    ("tensorlib.cuda", "Devices that are not supported: tensorlib.cuda",
     "`tensorlib.accelerator`, `mps`, `xpu` and `backends` are similar."),
    ("tensorlib.jit", "TorchScript, which is not supported: tensorlib.jit",
     "[compile.md](compile.md) introduces `tensorlib.compile`."),
    ("tensorlib.fx", "Graphs of Python's calls: tensorlib.fx",
     "[programs.md](programs.md) introduces `tensorlib.program`, which knows shapes and dtypes."),
    ("tensorlib.library", "Operations of your own, under PyTorch's names: tensorlib.library", ""),
    ("tensorlib.testing", "For your tests: tensorlib.testing",
     "The strategies are for hypothesis, which has to be installed."),
    ("tensorlib.memory", "Memory: tensorlib.memory", ""),
    ("tensorlib.utils.checkpoint", "Checkpoints: tensorlib.utils.checkpoint", ""),
]

# The names of the package itself that are not operations, by what they are about.
SETTINGS = [
    ("Tensors and their types",
     ["Tensor", "UntypedStorage", "StorageBase", "from_file", "Size", "dtype", "device",
      "layout", "memory_format", "finfo", "iinfo", "can_cast", "promote_types",
      "get_default_dtype"]),
    ("Types without instances",
     ["Event", "Future", "PyTorchFileReader", "ScriptModule", "Stream", "SymBool", "SymFloat",
      "SymInt"]),
    ("Older tensor types",
     ["FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor", "CharTensor",
      "ShortTensor", "IntTensor", "LongTensor", "BoolTensor", "set_default_tensor_type"]),
    ("Settings that change nothing",
     ["use_deterministic_algorithms", "are_deterministic_algorithms_enabled",
      "is_deterministic_algorithms_warn_only_enabled", "set_deterministic_debug_mode",
      "get_deterministic_debug_mode", "set_float32_matmul_precision",
      "get_float32_matmul_precision", "set_default_device", "get_default_device",
      "set_flush_denormal", "set_warn_always", "is_warn_always_enabled", "autocast",
      "is_autocast_enabled", "get_autocast_dtype", "is_autocast_cpu_enabled",
      "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "is_autocast_cache_enabled",
      "clear_autocast_cache"]),
    ("Functions of numbers that PyTorch may have as symbols",
     ["sym_float", "sym_int", "sym_max", "sym_min", "sym_not", "sym_ite", "sym_sqrt", "sym_sum"]),
    ("Models", ["summary"]),
    ("Sparse tensors", ["sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor",
                        "sparse_bsr_tensor", "sparse_bsc_tensor", "sparse_compressed_tensor",
                        "spmm", "dsmm", "hsmm"]),
    ("Control flow and captured functions",
     ["cond", "while_loop", "scan", "case", "switch_case", "compile"]),
    ("Random numbers", ["Generator"]),
    ("Saving and loading", ["save", "load"]),
    ("Printing", ["set_printoptions", "get_printoptions", "printoptions"]),
    ("Threads, devices and this installation",
     ["get_num_threads", "set_num_threads", "get_num_interop_threads", "set_num_interop_threads",
      "get_device_module", "show_config"]),
    ("Recording", ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode",
                   "is_grad_enabled", "is_inference_mode_enabled"]),
    ("Errors",
     ["OutOfMemoryError", "OutOfRangeError", "IndexOutOfRange", "IntegerDivisionByZero",
      "UnfitPower", "UnsupportedDtype", "WrongArgument", "WrongGradient", "DataDependent",
      "NoSuchDevice"]),
]
VARIABLES = """\
## Environment variables

They are read when tensorlib is imported.

| variable | what it does |
| --- | --- |
| `TENSORLIB_NUM_THREADS=1` | The initial number of threads; see `set_num_threads`. |
| `TENSORLIB_TRACEBACK=full` | Tracebacks show all frames of the library, not only the last one. |
| `TENSORLIB_ISA=v2` (or `v3`, `v4`) | Runs the kernels of this instruction set, not the best one. |
"""


def row(*cells):
    return f"| {' | '.join(cells)} |"


def escaped(text):
    return text.replace("|", "\\|")


def source_of(value):
    """The path, from docs/, of the source file that defines a value."""
    home = importlib.import_module(value.__module__)
    path = Path(home.__file__)
    if path.suffix == ".so":
        path = path.with_name(path.name.partition(".")[0] + ".pyx")
    return "../" + str(path.relative_to(ROOT))


def linked(name, value, signature):
    """A name that leads to its source, with its parameters."""
    return f"[`{name}`]({source_of(value)})" + (f"`({signature})`" if signature is not None else "")


def parameters_of(name, value):
    """The parameters of a function or class as text; None for a class that is not called."""
    if isinstance(value, enum.EnumMeta):
        return None
    try:
        return ", ".join(plain(name, value))
    except ValueError:
        return None


def rows(owner, names, path="tensorlib"):
    """The rows of public names of a module, which users import by that path."""
    yield row(f"`{path}.`", "what it is or returns")
    yield row("---", "---")
    for name in sorted(names, key=str.lower):
        value = getattr(owner, name)
        if isinstance(value, types.FunctionType):      # it may stand for another
            value = getattr(importlib.import_module(value.__module__), name, value)
        if callable(value) and value.__module__.startswith("tensorlib"):     # not typing.Final
            yield row(linked(name, value, parameters_of(name, value)), escaped(summary(value)))


def sections():
    """The texts of all sections, each with its heading, and the names of the modules they are of.
    """
    for path, title, text in MODULES:
        module = importlib.import_module(path)
        names = [name for name in module.__all__
                 if not isinstance(getattr(module, name), types.ModuleType)]
        says = [text, ""] if text else []
        yield path, "\n".join([f"## {title}", "", *says, *rows(module, names, path), ""])
    for title, names in SETTINGS:
        yield "tensorlib", "\n".join([f"## {title}", "", *rows(tensorlib, names), ""])
    yield "tensorlib", VARIABLES
