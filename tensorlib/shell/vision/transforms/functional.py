"""`tensorlib.utils.data.transforms.functional`, where torchvision has it."""

from tensorlib.utils.data.transforms.functional import *  # noqa: F403
