"""The house: imports run downwards only, and importing tensorlib stays light."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest
from cases import each
from process import run_python

import tensorlib

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tensorlib"

# A floor may import itself and the floors before it. "public" is the package's own __init__: what
# it names is there for the floors above it, which use public names only.
FLOORS = [
    "_kernels", "_core", "ops", "linalg", "autograd", "func", "utils", "io", "graph",
    "program", "onnx", "profiler", "public", "special", "fft", "sparse", "distributions",
    "distributed", "nn", "optim", "utils.data", "io.files", "datasets", "sharding", "shell",
    "testing",
]
# Modules that lie where PyTorch has them, or in the shell, and are floors of their own.
ELSEWHERE = {"tensorlib.utils.data.datasets": "datasets",         # which reads files as data
             "tensorlib.utils.data": "utils.data", "tensorlib.io.files": "io.files",
             "tensorlib.special": "special", "tensorlib.fft": "fft",
             "tensorlib.utils.tensorboard": "utils.data",
             "tensorlib.utils._python_dispatch": "shell", "tensorlib.program.fx": "shell",
             # what shards models and optimisers, above the floors of these
             **{f"tensorlib.distributed.{name}": "sharding" for name in (
                 "algorithms", "checkpoint", "fsdp", "optim")}}
# What the modules of the shell are called: `tensorlib.cuda` is `tensorlib/shell/cuda`.
SHELL = {path.stem for path in (PACKAGE / "shell").iterdir() if path.name[:2] != "__"}
# The rooms of the large floors, in the same way; of `program` its own modules, too.
ROOMS = {
    "_kernels": ["vecmath", "types", "layout", "rows", "products", "fourier", "order", "random",
                 "elementwise", "layers"],
    "_core": ["base", "tensor", "tiles", "graph", "interpreters", "arrays", "reduce", "layout",
              "index", "products", "layers", "convolutions", "apply", "create", "sweep"],
    "program": ["ir", "guards", "building", "passes", "run", "verify", "program",
                "differentiation", "reads", "capture", "compiled", "control", "inputs",
                "optimizing", "parsing", "fx"],
}
HEAVY = ["hypothesis", "matplotlib", "mpi4py", "onnx", "torch", "scipy", "pytest", "tqdm",
         "numpy.testing"]

# Cython cannot be parsed by ast: one import statement on a line, possibly indented.
CYTHON_IMPORT = re.compile(
    r"^(?P<indent>[ \t]*)(?:from\s+(?P<source>[\w.]+)\s+c?import\s+(?P<names>\([^)]*\)|[\w, *]+)"
    r"|c?import\s+(?P<modules>[\w., ]+))",
    re.MULTILINE,
)
TRIPLE_QUOTED = re.compile(r'"""[\s\S]*?"""')


# What people write and read; stubs (*.pyi) are made by a program.
WRITTEN = sorted(
    path for suffix in ("*.py", "*.pyx", "*.pxd", "*.pxi", "*.h")
    for folder in ("tensorlib", "tests", "tools", "benchmarks", "examples")
    for path in (ROOT / folder).rglob(suffix))


def sources():
    return sorted(
        path for suffix in ("*.py", "*.pyx", "*.pxd") for path in PACKAGE.rglob(suffix)
    )


def floor_of(module):
    """The floor of a dotted module name, or None where it is not tensorlib's."""
    parts = module.split(".")
    if parts[0] != "tensorlib":
        return None
    for package, floor in ELSEWHERE.items():
        if f"{module}.".startswith(f"{package}."):
            return floor
    if parts[1:] and parts[1] in SHELL:
        return "shell"
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else "public"


def room_of(module):
    """The room of a module of a large floor, or None for what is not in one."""
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[1] in ROOMS else None


@cache
def imported_modules(path, text, module):
    """Pairs of (module imported, whether inside a function)."""
    return list((python_imports if path.suffix == ".py" else cython_imports)(text, module))


def cython_imports(text, module):
    for match in CYTHON_IMPORT.finditer(TRIPLE_QUOTED.sub("", text)):
        inside = bool(match["indent"])
        if match["modules"]:
            for name in match["modules"].split(","):
                yield name.split()[0], inside
        else:
            yield from from_import(resolved(match["source"], module), named(match["names"]), inside)


def python_imports(text, module):
    left = [(ast.parse(text), False)]
    while left:
        node, inside = left.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, inside
        elif isinstance(node, ast.ImportFrom):
            source = resolved("." * node.level + (node.module or ""), module)
            yield from from_import(source, [alias.name for alias in node.names], inside)
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        left += [(child, inside) for child in ast.iter_child_nodes(node)
                 if not isinstance(child, ast.expr)]


def from_import(source, names, inside):
    """`from tensorlib import ops` imports tensorlib.ops, not the public names."""
    if source != "tensorlib":
        yield source, inside
        return
    for name in names:
        yield (f"tensorlib.{name}" if name in {*FLOORS, *SHELL} else "tensorlib"), inside


def named(text):
    return [name.split()[0] for name in text.strip("()\n ").split(",") if name.strip()]


def resolved(source, module):
    """An absolute module name for a relative one, seen from a package or module."""
    dots = len(source) - len(source.lstrip("."))
    if not dots:
        return source
    return ".".join([*module.split(".")[:-dots], source[dots:]]).rstrip(".")


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts)


def faults(path, text):
    """What is wrong with the imports of one file."""
    module = module_name(path)
    own = floor_of(module.removesuffix(".__init__"))
    for imported, inside in imported_modules(path, text, module):
        floor = floor_of(imported)
        if inside:
            yield f"{module} imports {imported} inside a function"
        if floor is not None and FLOORS.index(floor) > FLOORS.index(own):
            # The package's __init__ gathers the names of the floors that users import.
            if not (module == "tensorlib.__init__" and floor != "testing"):
                yield f"{module} ({own}) imports {imported} ({floor}), which is above it"
        room, own_room = room_of(imported), room_of(module.removesuffix(".__init__"))
        rooms = ROOMS.get(own, []) if floor == own else []
        if room in rooms and own_room in rooms and rooms.index(room) > rooms.index(own_room):
            yield f"{module} ({own_room}) imports {imported} ({room}), which is above it"


def test_imports_run_downwards():
    assert sources()
    found = [fault for path in sources() for fault in faults(path, path.read_text())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "file, text, fault",
    [
        ("_core/tensor/tensor.pyx", "from tensorlib.ops import add\n", "above"),
        ("_core/tensor/tensor.pyx", "cimport tensorlib.ops.table\n", "above"),
        ("_core/tensor/tensor.pyx", "from ...ops.table cimport add\n", "above"),
        ("_core/tensor/tensor.pyx", "from tensorlib import (\n    ops,\n)\n", "above"),
        ("_kernels/exp.pyx", "from tensorlib._core.base.dtypes cimport FLOAT32\n", "above"),
        ("_core/base/shape.pyx", "from tensorlib._core.tensor.tensor cimport Tensor\n", "above"),
        ("_core/tiles/copies.pxd", "from tensorlib._core.graph.op import Op\n", "above"),
        ("_core/tiles/copies.pyx", "from tensorlib._core.reduce import masks\n", "above"),
        ("ops/unary.py", "import tensorlib\n", "above"),
        ("ops/unary.py", "from tensorlib import autograd\n", "above"),
        ("autograd/modes.py", "from tensorlib.testing import gradcheck\n", "above"),
        ("nn/linear.py", "def f():\n    import math\n", "inside"),
        ("ops/unary.pyx", "def f():\n    from math import sin\n", "inside"),
        ("__init__.py", "from tensorlib.testing import gradcheck\n", "above"),
    ],
)
def test_an_upward_import_is_noticed(file, text, fault):
    (found,) = faults(PACKAGE / file, text)
    assert fault in found


@pytest.mark.parametrize(
    "file, text",
    [
        ("ops/unary.py", "import numpy as np\nfrom tensorlib._core import Tensor\n"),
        ("ops/unary.pyx", "cimport cython\nfrom tensorlib._core.tensor.tensor cimport Tensor\n"),
        ("_core/graph.pyx", '"""Prose:\nimport tensorlib.ops\n"""\nimport numpy\n'),
        ("ops/unary.py", "from . import registry\nfrom .registry import Op\n"),
        ("nn/linear.py", "import tensorlib as tl\n"),
        ("__init__.py", "from tensorlib.ops import add\nfrom tensorlib import nn, optim\n"),
    ],
)
def test_a_downward_import_is_fine(file, text):
    assert not list(faults(PACKAGE / file, text))


def folders(place):
    return {path.name for path in place.iterdir() if path.is_dir() and any(path.glob("*.py"))}


def test_every_floor_and_room_is_known():
    assert folders(PACKAGE) <= set(FLOORS)


def test_the_root_shows_the_parts_of_the_library_and_nothing_else():
    built = ("__pycache__", "*.so", "*.pyd")
    shown = {path.name for path in PACKAGE.iterdir()
             if not any(path.match(pattern) for pattern in built)}
    assert len(shown) <= 22, sorted(shown)
    assert folders(PACKAGE / "_core") == set(ROOMS["_core"])
    modules = {path.stem for path in (PACKAGE / "program").glob("[!_]*.py")}
    assert folders(PACKAGE / "program") | modules == set(ROOMS["program"])


@each("floor, outside", [("_core", set()), ("_kernels", {"compiled.pyx", "cpu.pyx"})])
def test_every_compiled_module_is_in_a_room(floor, outside):
    assert {path.name for path in (PACKAGE / floor).iterdir()
            if path.suffix in (".py", ".pyx", ".pxd", ".pxi", ".h")} == {"__init__.py", *outside}


def test_no_modules_import_each_other_in_a_circle():
    """A .pyx and its .pxd are one module; packages, which gather names, are left out."""
    imports = {}
    for path in sources():
        module = module_name(path)
        if path.name != "__init__.py":
            found = imports.setdefault(module, set())
            found.update(name for name, _ in imported_modules(path, path.read_text(), module))
    known = {module: found & set(imports) - {module} for module, found in imports.items()}
    while free := {module for module, found in known.items() if not found}:
        known = {module: found - free for module, found in known.items() if module not in free}
    assert not known


@each("room", [
    *(f"{floor}/{room}" for floor, rooms in ROOMS.items() for room in rooms
      if (PACKAGE / floor / room).is_dir()),
    *(f"ops/{path.parent.name}" for path in sorted(PACKAGE.glob("ops/*/__init__.py")))])
def test_every_room_has_its_sentence(room):
    """In its own docstring, and the same in the page on how the library is built."""
    docstring = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
    sentence = " ".join(docstring.split("\n\n")[0].split())
    assert sentence.endswith(".")
    if (ROOT / "docs").is_dir():
        assert sentence in " ".join((ROOT / "docs" / "design.md").read_text().split())


def test_files_and_lines_stay_short():
    assert len(WRITTEN) > 100
    texts = {path: path.read_text().splitlines() for path in WRITTEN}
    long = [f"{path}: {len(lines)} lines" for path, lines in texts.items() if len(lines) >= 500]
    long += [f"{path}:{number}: {len(line)} columns" for path, lines in texts.items()
             for number, line in enumerate(lines, 1) if len(line) > 100]
    assert not long, "\n".join(long)


# Who may use `sys.modules`, how often, and what for: no floor looks in it for one above.
READS_MODULES = {
    "_core/base/importing.py": (3, "the module that asks for it, and its other names"),
    "io/operands.py": (1, "the module of a function of another library"),
    "ops/lazy.py": (1, "the package that asks for it"),
    "program/reads/known.py": (1, "the module that defines a class"),
    "program/reads/observer.py": (3, "what an import of the user's finds"),
    "shell/as_torch.py": (2, "modules that are called as functions of their packages"),
    "utils/data/pool.py": (1, "the module of an error in a worker"),
}


def test_nobody_reaches_upwards_by_the_table_of_modules():
    found = {str(path.relative_to(PACKAGE)): text.count("sys.modules")
             for path in sources() if "sys.modules" in (text := path.read_text())}
    assert found == {path: count for path, (count, _) in READS_MODULES.items()}


# Who asks whether memory is there, or whether something stands in for plain tensors: outside of the
# interpreters, which are there for that.
ASKS = re.compile(
    r"\b(is_meta|in_region|computes_nothing|without_memory|is_meta_device|made_on_meta|new_on_meta|"
    r"device_beside|refuse_meta|refuse_reading|meta_arguments|meta_call|on_meta|is_proxy|"
    r"call_proxy|proxied|refuse_batch|in_batch|refuse_shared_write|attached)\b")
IMPORTS = re.compile(r"^[ \t]*from\s+[\w.]+\s+c?import\s+(\([^)]*\)|[^\n]*)", re.MULTILINE)


def asking(path):
    """The lines of a module that ask."""
    text = IMPORTS.sub("", TRIPLE_QUOTED.sub("", path.read_text()))
    code = [line.split("#")[0] for line in text.splitlines()]
    return [line for line in code if ASKS.search(line) and not re.match(r"\s*(cp?def|def)\b", line)]


def test_loops_do_not_ask_whether_memory_is_there():
    """They are handed to base/work.pxd, which asks for all. Beside it new tensors ask, which are
    where the one that they are like is; and the executor of element-wise work, that a copy from
    `meta` to memory is refused."""
    asking_loops = {str(path.relative_to(PACKAGE)) for path in sources()
                    if re.search(r"\b(in_region|region_size)\b", path.read_text())
                    and "interpreters" not in path.parts}
    assert asking_loops == {f"_core/{name}" for name in (
        "base/region.pxd", "base/region.pyx", "base/work.pxd", "tensor/meta.pxd",
        "tensor/tensor.pyx", "tiles/run.pyx")}


# Interpreters that need more than the core: what each is for.
INTERPRETERS = {
    "program/building/builder.py": "calls on variables, added to a block",
    "program/run/plan.py": "parts of a program, opened to see what they are made of",
    "program/capture/recorder.py": "calls of a function that is captured",
    "shell/array_api/operators.py": "operators as the array API standard has them",
    "shell/amp/autocast_mode.py": "casts to the dtype that an operation is computed in",
    "shell/overrides.py": "PyTorch's modes of `__torch_function__`",
    "utils/_python_dispatch.py": "PyTorch's modes of `__torch_dispatch__`",
    "utils/flop_counter.py": "a count of operations",
}


def test_interpreters_are_in_one_folder_unless_they_need_a_higher_floor():
    derived = re.compile(r"^class \w+\((?:Interpreter|Capture|Noter)\)", re.MULTILINE)
    found = {path.relative_to(PACKAGE) for path in sources() if derived.search(path.read_text())
             and "fx" not in path.parts}      # that one's Interpreter is PyTorch's, of graphs
    assert {str(path) for path in found if "interpreters" not in path.parts} == set(INTERPRETERS)
    assert Path("_core/interpreters/capture.py") in found


# Where tensors without memory are told from others, allocated, and left out by loops.
MEMORY = {"_core/base/device.py", "_core/base/pool.pyx", "_core/base/region.pxd",
          "_core/base/region.pyx", "_core/base/storage.pyx", "_core/base/work.pxd",
          "_core/tensor/meta.pxd", "_core/tensor/meta.pyx", "_core/tensor/tensor.pyx",
          "_core/tiles/run.pyx"}
# The proxies of tensors: examples of a batch, and variables of a program.
PROXIES = {"autograd/batch/values.py", "program/building/variable_methods.py"}
# Who else asks, how often, and what for.
ASKING = {
    "_core/apply/elementwise.pyx": (1, "integers to refuse, which no loop looks for"),
    "_core/apply/getitem.pyx": (1, "a part of a key, which is found where the key is parsed"),
    "_core/apply/operators.pyx": (1, "an argument that may also be a number or an array"),
    "_core/apply/optimizer_step.pyx": (1, "a step keeps the addresses of elements"),
    "_core/arrays/as_numbers.pyx": (1, "new tensors of others are made by operations"),
    "_core/arrays/operands.pyx": (1, "an argument that is not a tensor"),
    "_core/arrays/printing.py": (1, "text that has no elements to show"),
    "_core/create/generator.pyx": (1, "a draw without memory takes no numbers"),
    "_core/index/keys.pyx": (1, "positions that differ, written to a shared tensor"),
    "_core/tensor/properties.pyx": (1, "the attribute itself"),
    "linalg/checks.py": (1, "decides by the elements of all examples"),
    "linalg/determinants.py": (1, "moves what is singular among all examples"),
    "nn/functional/norms.py": (1, "an error that tells of running statistics"),
    "ops/create/random.py": (1, "parameters of a draw for all examples"),
    "ops/index/indexing.py": (2, "positions that are not an attribute, but differ"),
    "ops/value_checks.py": (1, "checks the elements of all examples"),
    "program/run/executor.pyx": (1, "the results of a rehearsal have no memory"),
    "program/guards/signatures.pyx": (1, "a replay that is given others than it rehearsed"),
    "shell/library.py": (1, "an operation from outside, which has a function for each device"),
}


def test_few_ask_what_interpreters_know():
    found = {str(path.relative_to(PACKAGE)): len(asking(path)) for path in sources()
             if "interpreters" not in path.parts}
    left = {path: n for path, n in found.items() if n and path not in MEMORY | PROXIES}
    assert left == {path: count for path, (count, _) in ASKING.items()}
    assert sum(left.values()) <= 20


# What makes the functions of operations: each parses the arguments of one kind of call.
PARSERS = {
    "make_elementwise": "tensors and numbers: plain, in place, into `out`, with an option",
    "make_product": "two tensors, the second under PyTorch's name",
    "make_reduction": "a tensor, dims and a dtype, also under NumPy's names",
    "make_sized": "a tensor and sizes, one by one or together",
    "make_general": "tensors, then attributes",
    "make_checked": "a function in Python",
    "make_converted": "more than the operation takes, as its `convert` says",
}
# Where calls that something looks at go on to the interpreters.
DOORS = {
    "_core/apply/elementwise.pyx": 1, "_core/apply/inplace.pyx": 1, "_core/apply/getitem.pyx": 2,
    "_core/apply/operators.pyx": 3, "_core/apply/converted.pyx": 1, "_core/products/product.pyx": 1,
    "_core/sweep/sweep.pyx": 1,
}


def test_functions_of_operations_are_made_by_few_parsers():
    """The number may only fall."""
    texts = [path.read_text() for path in (PACKAGE / "_core" / "apply").glob("*.pyx")]
    assert {name for text in texts for name in re.findall(r"^def (make_\w+)", text, re.M)} == set(
        PARSERS)
    found = {str(path.relative_to(PACKAGE)): len(re.findall(r"\binterpreted\(", path.read_text()))
             for path in PACKAGE.rglob("*.pyx") if "interpreters" not in path.parts}
    assert {path: count for path, count in found.items() if count} == DOORS


def modules_after(statement):
    return set(run_python(f"{statement}\nimport sys\nprint(*sorted(sys.modules))").split())


def test_importing_tensorlib_is_light():
    loaded = modules_after("import tensorlib")
    assert "tensorlib" in loaded
    assert not loaded & set(HEAVY)
    assert not any(name.startswith("tensorlib.testing") for name in loaded)


def test_importing_testing_leaves_hypothesis_for_later():
    loaded = modules_after("import tensorlib.testing")
    assert "tensorlib.testing.closeness" in loaded and "hypothesis" not in loaded
    assert "hypothesis" in modules_after("from tensorlib.testing import tensors")


def test_testing_is_there_without_an_import_of_its_own():
    """It is imported when it is first used; what was kept before goes on to work."""
    run_python("""
import sys
import tensorlib as tl
from tensorlib import testing
assert not any(name.startswith("tensorlib.testing") for name in sys.modules)
tl.testing.assert_close(tl.ones(2), tl.ones(2))
import tensorlib.testing as imported
assert imported is tl.testing and testing.gradcheck is imported.gradcheck
assert dir(testing) == dir(imported) and testing.__doc__ == imported.__doc__
assert "__getattr__" not in vars(tl)        # it would make each tl.zeros slower
try:
    tl.testing.nothing
except AttributeError as error:
    assert "tensorlib.testing" in str(error)
else:
    raise AssertionError
""")


@pytest.mark.parametrize("module", [
    "tensorlib", "tensorlib.autograd", "tensorlib.func", "tensorlib.graph", "tensorlib.memory",
    "tensorlib.ops", "tensorlib.testing", "tensorlib.utils"])
def test_completion_shows_public_names_alone(module):
    found = importlib.import_module(module)
    names = dir(found)
    assert len(names) == len(set(names)) and not [name for name in names if name.startswith("_")]
    assert all(hasattr(found, name) for name in names)
    if module == "tensorlib":
        assert {"Tensor", "zeros", "float32", "func", "testing"} <= set(names)
        assert "io" not in names
    else:
        assert set(names) == set(found.__all__)


def test_a_tensor_shows_public_names_alone():
    names = [name for name in dir(tensorlib.Tensor) if not name.startswith("__")]
    # those of PyTorch's tensors that libraries use, and what repr(), `in` and notebooks call
    assert {name for name in names if name.startswith("_")} <= {
        "_base", "_cdata", "_grad", "_is_view", "_make_subclass", "_version",
        "_text", "_contains", "_repr_html_"}


PUBLIC = [
    module_name(path).removesuffix(".__init__")
    for path in sorted([PACKAGE / "__init__.py", *PACKAGE.glob("*/__init__.py")])
    if path.parent.name not in ("_kernels", "_core", "ops")
] + [f"tensorlib.{name}" for name in sorted(SHELL)]


def test_the_package_shows_only_public_names():
    """Functions, types and marks, and public modules: nothing that only helps inside."""
    names = {name: value for name, value in vars(tensorlib).items() if not name.startswith("_")}
    kinds = (tensorlib.dtype, tensorlib.layout, tensorlib.memory_format, tensorlib.Generator, float)
    stray = [name for name, value in names.items() if not isinstance(value, kinds) and not (
        callable(value) and str(value.__module__).startswith("tensorlib"))]
    stray.remove("newaxis")                    # None, as in NumPy
    others = {name.removeprefix("tensorlib.") for name in tensorlib.shell.Elsewhere.homes}
    assert set(stray) <= set(FLOORS) | SHELL | others
    assert not [name for name in stray if not (names[name].__doc__ or "").strip()]


@each("module", PUBLIC)
def test_public_names_are_documented(module):
    """Functions and classes of tensorlib that users reach by a public module."""
    names = vars(importlib.import_module(module))
    missing = [
        name for name, value in names.items()
        if not name.startswith("_") and callable(value)
        and str(getattr(value, "__module__", "")).startswith("tensorlib")
        and not (value.__doc__ or "").strip()
    ]
    assert not missing, missing
