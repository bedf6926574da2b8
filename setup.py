"""Builds the compiled parts: the kernels once per instruction set, everything else once.

`_kernels/*.pyx` is translated to C once and compiled for every level in `LEVELS`, into
`_kernels/<level>/`; the table for this processor is picked at import. Nothing generated is
left in the source tree: C files and objects live in `build/`.

Environment:
    TENSORLIB_DEBUG=1   bounds checks, assertions and sanitizers (see CONTRIBUTING.md)
"""

import os
import platform
import shutil
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PACKAGE = Path("tensorlib")
GENERATED = Path("build") / "cython"
DEBUG = os.environ.get("TENSORLIB_DEBUG") == "1"
JOBS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()

# No -ffast-math: it breaks NaN and infinity, and linking with it changes the floating-point
# state of the whole process.
FLAGS = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
         "-fno-strict-aliasing", "-fvisibility=hidden", "-Wno-unused-function"]
LINK_FLAGS = [] if os.environ.get("TENSORLIB_SYMBOLS") else ["-s"]
LEVELS = {"base": []}
if platform.machine() in ("x86_64", "AMD64"):
    LEVELS = {
        "v2": ["-march=x86-64-v2"],
        "v3": ["-march=x86-64-v3"],
        "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    }
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
}
if DEBUG:
    FLAGS = ["-O1", "-g", "-UNDEBUG", "-fno-omit-frame-pointer", "-fno-strict-aliasing",
             "-fsanitize=address,undefined", "-ffp-contract=fast"]
    LINK_FLAGS = ["-fsanitize=address,undefined"]


def extension(name, source, flags=()):
    return Extension(
        name,
        [str(source)],
        include_dirs=[numpy.get_include(), str(PACKAGE / "_core"), str(PACKAGE / "_kernels")],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
                       ("CYTHON_USE_MODULE_STATE", "0")],
        extra_compile_args=[*FLAGS, *flags],
        extra_link_args=["-pthread", *LINK_FLAGS],
    )


def dotted(path):
    return ".".join(path.with_suffix("").parts)


def per_level(kernel):
    """One extension for each instruction set from the C file of one kernel module."""
    source = Path(kernel.sources[0])
    package, _, name = kernel.name.rpartition(".")
    for level, flags in LEVELS.items():
        (PACKAGE / "_kernels" / level).mkdir(exist_ok=True)      # for builds in place
        copy = GENERATED / level / source.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.stat().st_mtime < source.stat().st_mtime:
            shutil.copyfile(source, copy)
        yield extension(f"{package}.{level}.{name}", copy, flags)


def extensions():
    sources = sorted(PACKAGE.rglob("*.pyx"))
    translated = cythonize(
        [extension(dotted(source), source) for source in sources],
        build_dir=str(GENERATED),
        compiler_directives=DIRECTIVES,
        nthreads=JOBS,
        annotate=os.environ.get("TENSORLIB_ANNOTATE") == "1",
    )
    for ext in translated:
        parts = ext.name.split(".")
        if parts[1] == "_kernels" and parts[-1] not in ONCE:
            yield from per_level(ext)
        else:
            yield ext


class ParallelBuild(build_ext):
    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or JOBS

    def get_source_files(self):
        """For the sdist: the sources that git holds, never the C made from them."""
        return [str(p) for pattern in ("*.pyx", "*.pxd", "*.h") for p in PACKAGE.rglob(pattern)]


setup(ext_modules=list(extensions()), cmdclass={"build_ext": ParallelBuild})
