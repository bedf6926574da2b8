"""Builds the compiled parts: the kernels once per instruction set, everything else once.

All that is built once is linked into one shared object, `tensorlib/_kernels/compiled`, in
which `compiled.pyx` finds the modules. `_kernels/*.pyx` is translated to C once and compiled for
every level in `LEVELS`, into `_kernels/<level>`; the one for this processor is picked at import.
Only `build_ext` translates, and nothing generated is left in the source tree but what a build in
place is for: C files and objects live in `build/`. A build repeats what has changed, and everything
where the settings have.

Environment:
    TENSORLIB_DEBUG=1      bounds checks, assertions and sanitizers (see CONTRIBUTING.md)
    TENSORLIB_SYMBOLS=1    keeps the symbols, for profilers
    TENSORLIB_LEVELS=v3    these levels of kernels: a list (v3,v4); `all`, for a wheel that is to
                           run anywhere; or `native`, the highest level of this processor, for all
                           instructions that it has. By default those that this processor has,
                           without v2 where there is a better one
    TENSORLIB_QUICK=v3     little optimization, and this level of kernels alone
    TENSORLIB_COVERAGE=1   tells coverage.py of each line that runs, outside of the kernels
    TENSORLIB_ANNOTATE=1   Cython's coloured listings, in build/cython
"""

import gc
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import Cython
import numpy
from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

PACKAGE = Path("tensorlib")
GENERATED = Path("build") / "cython"
DEBUG = os.environ.get("TENSORLIB_DEBUG") == "1"
QUICK = os.environ.get("TENSORLIB_QUICK")
CHOSEN = os.environ.get("TENSORLIB_LEVELS")
COVERAGE = os.environ.get("TENSORLIB_COVERAGE") == "1"
JOBS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
LINUX = sys.platform.startswith("linux")

# How much is optimized, by measurement. What is built once branches and calls, and has loops over
# elements, such as those of moves, which GCC's own cost model at -O2 leaves unvectorised: gradients
# of embeddings took 1.5 times as long. What has no such loops and what no small call goes through
# has -O1, which takes 1.6 times less to compile. The element-wise loops and panels need of -O3 that
# they are vectorised whatever their counts are, and that functions as long as an exponential are
# inlined; the copies of loops that it makes beyond that take 1.6 times as long to compile. Of the
# other kernels lgamma took twice as long without them, sums of columns 1.4 times, gradients of
# softmax 1.1 times and norms of layers 1.04; the rest were not measured.
COLD = {"arena", "compiled", "cpu", "dlpack", "error_names", "generator", "gradients",
        "graph_reader", "hooks", "lapack", "nested", "node_properties", "pickling", "pool",
        "python_nodes", "signatures"}
WARM_LOOPS = ["-O2", "-ftree-vectorize"] + ["-fvect-cost-model=dynamic"] * LINUX
LEAN = {"bessel", "binary", "bounds", "cast", "division", "exponential", "normal", "panels",
        "trigonometric", "unary"}
LEAN_LOOPS = ["-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic",
              "--param=max-inline-insns-single=200", "--param=max-inline-insns-auto=30",
              "--param=inline-min-speedup=15", "--param=early-inlining-insns=14"]
# Of the copies that -O3 makes of each loop, for bounds, strides and counts that are known only when
# it runs, those over extremes take a third less without: 135 kB of a wheel. Of 156 calls that were
# measured only running maxima became slower, by up to a fifth.
LONE = {"extremes"}
LONE_LOOPS = ["-O3", "-fno-ipa-cp-clone", "-fno-unswitch-loops", "-fno-peel-loops",
              "-fno-split-loops", "-fno-version-loops-for-strides", "-fno-loop-unroll-and-jam"]
# The kernels of level v2, for processors older than 2013, are vectorised and no more: beyond that
# -O3 takes 380 kB more of a wheel.
OLDEST = "v2"
# What vectors of 64 bytes do not make faster, or slower, as pooling, which took 1.1 to 1.4 times as
# long. Level v4 takes these of v3, which saves 150 kB of a wheel.
UNWIDENED = {"entries", "fused", "grid", "pooling", "pooling_lanes", "ranks", "resample", "scan",
             "small_matrices", "updates", "windows"}
# Tiny calls spend their time in these; -O3 saves 1 to 3 of 100 instructions, as callgrind counts.
HOT = {"elementwise", "flat", "getitem", "node", "operators", "product", "recording", "storage",
       "tensor"}

# Products of complex numbers: with contraction z * conj(z) would have an imaginary part.
UNCONTRACTED = {"complex_arithmetic"}

# No -ffast-math: it breaks NaN and infinity, and linking with it changes the floating-point
# state of the whole process. No built-in memset: to clear a new tensor or node of 250 bytes GCC 12
# writes `rep stos`, which took 13.6 ns on an AMD EPYC, where a call of the C library's took 2.3.
FLAGS = ["-g0", "-fno-math-errno", "-fno-trapping-math",
         "-ffp-contract=fast", "-fno-builtin-memset", "-fno-strict-aliasing", "-fvisibility=hidden",
         "-Wno-unused-function"]
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


def levels_here():
    """The levels that a build for this machine has: from v3 on those that it runs, or v2."""
    if "base" in ALL_LEVELS:
        return ALL_LEVELS
    has = set(definitions())
    return {level: flags for level, flags in ALL_LEVELS.items() if NEEDS[level] and (
        set(NEEDS[level]) <= has)} or {"v2": ALL_LEVELS["v2"]}


def native_level():
    """The highest level of this processor with its flags, and what it has, in Linux's words.

    Another processor of the level may lack some of that: the kernels look before they are loaded.
    """
    has = {name.strip("_").lower().replace("_", "") for name in definitions()}
    level = list(levels_here())[-1]
    return {level: ["-march=native", *ALL_LEVELS[level][1:]]}, sorted(
        flag for flag in processor_flags(Path("/proc/cpuinfo").read_text())
        if flag.replace("_", "") in has)


def processor_flags(text):
    """The names in the first line of flags of /proc/cpuinfo."""
    return next((line.partition(":")[2].split() for line in text.splitlines()
                 if line.startswith("flags")), [])


NEEDED = []       # of the processor, beyond the level


if QUICK:
    LEVELS = {QUICK: ALL_LEVELS[QUICK]}
elif CHOSEN == "native":
    if "base" in ALL_LEVELS:
        # on ARM this option names the processor, to GCC as to Clang
        LEVELS = {"base": ["-march=native" if platform.machine() == "x86_64" else "-mcpu=native"]}
    else:
        LEVELS, NEEDED = native_level()
elif CHOSEN == "all":
    LEVELS = ALL_LEVELS
elif CHOSEN:
    LEVELS = {level: ALL_LEVELS[level] for level in CHOSEN.split(",")}
else:
    LEVELS = levels_here()
SUFFIXES = {".pyx", ".pxd", ".pxi", ".h"}     # of what is translated and compiled
TRACED = [("CYTHON_TRACE_NOGIL", "1")] if COVERAGE else []
COMPILED = "tensorlib._kernels.compiled"    # the shared object of what is built once
ONCE = {"compiled", "cpu", "utility"}       # kernel modules that do not depend on the level
# What Cython needs in most modules, such as its type of function, is compiled in this one alone,
# which it writes itself; in each of them it took 0.3 s, and 25 kB of the shared object.
UTILITY = PACKAGE / "_kernels" / "utility.c"

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
             "-Wno-unused-function",
             # what newer compilers refuse: GCC from 14, Clang from 16
             "-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types",
             "-Werror=int-conversion"]
    LINK_FLAGS = [SANITIZERS]
    LEVELS = {level: flags for level, flags in LEVELS.items()
              if os.environ.get("TENSORLIB_ISA", level) == level}
FROM_BELOW = UNWIDENED if "v4" not in LEVELS or "v3" in LEVELS else set()


def dotted(source):
    return ".".join(source.with_suffix("").parts)


def sources():
    return sorted(PACKAGE.rglob("*.pyx"))


def digest():
    """A digest of the project's files that are translated and compiled, and of their names."""
    files = sorted(path for path in PACKAGE.rglob("*") if path.suffix in SUFFIXES)
    return sha256(b"".join(bytes(path) + path.read_bytes() for path in files)).hexdigest()


def depends_on_level(source):
    return source.parent.name == "_kernels" and source.stem not in ONCE


def stands_alone(source):
    """Whether a module is loaded without the one that the others share."""
    return depends_on_level(source) or source.stem == "compiled"


def optimization(source, level):
    """The flags for what is made of a source, for a level of the kernels if it depends on it."""
    if QUICK:
        return ["-O1"]
    if DEBUG:      # what calls and branches compiles twice as fast unoptimized; loops compile in
        # two thirds of the time that they take with -O1, and are as fast
        return ["-Og"] if depends_on_level(source) else ["-O0"]
    if not depends_on_level(source):
        if source.stem in COLD:
            return ["-O1"]
        return ["-O3"] if source.stem in HOT else WARM_LOOPS
    if not LINUX:     # Clang, which is the compiler elsewhere, has no such parameters
        return ["-O3"]
    if level == OLDEST:
        return WARM_LOOPS
    return LEAN_LOOPS if source.stem in LEAN else (
        LONE_LOOPS if source.stem in LONE else ["-O3"])


def contraction(source):
    """The flag for what is to round each product of a sum by itself."""
    return ["-ffp-contract=off"] if source.stem in UNCONTRACTED else []


def extension(name, files, flags=()):
    return Extension(
        name,
        list(map(str, files)),
        include_dirs=[numpy.get_include(), str(PACKAGE / "_core"), str(PACKAGE / "_kernels")],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
                       ("CYTHON_USE_MODULE_STATE", "0")] + TRACED * (name == COMPILED),
        extra_compile_args=[*FLAGS, *flags],
        extra_link_args=["-pthread", *LINK_FLAGS],
    )


def extensions():
    """The shared objects: one of what is built once, and one for each level of the kernels."""
    once, kernels = [], []
    for source in sources():
        (kernels if depends_on_level(source) else once).append(source)
    yield extension(COMPILED, once)
    for level, flags in LEVELS.items():
        own = [source for source in kernels if level != "v4" or source.stem not in FROM_BELOW]
        yield extension(f"tensorlib._kernels.{level}", own, flags)


def settings():
    """What decides the result beside the sources, as text."""
    parts = [sys.version, Cython.__version__, numpy.__version__, DIRECTIVES, KERNEL_DIRECTIVES,
             FLAGS, sorted(HOT), sorted(COLD), sorted(LEAN), sorted(UNCONTRACTED), WARM_LOOPS,
             LEAN_LOOPS, sorted(LONE), LONE_LOOPS, OLDEST, LINK_FLAGS,
             [each for each in LEVELS.items() if each not in ALL_LEVELS.items()], NEEDED,
             sorted(FROM_BELOW), QUICK, *map(os.environ.get, ("CC", "CFLAGS", "LDFLAGS"))]
    return "\n".join(map(str, parts))


# What is mended in the text of Cython's output: the head of a function, a text that is in it, and
# what should be there.
#
# Cython 3.3 (pull request 7748) gives up an item twice where a list comprehension has no memory to
# grow: once here, and once more where the error is dealt with.
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


def mended(text, where, head, flawed, sound):
    """The text of a C file with the function that has this head mended, if it is in there.

    Raises: SystemExit for another Cython, whose function is not the one that is known.
    """
    if head not in text or sound in text:
        return text
    if flawed not in text:
        sys.exit(f"setup.py: in {where}, by Cython {Cython.__version__}, nothing after {head!r} is "
                 "what this file mends; look whether that is needed still, and how")
    return text.replace(flawed, sound)


def mend(c_file):
    """Mends what the translator gets wrong, or has no setting for."""
    text = before = c_file.read_text()
    for head, flawed, sound in [APPEND] if DEBUG else [APPEND, FRAME]:
        text = mended(text, c_file, head, flawed, sound)
    if text != before:
        c_file.write_text(text)


class BuildTranslated(build_ext):
    """Translates, then compiles on all processors."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or JOBS
        if self.editable_mode:    # `pip install -e` compiles in a temporary folder, all over again
            usual = build(self.distribution)
            usual.finalize_options()
            self.build_lib, self.build_temp = usual.build_lib, usual.build_temp

    def build_extensions(self):
        self.remove_other_levels(self.build_lib)
        record = GENERATED / "settings.txt"
        if not record.exists() or record.read_text() != settings():
            self.force = True
        # each build by pip has new copies of Cython's and NumPy's headers, which are not a change
        built, contents = GENERATED / "contents.txt", digest()
        changed = self.force or not built.exists() or built.read_text() != contents
        translated = self.translate() if changed else {
            str(source): (str(GENERATED / source.with_suffix(".c")), [])
            for source in [UTILITY, *sources()]}
        with ThreadPoolExecutor(self.parallel) as pool:
            objects = [[pool.submit(self.compile, ext, source, *translated[source])
                        for source in ext.sources + [str(UTILITY)] * (ext.name == COMPILED)]
                       for ext in self.extensions]
        for ext, compiled in zip(self.extensions, objects):      # only the linking is left
            ext.extra_objects = ext.depends = [each.result() for each in compiled]
            ext.sources = []
        super().build_extensions()
        record.write_text(settings())
        built.write_text(contents)

    def translate(self):
        """The C file and the headers of each source."""
        self.list_modules()
        found = {str(UTILITY): (self.share(), [])}
        gc.set_threshold(500_000, 20, 100)     # the trees of a module stay until it is translated
        for alone, directives in ((True, KERNEL_DIRECTIVES), (False, DIRECTIVES)):
            files = [source for source in sources() if stands_alone(source) == alone]
            # Nobody asks for the docstrings of kernels, which take 20 kB of a wheel for all levels.
            Options.docstrings = not alone
            translated = cythonize(
                [extension(dotted(source), [source]) for source in files],
                build_dir=str(GENERATED),
                include_path=[str(GENERATED)],
                compiler_directives=directives,
                shared_utility_qualified_name=None if alone else dotted(UTILITY),
                nthreads=JOBS,
                force=self.force,
                annotate=os.environ.get("TENSORLIB_ANNOTATE") == "1",
            )
            for source, ext in zip(files, translated, strict=True):
                mend(Path(ext.sources[0]))
                found[str(source)] = ext.sources[0], ext.depends
        return found

    def remove_other_levels(self, folder):
        """Takes away what an earlier build made for levels that this one has not."""
        for level in set(ALL_LEVELS) - set(LEVELS):
            path = Path(folder, self.get_ext_filename(f"tensorlib._kernels.{level}"))
            path.unlink(missing_ok=True)

    def share(self):
        """The C file of what the modules share, written where it is not there."""
        c_file = GENERATED / UTILITY
        if self.force or not c_file.exists():
            c_file.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, "-m", "cython", "generate-shared", "--exclude",
                            "MemoryView", "--module-name", dotted(UTILITY), str(c_file)],
                           check=True)
            mend(c_file)
        return str(c_file)

    def list_modules(self):
        """Writes what `compiled.pyx` knows of the build, where that has changed: the modules it
        finds, the kernels that level v4 takes of v3, and what they need beyond a level."""
        once = [source for source in sources() if not depends_on_level(source)]
        names = [dotted(source) for source in [UTILITY, *once]]
        text = "MODULES = {\n" + "".join(f"    {name!r},\n" for name in names) + "}\n"
        text += f"FROM_BELOW = {sorted(FROM_BELOW)}\nNEEDED = {NEEDED}\n"
        listed = GENERATED / "modules.pxi"
        if not listed.exists() or listed.read_text() != text:
            listed.parent.mkdir(parents=True, exist_ok=True)
            listed.write_text(text)

    def copy_extensions_to_source(self):
        if COVERAGE:    # which looks for the C files beside the sources
            for source in sources():
                shutil.copy(GENERATED / source.with_suffix(".c"), source.with_suffix(".c"))
        self.remove_other_levels("")
        super().copy_extensions_to_source()

    def compile(self, ext, source, c_file, headers):
        """The object of a C file for one shared object, compiled where it is not up to date."""
        folder = os.path.join(self.build_temp, ext.name)
        (compiled,) = self.compiler.object_filenames([c_file], output_dir=folder)
        if self.force or newer_group([c_file, *headers], compiled):
            level = ext.name.rpartition(".")[2]
            self.compiler.compile([c_file], output_dir=folder, macros=ext.define_macros,
                                  include_dirs=ext.include_dirs, debug=self.debug,
                                  extra_postargs=[*ext.extra_compile_args,
                                                  *optimization(Path(source), level),
                                                  *contraction(Path(source))])
        return compiled


if __name__ == "__main__":    # the processes that translate may import this file
    setup(ext_modules=list(extensions()), cmdclass={"build_ext": BuildTranslated})
