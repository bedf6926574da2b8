"""Builds the compiled parts: the kernels once per instruction set, everything else once.

`_kernels/*.pyx` is translated to C once and compiled for every level in `LEVELS`, into
`_kernels/<level>/`; the table for this processor is picked at import. Only `build_ext` translates,
and nothing generated is left in the source tree but what a build in place is for: C files and
objects live in `build/`. A build repeats what has changed, and everything where the settings have.

Environment:
    TENSORLIB_DEBUG=1      bounds checks, assertions and sanitizers (see CONTRIBUTING.md)
    TENSORLIB_SYMBOLS=1    keeps the symbols, for profilers
    TENSORLIB_QUICK=v3     little optimization, and this level of kernels alone
    TENSORLIB_COVERAGE=1   tells coverage.py of each line that runs, outside of the kernels
    TENSORLIB_ANNOTATE=1   Cython's coloured listings, in build/cython
"""

import os
import platform
import shutil
import sys
from pathlib import Path

import Cython
import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

PACKAGE = Path("tensorlib")
GENERATED = Path("build") / "cython"
DEBUG = os.environ.get("TENSORLIB_DEBUG") == "1"
QUICK = os.environ.get("TENSORLIB_QUICK")
COVERAGE = os.environ.get("TENSORLIB_COVERAGE") == "1"
JOBS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
LINUX = sys.platform.startswith("linux")

# No -ffast-math: it breaks NaN and infinity, and linking with it changes the floating-point
# state of the whole process. No built-in memset: to clear a new tensor or node of 250 bytes GCC 12
# writes `rep stos`, which took 13.6 ns on an AMD EPYC, where a call of the C library's took 2.3.
FLAGS = ["-O1" if QUICK else "-O3", "-g0", "-fno-math-errno", "-fno-trapping-math",
         "-ffp-contract=fast", "-fno-builtin-memset", "-fno-strict-aliasing", "-fvisibility=hidden",
         "-Wno-unused-function"]
LINK_FLAGS = ["-s"] if LINUX and os.environ.get("TENSORLIB_SYMBOLS") != "1" else []
LEVELS = {"base": []}
if LINUX and platform.machine() == "x86_64":   # elsewhere one level, as in _kernels/cpu.pyx
    LEVELS = {
        "v2": ["-march=x86-64-v2"],
        "v3": ["-march=x86-64-v3"],
        "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    }
if QUICK:
    LEVELS = {QUICK: LEVELS[QUICK]}
ONCE = {"cpu"}  # kernel modules that do not depend on the level

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
if DEBUG:    # Python's own flags have -fwrapv, under which no signed overflow is reported
    SANITIZERS = "-fsanitize=address,undefined,float-cast-overflow"
    FLAGS = ["-O1", "-g1", "-UNDEBUG", "-fno-omit-frame-pointer", "-fno-strict-aliasing",
             "-fno-wrapv", SANITIZERS, "-fno-sanitize-recover=all", "-ffp-contract=fast",
             "-Wno-unused-function"]
    LINK_FLAGS = [SANITIZERS]
    LEVELS = {level: flags for level, flags in LEVELS.items()
              if os.environ.get("TENSORLIB_ISA", level) == level}


def extension(name, source, flags=()):
    traced = COVERAGE and source.parent.name != "_kernels"
    return Extension(
        name,
        [str(source)],
        include_dirs=[numpy.get_include(), str(PACKAGE / "_core"), str(PACKAGE / "_kernels")],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
                       ("CYTHON_USE_MODULE_STATE", "0"),
                       *([("CYTHON_TRACE_NOGIL", "1")] if traced else [])],
        extra_compile_args=[*FLAGS, *flags],
        extra_link_args=["-pthread", *LINK_FLAGS],
    )


def dotted(source):
    return ".".join(source.with_suffix("").parts)


def depends_on_level(source):
    return source.parent.name == "_kernels" and source.stem not in ONCE


def sources():
    return sorted(PACKAGE.rglob("*.pyx"))


def extensions():
    for source in sources():
        if depends_on_level(source):
            for level, flags in LEVELS.items():
                yield extension(f"{dotted(source.parent)}.{level}.{source.stem}", source, flags)
        else:
            yield extension(dotted(source), source)


def settings():
    """What decides the result beside the sources, as text."""
    parts = [sys.version, Cython.__version__, numpy.__version__, DIRECTIVES, FLAGS, LINK_FLAGS,
             LEVELS, os.environ.get("CC"), os.environ.get("CFLAGS"), os.environ.get("LDFLAGS")]
    return "\n".join(map(str, parts))


# Cython 3.3 (pull request 7748) gives up an item twice where a list comprehension has no memory to
# grow: once here, and once more where the error is dealt with.
FLAWED = """    int result = PyList_Append(list, x);
    Py_DECREF(x);
    return result;
"""
MENDED = """    if (PyList_Append(list, x)) return -1;
    Py_DECREF(x);
    return 0;
"""


# Of compiled functions that called each other, the innermost alone stands in a traceback, unless
# the environment asks for all: this is where Cython adds a frame. One there must be: Cython's code
# takes for granted that an error that it catches has a traceback.
WITH_FRAMES = """int py_line, const char *filename) {
    PyCodeObject *py_code = 0;
"""
FRAMES_ASKED_FOR = """int py_line, const char *filename) {
    PyObject *kind, *value, *trace;
    const char *asked = getenv("TENSORLIB_TRACEBACK");
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_Restore(kind, value, trace);
    if (trace != NULL && (asked == NULL || strcmp(asked, "full") != 0)) return;
    PyCodeObject *py_code = 0;
"""


def mend(c_file):
    """Mends what the translator gets wrong, or has no setting for."""
    text = c_file.read_text()
    mended = text.replace(FLAWED, MENDED)
    if not DEBUG:
        mended = mended.replace(WITH_FRAMES, FRAMES_ASKED_FOR)
    if mended != text:
        c_file.write_text(mended)


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
        record = GENERATED / "settings.txt"
        if not record.exists() or record.read_text() != settings():
            self.force = True
        translated = self.translate()
        for ext in self.extensions:
            source = Path(ext.sources[0])
            c_file, ext.depends = translated[source]
            ext.sources = [self.copy_for_level(c_file, ext) if depends_on_level(source) else c_file]
        super().build_extensions()
        record.write_text(settings())

    def translate(self):
        """The C file and the headers of each source."""
        translated = cythonize(
            [extension(dotted(source), source) for source in sources()],
            build_dir=str(GENERATED),
            compiler_directives=DIRECTIVES,
            nthreads=JOBS,
            force=self.force,
            annotate=os.environ.get("TENSORLIB_ANNOTATE") == "1",
        )
        for ext in translated:
            mend(Path(ext.sources[0]))
        found = [(ext.sources[0], ext.depends) for ext in translated]
        return dict(zip(sources(), found, strict=True))

    def copy_for_level(self, c_file, ext):
        """A kernel's C file under another path for each level: objects are named after it."""
        copy = GENERATED / ext.name.split(".")[-2] / Path(c_file).name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if self.force or not copy.exists() or os.path.getmtime(copy) < os.path.getmtime(c_file):
            shutil.copyfile(c_file, copy)
        return str(copy)

    def copy_extensions_to_source(self):
        if COVERAGE:    # which looks for the C files beside the sources
            for source in sources():
                shutil.copy(GENERATED / source.with_suffix(".c"), source.with_suffix(".c"))
        for level in LEVELS:
            (PACKAGE / "_kernels" / level).mkdir(exist_ok=True)
        super().copy_extensions_to_source()


if __name__ == "__main__":    # the processes that translate may import this file
    setup(ext_modules=list(extensions()), cmdclass={"build_ext": BuildTranslated})
