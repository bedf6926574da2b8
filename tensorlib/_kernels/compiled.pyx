"""The compiled modules of the library: where they are found.

One shared object holds them all, this module too. With one for each, opening 70 of them took 10 of
the 40 ms of an import. Python finds a module in an object by the name of its function `PyInit_NAME`
alone, so that all it needs is a finder that knows which modules are in there.
"""

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location

# by setup.py: MODULES, their names; FROM_BELOW, what v4 takes of v3; NEEDED, of the processor
include "modules.pxi"


def spec_in(path, name):
    """The spec of the module `name` in the shared object at `path`."""
    return spec_from_file_location(name, path, loader=ExtensionFileLoader(name, path))


def load_from(path, name):
    """The module `name` in the shared object at `path`."""
    spec = spec_in(path, name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Finder:
    """Finds the modules of this shared object, for `sys.meta_path`."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return spec_in(__file__, name) if name in MODULES else None


sys.meta_path.insert(0, Finder)
