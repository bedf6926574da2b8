"""`tensorlib.nn.zoo`, where torchvision has its models."""

from tensorlib.nn.zoo import *  # noqa: F403
