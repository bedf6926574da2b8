"""Datasets, transforms, models, boxes and grids of images under torchvision's names.

The first three are `tensorlib.utils.data.datasets`, `tensorlib.utils.data.transforms` and
`tensorlib.nn.zoo`.

>>> from tensorlib.vision import datasets, models, transforms
>>> datasets.MNIST is tensorlib.utils.data.datasets.MNIST
True
"""

from . import datasets as datasets
from . import io as io
from . import models as models
from . import ops as ops
from . import transforms as transforms
from . import utils as utils

__version__ = "0.28.0"                     # of torchvision, whose names are here

__all__ = ["datasets", "io", "models", "ops", "transforms", "utils"]
