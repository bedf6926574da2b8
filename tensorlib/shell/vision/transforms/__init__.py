"""`tensorlib.utils.data.transforms`, where torchvision has it.

`v2` are the same: of the newer transforms those that the older ones have, too.
"""

from tensorlib._core.base.importing import parts_of
from tensorlib.utils.data.transforms import *  # noqa: F403
from tensorlib.utils.data.transforms import functional as functional

parts_of(__name__, "v2")
