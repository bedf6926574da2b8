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
    TENSORLIB_QUICK=v3     little optimization, and this level of kernels alone
    TENSORLIB_COVERAGE=1   tells coverage.py of each line that runs, outside of the kernels
    TENSORLIB_ANNOTATE=1   Cython's coloured listings, in build/cython
"""

import os
import platform
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import Cython
import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

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
TRACED = [("CYTHON_TRACE_NOGIL", "1")] if COVERAGE else []
COMPILED = "tensorlib._kernels.compiled"    # the shared object of what is built once
ONCE = {"compiled", "cpu"}  # kernel modules that do not depend on the level

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


def dotted(source):
    return ".".join(source.with_suffix("").parts)


def sources():
    return sorted(PACKAGE.rglob("*.pyx"))


def digest():
    """A digest of the project's files that are translated and compiled, and of their names."""
    files = sorted(path for path in PACKAGE.rglob("*") if path.suffix in {".pyx", ".pxd", ".h"})
    return sha256(b"".join(bytes(path) + path.read_bytes() for path in files)).hexdigest()


def depends_on_level(source):
    return source.parent.name == "_kernels" and source.stem not in ONCE


def extension(name, files):
    return Extension(
        name,
        list(map(str, files)),
        include_dirs=[numpy.get_include(), str(PACKAGE / "_core"), str(PACKAGE / "_kernels")],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
                       ("CYTHON_USE_MODULE_STATE", "0")] + TRACED * (name == COMPILED),
        extra_compile_args=FLAGS,
        extra_link_args=["-pthread", *LINK_FLAGS],
    )


def extensions():
    """The shared objects: one of what is built once, and one for each level of the kernels."""
    once, kernels = [], []
    for source in sources():
        (kernels if depends_on_level(source) else once).append(source)
    yield extension(COMPILED, once)
    for level, flags in LEVELS.items():
        ext = extension(f"tensorlib._kernels.{level}", kernels)
        ext.extra_compile_args = [*FLAGS, *flags]
        yield ext


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
        # each build by pip has new copies of Cython's and NumPy's headers, which are not a change
        built, contents = GENERATED / "contents.txt", digest()
        changed = self.force or not built.exists() or built.read_text() != contents
        translated = self.translate() if changed else {
            str(source): (str(GENERATED / source.with_suffix(".c")), []) for source in sources()}
        with ThreadPoolExecutor(self.parallel) as pool:
            objects = [[pool.submit(self.compile, ext, *translated[source])
                        for source in ext.sources] for ext in self.extensions]
        for ext, compiled in zip(self.extensions, objects):      # only the linking is left
            ext.extra_objects = ext.depends = [each.result() for each in compiled]
            ext.sources = []
        super().build_extensions()
        record.write_text(settings())
        built.write_text(contents)

    def translate(self):
        """The C file and the headers of each source."""
        self.list_modules()
        translated = cythonize(
            [extension(dotted(source), [source]) for source in sources()],
            build_dir=str(GENERATED),
            include_path=[str(GENERATED)],
            compiler_directives=DIRECTIVES,
            nthreads=JOBS,
            force=self.force,
            annotate=os.environ.get("TENSORLIB_ANNOTATE") == "1",
        )
        for ext in translated:
            mend(Path(ext.sources[0]))
        return {str(source): (ext.sources[0], ext.depends)
                for source, ext in zip(sources(), translated, strict=True)}

    def list_modules(self):
        """Writes the list of the modules that `compiled.pyx` finds, where it has changed."""
        names = [dotted(source) for source in sources() if not depends_on_level(source)]
        text = "MODULES = {\n" + "".join(f"    {name!r},\n" for name in names) + "}\n"
        listed = GENERATED / "modules.pxi"
        if not listed.exists() or listed.read_text() != text:
            listed.parent.mkdir(parents=True, exist_ok=True)
            listed.write_text(text)

    def copy_extensions_to_source(self):
        if COVERAGE:    # which looks for the C files beside the sources
            for source in sources():
                shutil.copy(GENERATED / source.with_suffix(".c"), source.with_suffix(".c"))
        super().copy_extensions_to_source()

    def compile(self, ext, c_file, headers):
        """The object of a C file for one shared object, compiled where it is not up to date."""
        folder = os.path.join(self.build_temp, ext.name)
        (compiled,) = self.compiler.object_filenames([c_file], output_dir=folder)
        if self.force or newer_group([c_file, *headers], compiled):
            self.compiler.compile([c_file], output_dir=folder, macros=ext.define_macros,
                                  include_dirs=ext.include_dirs, debug=self.debug,
                                  extra_postargs=ext.extra_compile_args)
        return compiled


if __name__ == "__main__":    # the processes that translate may import this file
    setup(ext_modules=list(extensions()), cmdclass={"build_ext": BuildTranslated})
