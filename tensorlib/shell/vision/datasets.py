"""`tensorlib.utils.data.datasets`, where torchvision has it."""

from tensorlib.utils.data.datasets import *  # noqa: F403
