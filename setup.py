"""Builds the compiled parts: the kernels once per instruction set, everything else once.

All that is built once is linked into one shared object, `tensorlib/_kernels/compiled`, in
which `compiled.pyx` finds the modules. `_kernels/*/*.pyx` is translated to C once and compiled for
every level in `LEVELS`, into `_kernels/<level>`; the one for this processor is picked at import.
Only `build_ext` translates; C files and objects live in `build/`. A build repeats what has changed,
and all of it where the settings have.

Environment:
    TENSORLIB_DEBUG=1      bounds checks, assertions and sanitizers (see CONTRIBUTING.md)
    TENSORLIB_SYMBOLS=1    keeps the symbols, for profilers
    TENSORLIB_LEVELS=v3    these levels of kernels: a list (v3,v4); `all`, for a wheel that is to
                           run anywhere; or `native`, the highest level of this processor, for all
                           instructions that it has. By default that level alone
    TENSORLIB_QUICK=v3     little optimization, and this level of kernels alone
    TENSORLIB_COVERAGE=1   tells coverage.py of each line that runs, outside of the kernels
    TENSORLIB_ANNOTATE=1   Cython's coloured listings, in build/cython
"""

import gc
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import traceback
import zlib
from functools import partial
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import Cython
from Cython.Build.Dependencies import create_dependency_tree
from Cython.Compiler import Code, Main, Options
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError
from setuptools.modified import newer_group

# A wheel is compressed at the level that zlib calls its default: its best takes 30 kB of 8 MB off.
zlib.Z_DEFAULT_COMPRESSION = zlib.Z_BEST_COMPRESSION

PACKAGE = Path("tensorlib")
GENERATED = Path("build") / "cython"
DEBUG = os.environ.get("TENSORLIB_DEBUG") == "1"
QUICK = os.environ.get("TENSORLIB_QUICK")
CHOSEN = os.environ.get("TENSORLIB_LEVELS")
COVERAGE = os.environ.get("TENSORLIB_COVERAGE") == "1"
JOBS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
LINUX = sys.platform.startswith("linux")
# Not imported: it starts threads, and what has some can't be forked safely.
NUMPY = Path(find_spec("numpy").origin).parent / "_core" / "include"

# How much is optimized, by measurement. Of what is built once, files with loops over elements, such
# as those of moves, have -O2 and a cost model by which GCC vectorises them: gradients of embeddings
# took 1.5 times as long without. The others branch and call. What no small call goes through has
# -Os, 110 kB less of a wheel than -O1; the rest has of -O2 what shortens such code, which takes two
# thirds of the time to compile, and as many instructions per call. The element-wise loops and
# panels need of -O3 that they are vectorised whatever their counts are, and that functions as long
# as an exponential are inlined; the copies of loops that it makes beyond that take 1.6 times as
# long to compile. Of the other kernels lgamma took twice as long without them, sums of columns 1.4
# times, gradients of softmax 1.1 times and norms of layers 1.04; the rest were not measured.
COLD = {"arena", "as_products", "attached", "attention", "bags", "channels_last", "column_norm",
        "compiled", "convert", "convolution", "cpu", "depthwise_lanes", "dlpack", "dtypes",
        "error_names", "executor", "fill_upcalls", "foreign", "fusion", "generator", "gradients",
        "graph_reader", "grid_sample", "group_norm", "hooks", "lapack", "levels", "mapping",
        "nested", "node_properties", "on_meta", "op", "out_argument", "overlapping", "pickling",
        "plans", "pool", "profile", "properties", "python_nodes", "rebasing", "rebuilt",
        "reinterpret", "settings", "signatures", "sparse", "stack", "symmetric", "transforms",
        "triangles"}
WARM_LOOPS = ["-O2", "-ftree-vectorize"] + ["-fvect-cost-model=dynamic"] * LINUX
WARM_CALLS = ["-O1", "-finline-small-functions", "-foptimize-sibling-calls", "-freorder-functions",
              "-freorder-blocks-and-partition", "-ftree-tail-merge", "-fcrossjumping",
              "-fipa-icf", "-fipa-sra", "-fipa-ra", "-fpeephole2"] if LINUX else ["-O2"]
# These passes of -Os took a fifth of its time, and made nothing smaller.
COLD_CALLS = ["-Os"] + ["-fno-gcse", "-fno-tree-pre", "-fno-tree-vrp"] * LINUX
LEAN = {"bessel", "binary", "bounds", "cast", "division", "exponential", "normal", "normalize",
        "panels", "trigonometric", "unary"}
LEAN_LOOPS = ["-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic",
              "--param=max-inline-insns-single=200", "--param=max-inline-insns-auto=30",
              "--param=inline-min-speedup=15", "--param=early-inlining-insns=14"]
# Of the copies that -O3 makes of each loop, for bounds, strides and counts that are known only when
# it runs, those over extremes take a third less without: 135 kB of a wheel. Of 156 calls that were
# measured only running maxima became slower, by up to a fifth.
LONE = {"extremes"}
LONE_LOOPS = ["-O3", "-fno-ipa-cp-clone", "-fno-unswitch-loops", "-fno-peel-loops",
              "-fno-split-loops", "-fno-version-loops-for-strides", "-fno-loop-unroll-and-jam"]
# Helpers that these call in several places are too long to be worth a copy in each: without it
# softmax takes two thirds of the time to compile, and both 200 kB less of a wheel's objects.
UNCOPIED = {"attention", "softmax"}
# Level v2, for processors older than 2013, is vectorised and no more: 380 kB less of a wheel.
# What fewer programs use has -Os, by which GCC 12 vectorises nothing: it saves 150 kB more.
OLDEST = "v2"
SMALL_IN_OLDEST = {"alignments", "bessel_jyk", "complex_arithmetic", "complex_functions",
                   "depthwise", "distances", "entries", "fourier", "gamma", "grid", "grouped",
                   "halves", "nll", "pooling", "pooling_lanes", "ranks", "recurrent",
                   "small_matrices", "triangles", "variates", "windows"}
# What vectors of 64 bytes do not make faster, or slower, as pooling, which took 1.1 to 1.4 times as
# long. In level v4 these have the flags of v3; where that is built too, as in a wheel, v4 takes
# them of it, which saves 150 kB.
UNWIDENED = {"bessel_jyk", "entries", "fused", "grid", "pooling", "pooling_lanes", "ranks",
             "resample", "scan", "small_matrices", "updates", "windows"}
# Tiny calls spend their time in these; -O3 saves 1 to 3 of 100 instructions, as callgrind counts.
HOT = {"elementwise", "flat", "getitem", "node", "operators", "product", "recording", "storage",
       "tensor"}
# Products of complex numbers: with contraction z * conj(z) would have an imaginary part.
UNCONTRACTED = {"complex_arithmetic"}

# No -ffast-math: it breaks NaN and infinity, and linking with it changes the floating-point
# state of the whole process. No built-in memset: to clear a new tensor or node of 250 bytes GCC 12
# writes `rep stos`, which took 13.6 ns on an AMD EPYC, where a call of the C library's took 2.3.
# What Python's own -Wall has GCC look for takes 5 of 100 instructions: the debug build is for that.
FLAGS = ["-g0", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-Wno-all",
         "-fno-builtin-memset", "-fno-strict-aliasing", "-fvisibility=hidden"]
SYMBOLS = os.environ.get("TENSORLIB_SYMBOLS") == "1"
LINK_FLAGS = ["-s"] if LINUX and not SYMBOLS else []
# The tables by which a debugger finds who called take 200 kB of a wheel for all processors. C needs
# none: where Python ends a thread, glibc takes a function without them for the end of the stack.
if LINUX and not SYMBOLS:
    FLAGS.append("-fno-asynchronous-unwind-tables")
ALL_LEVELS = {"base": []}
if LINUX and platform.machine() == "x86_64":   # elsewhere one level, as in _kernels/cpu.pyx
    ALL_LEVELS = {
        "v2": ["-march=x86-64-v2"],
        "v3": ["-march=x86-64-v3"],
        "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    }
# What a level needs of the processor beyond the one below, as GCC defines it.
NEEDS = {"v2": [], "v3": ["__AVX2__", "__FMA__", "__BMI2__"],
         "v4": "__AVX512F__ __AVX512BW__ __AVX512CD__ __AVX512DQ__ __AVX512VL__".split()}


def definitions():
    """What the C compiler defines for this processor."""
    command = [*shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC")),
               "-march=native", "-dM", "-E", "-x", "c", os.devnull]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def highest_level():
    """The level that a build for this machine has: the highest that its processor runs."""
    if "base" in ALL_LEVELS:
        return ALL_LEVELS
    has = set(definitions())
    level = [level for level in ALL_LEVELS if set(NEEDS[level]) <= has][-1]
    return {level: ALL_LEVELS[level]}


def native_level():
    """The highest level of this processor with its flags, and what it has, in Linux's words.

    Another processor of the level may lack some of that: the kernels look before they are loaded.
    """
    has = {name.strip("_").lower().replace("_", "") for name in definitions()}
    (level,) = highest_level()
    flags = Path("/proc/cpuinfo").read_text().partition("\nflags")[2].partition("\n")[0].split()
    return {level: ["-march=native", *ALL_LEVELS[level][1:]]}, sorted(
        flag for flag in flags if flag.replace("_", "") in has)


NEEDED = []       # of the processor, beyond the level
if QUICK:
    LEVELS = {QUICK: ALL_LEVELS[QUICK]}
elif CHOSEN == "native" and "base" in ALL_LEVELS:
    # on ARM this option names the processor, to GCC as to Clang
    LEVELS = {"base": ["-march=native" if platform.machine() == "x86_64" else "-mcpu=native"]}
elif CHOSEN == "native":
    LEVELS, NEEDED = native_level()
elif CHOSEN == "all":
    LEVELS = ALL_LEVELS
elif CHOSEN:
    LEVELS = {level: ALL_LEVELS[level] for level in CHOSEN.split(",")}
else:
    LEVELS = highest_level()
SUFFIXES = {".pyx", ".pxd", ".pxi", ".h"}     # of what is translated and compiled
COMPILED = "tensorlib._kernels.compiled"    # the shared object of what is built once
ONCE = {"compiled", "cpu", "utility"}       # kernel modules that do not depend on the level
LISTING = PACKAGE / "_kernels" / "compiled.pyx"     # includes what list_modules() writes
# What Cython needs in most modules, such as its type of function, is compiled in this one alone,
# which it writes itself; in each of them it took 0.3 s, and 25 kB of the shared object.
UTILITY = PACKAGE / "_kernels" / "utility.c"
INCLUDED = [NUMPY, PACKAGE / "_kernels"]

DIRECTIVES = {
    "language_level": 3,
    # these two govern Python's sequences only: the core has no memoryviews
    "boundscheck": True,
    "wraparound": True,
    "nonecheck": DEBUG,
    "cdivision": True,
    "initializedcheck": DEBUG,
    "binding": True,
    "embedsignature": False,
    # a parameter of a tensor's type takes a tensor; what may be None says so: `Tensor x or None`
    "allow_none_for_extension_args": False,
    # what a class of C fields is made of can't be copied field by field: pointers would be shared
    "auto_pickle": False,
    # a copy of the source in each C file, which has a fifth less to read without
    "emit_code_comments": COVERAGE or DEBUG,
    "linetrace": COVERAGE,
}
if sysconfig.get_config_var("Py_GIL_DISABLED"):     # what threads share has locks there: locks.pxd
    DIRECTIVES["freethreading_compatible"] = True
# Of the kernels' modules Python calls one function, once. Without binding it is a plain one, and
# the code of Cython's own type of function, which took 0.3 s to compile, is not in there each time.
KERNEL_DIRECTIVES = {**DIRECTIVES, "binding": False}
if DEBUG:    # Python's own flags have -fwrapv, under which no signed overflow is reported
    SANITIZERS = "-fsanitize=address,undefined,float-cast-overflow"
    FLAGS = ["-g1", "-UNDEBUG", "-fno-omit-frame-pointer", "-fno-strict-aliasing",
             "-fno-wrapv", SANITIZERS, "-fno-sanitize-recover=all", "-ffp-contract=fast",
             # what newer compilers refuse: GCC from 14, Clang from 16
             "-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types",
             "-Werror=int-conversion", "-Wno-unused-function"]
    LINK_FLAGS = [SANITIZERS]
    if asked := os.environ.get("TENSORLIB_ISA"):
        LEVELS = {asked: ALL_LEVELS[asked]}
FROM_BELOW = UNWIDENED if "v4" not in LEVELS or "v3" in LEVELS else set()


def dotted(source):
    return ".".join(source.with_suffix("").parts)


def sources():
    return sorted(PACKAGE.rglob("*.pyx"))


def list_modules():
    """Writes what `compiled.pyx` knows of the build: the modules it finds, the kernels that level
    v4 takes of v3, and what they need beyond a level. True if that has changed."""
    once = [source for source in sources() if not depends_on_level(source)]
    names = [dotted(source) for source in [UTILITY, *once]]
    text = "MODULES = {\n" + "".join(f"    {name!r},\n" for name in names) + "}\n"
    text += f"FROM_BELOW = {sorted(FROM_BELOW)}\nNEEDED = {NEEDED}\n"
    listed = GENERATED / "modules.pxi"
    if listed.exists() and listed.read_text() == text:
        return False
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text(text)
    return True


def digest():
    """A digest of the project's files that are translated and compiled, and of their names."""
    files = sorted(path for path in PACKAGE.rglob("*") if path.suffix in SUFFIXES)
    return sha256(b"".join(bytes(path) + path.read_bytes() for path in files)).hexdigest()


def depends_on_level(source):
    return "_kernels" in source.parts and source.stem not in ONCE


def stands_alone(source):
    """Whether a module is loaded without the one that the others share."""
    return depends_on_level(source) or source.stem == "compiled"


def has_loops(source):
    """Whether a file has loops over elements, which run without the interpreter's lock."""
    text = source.read_text() if source != UTILITY else ""    # which is not there yet
    return "nogil" in text and " in range(" in text


def optimization(source, level):
    """The flags for what is made of a source, for a level of the kernels if it depends on it."""
    if QUICK:
        return ["-O1"]
    if DEBUG:      # what calls and branches compiles twice as fast unoptimized; loops compile in
        # two thirds of the time that they take with -O1, and are as fast
        return ["-Og"] if depends_on_level(source) else ["-O0"]
    if not depends_on_level(source):
        if source.stem == "lapack":      # small matrices took 1.5 times as long with -Os
            return ["-O1"]
        if source.stem in COLD:
            return COLD_CALLS
        if source.stem in HOT:
            return ["-O3"]
        return WARM_LOOPS if has_loops(source) else WARM_CALLS
    if not LINUX:     # Clang, which is the compiler elsewhere, has no such parameters
        return ["-O3"]
    if level == OLDEST:
        return ["-Os"] if source.stem in SMALL_IN_OLDEST else WARM_LOOPS
    if source.stem in UNCOPIED:
        return ["-O3", "--param=max-inline-insns-single=70"]
    return LEAN_LOOPS if source.stem in LEAN else (
        LONE_LOOPS if source.stem in LONE else ["-O3"])


def instructions(source, level):
    """The flags for what is made of a source that choose its instruction set."""
    if not depends_on_level(source):
        return []
    if level == "v4" and source.stem in UNWIDENED and CHOSEN != "native":
        return ALL_LEVELS["v3"]
    return LEVELS[level]


def extensions():
    """The shared objects: one of what is built once, and one for each level of the kernels."""
    own = {COMPILED: [source for source in sources() if not depends_on_level(source)]}
    for level in LEVELS:
        own[f"tensorlib._kernels.{level}"] = [
            source for source in sources() if depends_on_level(source) and (
                level != "v4" or source.stem not in FROM_BELOW)]
    for name, files in own.items():
        yield Extension(
            name, list(map(str, files)), include_dirs=list(map(str, INCLUDED)),
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
                           ("CYTHON_USE_MODULE_STATE", "0"),
                           *[("CYTHON_TRACE_NOGIL", "1")] * (COVERAGE and name == COMPILED)],
            extra_compile_args=FLAGS,
            extra_link_args=["-pthread", *LINK_FLAGS])


def settings():
    """What decides the result beside the sources, as text."""
    parts = [sys.version, Cython.__version__, metadata.version("numpy"), DIRECTIVES,
             KERNEL_DIRECTIVES, FLAGS, sorted(HOT), sorted(COLD), sorted(LEAN),
             sorted(UNCONTRACTED), WARM_LOOPS, WARM_CALLS, COLD_CALLS, LEAN_LOOPS,
             sorted(LONE), LONE_LOOPS, OLDEST,
             sorted(SMALL_IN_OLDEST), sorted(UNCOPIED), LINK_FLAGS, TABLES,
             [each for each in LEVELS.items() if each not in ALL_LEVELS.items()],
             NEEDED, sorted(UNWIDENED), QUICK,
             *map(os.environ.get, ("CC", "CFLAGS", "LDFLAGS"))]
    return "\n".join(map(str, parts))


def begins_anew():
    """Whether the settings are not those of the last build, of which then nothing is left."""
    record = GENERATED / "settings.txt"
    if record.exists() and record.read_text() == settings():
        return False
    shutil.rmtree(GENERATED, ignore_errors=True)
    return True


# What is mended in the text of Cython's output: the head of a function, a text that is in it, and
# what should be there. Cython 3.3 (pull request 7748) gives up an item twice where a list
# comprehension has no memory to grow: once here, and once more where the error is dealt with.
APPEND = ("__Pyx_ListComp_AppendAndDecref(PyObject* list, PyObject* x) {", """
    int result = PyList_Append(list, x);
    Py_DECREF(x);
    return result;
""", """
    if (PyList_Append(list, x)) return -1;
    Py_DECREF(x);
    return 0;
""")
# Of compiled functions that called each other, the innermost alone stands in a traceback, unless
# the environment asks for all: this is where Cython adds a frame. One there must be: Cython's code
# takes for granted that an error that it catches has a traceback.
FRAME = ("static void __Pyx_AddTraceback(", """int py_line, const char *filename) {
    PyCodeObject *py_code = 0;
""", """int py_line, const char *filename) {
    PyObject *kind, *value, *trace;
    const char *asked = getenv("TENSORLIB_TRACEBACK");
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_Restore(kind, value, trace);
    if (trace != NULL && (asked == NULL || strcmp(asked, "full") != 0)) return;
    PyCodeObject *py_code = 0;
""")
# What kernel modules have for Python are tables, which are read once: they are compiled for size,
# which takes 59 kB of each level off a wheel.
TABLES = r"(?m)^(static )(?=PyObject \*__pyx_(?:f|fuse|pf|pw)_)"


def mended(text, where, head, flawed, sound):
    """The text of a C file with the function that has this head mended, if it is in there."""
    if head not in text or sound in text:
        return text
    if flawed not in text:
        sys.exit(f"setup.py: in {where}, by Cython {Cython.__version__}, nothing after {head!r} is "
                 "what this file mends; look whether that is needed still, and how")
    return text.replace(flawed, sound)


# What most modules cimport is read once, by the process that those which translate are forked of.
CIMPORTED = {True: PACKAGE / "_kernels" / "vecmath" / "basics.pxd",  # of what stands alone
             False: PACKAGE / "_core" / "tensor" / "tensor.pxd"}


def c_file_of(source):
    return GENERATED / source.with_suffix(".c")


def options(alone, **others):
    """How modules that stand alone are translated, or the others."""
    return Main.CompilationOptions(
        include_path=[str(GENERATED)], annotate=os.environ.get("TENSORLIB_ANNOTATE") == "1",
        compiler_directives=KERNEL_DIRECTIVES if alone else DIRECTIVES,
        shared_utility_qualified_name=None if alone else dotted(UTILITY), **others)


def with_cimported(alone):
    """A context of Cython's in which what most modules cimport is read, as are its own files."""
    for path in Path(Code.get_utility_dir()).glob("*.c"):
        Code.UtilityCode.load_utilities_from_file(path.name)
    context, path = Main.Context.from_options(options(alone)), CIMPORTED[alone]
    context.find_module(dotted(path), pos=(Main.FileSourceDescriptor(str(path)), 1, 0))
    return context


def translate(contexts, source):
    """Writes the C file of a source. Once in a process: a module leaves traces in its context."""
    gc.disable()
    c_file, alone = c_file_of(source), stands_alone(source)
    c_file.parent.mkdir(parents=True, exist_ok=True)
    if source == UTILITY:
        subprocess.run([sys.executable, "-m", "cython", "generate-shared", "--exclude",
                        "MemoryView", "--module-name", dotted(source), str(c_file)], check=True)
    else:
        print("translating", source, flush=True)
        cimports = f"from {dotted(CIMPORTED[alone])} cimport" in source.read_text()
        # Nobody asks for the docstrings of kernels, which take 20 kB of a wheel for all levels.
        Options.docstrings = not alone
        result = Main.compile_single(str(source), options(alone, output_file=str(c_file)),
                                     dotted(source), context=contexts[alone] if cimports else None)
        if result.num_errors:
            raise CompileError(str(source))
    text = c_file.read_text()
    for head, flawed, sound in [APPEND] if DEBUG else [APPEND, FRAME]:
        text = mended(text, c_file, head, flawed, sound)
    if alone:
        text = re.sub(TABLES, r"\1__attribute__((cold)) ", text)
    c_file.write_text(text)


def outdated(everything):
    """The sources whose C file is to be written, and the headers of each that is there."""
    if everything:
        return {UTILITY, *sources()}, {}
    found, headers = set(), {}
    tree = create_dependency_tree(Main.Context.from_options(options(False)), quiet=True)
    for source in sources():
        names = tree.distutils_info(str(source)).values.get("depends", [])
        headers[source] = with_included([source, *(
            folder / name for folder in [Path(), *INCLUDED] for name in names
            if (folder / name).exists())])
        if newer_group(tree.all_dependencies(str(source)), c_file_of(source)):
            found.add(source)
    return found, headers


def with_included(files):
    """The files, and the project's headers that these include, and so on."""
    found = list(files)
    for file in found:                                   # which grows meanwhile
        for name in re.findall(r'^ *#include "(.+)"', file.read_text(), re.MULTILINE):
            header = PACKAGE / "_kernels" / name
            if header.exists() and header not in found:
                found.append(header)
    return found


def forked(function, source):
    """The id of a new process that calls a function, and whose status tells whether it raised."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            function(source)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def do_all(tasks, at_once):
    """Does tasks, each in a process of its own, and what one of them leads to before the next.

    tasks: (source, function of it, what gives the tasks that it leads to)
    """
    waiting, running, failed = tasks[::-1], {}, []
    while running or waiting and not failed:
        if waiting and not failed and len(running) < at_once:
            source, function, further = waiting.pop()
            running[forked(function, source)] = source, further
            continue
        child, status = os.wait()
        source, further = running.pop(child)
        if status:
            failed.append(str(source))
        else:
            waiting += further()
    if failed:
        raise CompileError(f"{', '.join(failed)}, as said above")


class BuildTranslated(build_ext):
    """Translates and compiles on all processors."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or JOBS
        if self.editable_mode:    # `pip install -e` compiles in a temporary folder, all over again
            usual = build(self.distribution)
            usual.finalize_options()
            self.build_lib, self.build_temp = usual.build_lib, usual.build_temp

    def build_extensions(self):
        self.remove_other_levels(self.build_lib)
        self.force = begins_anew() or self.force
        # each build by pip has new copies of Cython's and NumPy's headers, which are not a change
        built, contents = GENERATED / "contents.txt", digest()
        relisted = list_modules()
        if not self.force and built.exists() and built.read_text() == contents:
            changed, self.headers = {LISTING} if relisted else set(), {}
        else:
            changed, self.headers = outdated(self.force)
        built.unlink(missing_ok=True)      # until the build has ended well
        contexts = {alone: with_cimported(alone) for alone in set(map(stands_alone, changed))}
        for ext in self.extensions:
            ext.sources = list(map(Path, ext.sources)) + [UTILITY] * (ext.name == COMPILED)
        # largest first, as kernels that are three times as large: the last ones should be short
        tasks = []
        for source in [UTILITY, *sorted(sources(), reverse=True, key=lambda source: (
                source.stat().st_size * (3 if depends_on_level(source) else 1)))]:
            further = partial(self.compilations, source)
            tasks += ([(source, partial(translate, contexts), further)] if source in changed
                      else further())
        gc.freeze()
        do_all(tasks, self.parallel)
        for ext in self.extensions:      # only the linking is left
            ext.extra_objects = ext.depends = [self.object_of(ext, each) for each in ext.sources]
            ext.sources = []
            if relisted:     # it may have other objects than before, and none that is newer
                Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
        super().build_extensions()
        (GENERATED / "settings.txt").write_text(settings())
        built.write_text(contents)

    def remove_other_levels(self, folder):
        """Takes away what an earlier build made for levels that this one has not."""
        for level in set(ALL_LEVELS) - set(LEVELS):
            path = Path(folder, self.get_ext_filename(f"tensorlib._kernels.{level}"))
            path.unlink(missing_ok=True)

    def copy_extensions_to_source(self):
        if COVERAGE:    # which looks for the C files beside the sources
            for source in sources():
                shutil.copy(c_file_of(source), source.with_suffix(".c"))
        self.remove_other_levels("")
        super().copy_extensions_to_source()

    def folder_of(self, ext):
        """Where the objects of a shared object lie."""
        return os.path.join(self.build_temp, ext.name)

    def object_of(self, ext, source):
        """The object of a source for one shared object."""
        return self.compiler.object_filenames([str(c_file_of(source))],
                                              output_dir=self.folder_of(ext))[0]

    def compilations(self, source):
        """The tasks that compile the C file of a source, where objects are not up to date."""
        for ext in self.extensions:
            if source in ext.sources and (self.force or newer_group(
                    [c_file_of(source), *self.headers.get(source, [])],
                    self.object_of(ext, source))):
                yield source, partial(self.compile, ext), tuple

    def compile(self, ext, source):
        """Compiles the C file of a source for one shared object."""
        level = ext.name.rpartition(".")[2]
        flags = [*ext.extra_compile_args, *instructions(source, level),
                 *optimization(source, level),
                 *["-ffp-contract=off"] * (source.stem in UNCONTRACTED)]
        self.compiler.compile([str(c_file_of(source))], macros=ext.define_macros,
                              output_dir=self.folder_of(ext), debug=self.debug,
                              include_dirs=ext.include_dirs, extra_postargs=flags)


# Folders whose modules are imported under other names, by the path of these in the package.
OTHER_NAMES = {"": "shell", "data": "utils/data", "fx": "program/fx"}


def stubs_of_other_names(package):
    """Pairs of a path and a text: stubs for type checkers, which know modules by files alone.

    `tensorlib.cuda` is `tensorlib/shell/cuda`, so that `tensorlib/cuda.pyi` has its names. These
    stubs belong to the package that is installed: in the source tree they would hide its parts.
    """
    for name, folder in OTHER_NAMES.items():
        home = Path(package, folder)
        for path in sorted(home.rglob("*.py")):
            place = path.relative_to(home)
            if Path(name, place) != Path("__init__.py"):
                module = ".".join(["tensorlib", *folder.split("/"), *place.with_suffix("").parts])
                yield (Path(name, place).with_suffix(".pyi"),
                       f"from {module.removesuffix('.__init__')} import *\n")


class BuildTyped(build_py):
    """Adds the stubs of modules under their other names to the package that is built."""

    def run(self):
        super().run()
        if not self.editable_mode:
            for place, text in stubs_of_other_names("tensorlib"):
                path = Path(self.build_lib, "tensorlib", place)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)


if __name__ == "__main__":
    setup(ext_modules=list(extensions()),
          cmdclass={"build_ext": BuildTranslated, "build_py": BuildTyped})
