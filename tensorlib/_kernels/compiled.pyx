"""A finder for the compiled modules of the library.

One shared object holds all of them, and this module, too: opening 70 objects took 10 of the 40 ms
of an import. Python finds a module in an object by the name of its function `PyInit_NAME` alone, so
all that is needed is a finder that knows which modules are in it.
"""

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location

# written by setup.py: MODULES, their names; FROM_BELOW, those that v4 takes from v3; NEEDED, the
# processor flags
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
