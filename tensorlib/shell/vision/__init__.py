"""Datasets, transforms, models, boxes and grids of images under torchvision's names.

The first three are `tensorlib.utils.data.datasets`, `tensorlib.utils.data.transforms` and
`tensorlib.nn.zoo`.

>>> from tensorlib.vision import datasets, models, transforms
>>> datasets.MNIST is tensorlib.utils.data.datasets.MNIST
True
"""

from . import datasets as datasets
from . import models as models
from . import ops as ops
from . import transforms as transforms
from . import utils as utils

__all__ = ["datasets", "models", "ops", "transforms", "utils"]
