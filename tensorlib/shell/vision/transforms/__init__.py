"""`tensorlib.utils.data.transforms`, where torchvision has it."""

from tensorlib.utils.data.transforms import *  # noqa: F403
from tensorlib.utils.data.transforms import functional as functional
