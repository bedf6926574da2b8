"""`tensorlib.utils.data`, under an older name: this module and its parts are that one's."""

import sys

from tensorlib.utils import data
from tensorlib.utils.data import *  # noqa: F403

for name, module in list(sys.modules.items()):
    if f"{name}.".startswith(f"{data.__name__}."):
        sys.modules[name.replace(data.__name__, __name__, 1)] = module
