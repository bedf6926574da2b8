"""Names of the shell, imported as scripts for PyTorch do."""

import tensorlib.backends.cudnn
import tensorlib.cuda
from tensorlib import amp
from tensorlib.amp import GradScaler, autocast
from tensorlib.compiler import is_compiling
from tensorlib.data import DataLoader, TensorDataset
from tensorlib.data.dataset import Subset
from tensorlib.serialization import LoadError
from tensorlib.types import Number

import tensorlib as tl

scaler: GradScaler = amp.GradScaler("cpu", enabled=False)
half: Number = 0.5
there: bool = tensorlib.cuda.is_available() or tl.cuda.is_available() or is_compiling()
tensorlib.backends.cudnn.benchmark = there
with autocast("cpu"):
    loss: tl.Tensor = tl.ones(2).sum() * half
points = TensorDataset(tl.zeros(4, 2))
batches: int = len(DataLoader(Subset(points, [0, 1]), batch_size=2))
erfcx: tl.Tensor = tl.special.erfcx(loss)
try:
    tl.load("nothing.npy")
except (LoadError, OSError):
    pass
