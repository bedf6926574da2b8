# Examples for pages of the reference; tools/site/examples.py says how they are read.
# ---- utils.data.Sampler
from tensorlib.utils.data import DataLoader, Sampler
class Descending(Sampler):
    def __init__(self, count):
        self.count = count
    def __iter__(self):
        return iter(range(self.count - 1, -1, -1))
    def __len__(self):
        return self.count
list(DataLoader([10, 20, 30], batch_size=2, sampler=Descending(3)))
# ---- utils.data.WorkerInfo
from tensorlib.utils.data import get_worker_info
get_worker_info() is None               # in a worker: its id, seed and dataset
# ---- utils.data.datasets.MNIST utils.data.datasets.FashionMNIST (raises)
# ---- utils.data.datasets.KMNIST (raises)
# ---- utils.data.datasets.CIFAR10 utils.data.datasets.CIFAR100 (raises)
from tensorlib.utils.data.datasets import NAME
NAME("downloads", train=True)           # reads what lies there, and downloads nothing
# ---- utils.data.datasets.DatasetFolder
import pathlib
from tensorlib.utils.data.datasets import DatasetFolder
for kind, text in ("apples", "3 1"), ("pears", "2 5"):
    pathlib.Path("fruit", kind).mkdir(parents=True)
    _ = pathlib.Path("fruit", kind, "first.txt").write_text(text)
def numbers(path):
    return tl.tensor([float(word) for word in open(path).read().split()])
fruit = DatasetFolder("fruit", loader=numbers, extensions=(".txt",))
fruit.classes, fruit[1]
# ---- utils.data.datasets.ImageFolder
import pathlib
from PIL import Image
from tensorlib.utils.data.datasets import ImageFolder
for kind in ("cats", "dogs"):
    pathlib.Path("animals", kind).mkdir(parents=True)
    Image.new("RGB", (8, 6)).save(f"animals/{kind}/first.png")
animals = ImageFolder("animals")
image, label = animals[1]
image.shape, animals.classes[label]
# ---- utils.data.datasets.VisionDataset
from tensorlib.utils.data.datasets import VisionDataset
class Noise(VisionDataset):
    def __getitem__(self, i):
        return self.transform(tl.rand(3, 8, 8)), i % 2
    def __len__(self):
        return 100
images = Noise(transform=lambda image: image.flip(-1))
images[3][0].shape
# ---- utils.data.transforms.CenterCrop utils.data.transforms.RandomCrop
# ---- utils.data.transforms.RandomResizedCrop utils.data.transforms.Resize
from tensorlib.utils.data import transforms
transforms.NAME((6, 4))(tl.rand(3, 8, 8)).shape
# ---- utils.data.transforms.ConvertImageDtype
from tensorlib.utils.data import transforms
transforms.ConvertImageDtype(tl.uint8)(tl.tensor([[[0.0, 0.5, 1.0]]]))
# ---- utils.data.transforms.GaussianBlur
from tensorlib.utils.data import transforms
transforms.GaussianBlur(3, sigma=1.0)(tl.eye(4)[None])
# ---- utils.data.transforms.Grayscale
from tensorlib.utils.data import transforms
transforms.Grayscale()(tl.eye(3)[:, :, None]).flatten()     # red, green and blue
# ---- utils.data.transforms.RandomGrayscale
from tensorlib.utils.data import transforms
transforms.RandomGrayscale(p=1.0)(tl.eye(3)[:, :, None])
# ---- utils.data.transforms.InterpolationMode utils.data.transforms.functional.InterpolationMode
from tensorlib.utils.data import transforms
shrink = transforms.Resize(2, interpolation=transforms.InterpolationMode.NEAREST)
shrink(tl.arange(16.0).reshape(1, 4, 4))
# ---- utils.data.transforms.Lambda
from tensorlib.utils.data import transforms
transforms.Lambda(lambda image: 1 - image)(tl.tensor([[[0.0, 0.25]]]))
# ---- utils.data.transforms.Pad
from tensorlib.utils.data import transforms
transforms.Pad(1, fill=9)(tl.ones(1, 1, 2))
# ---- utils.data.transforms.ToPILImage
from tensorlib.utils.data.transforms import ToPILImage
ToPILImage("L")
# ---- utils.data.transforms.PILToTensor: transforms.PILToTensor()
# ---- utils.data.transforms.functional.pil_to_tensor: transforms.functional.pil_to_tensor
import numpy as np
from tensorlib.utils.data import transforms
pixels = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)      # (H, W, C), or an image of Pillow's
VALUE(pixels)
# ---- utils.data.transforms.RandomAffine
from tensorlib.utils.data import transforms
change = transforms.RandomAffine(degrees=10, translate=(0.1, 0.1), scale=(0.9, 1.1))
change(tl.rand(3, 8, 8)).shape
# ---- utils.data.transforms.RandomRotation
from tensorlib.utils.data import transforms
transforms.RandomRotation((90, 90))(tl.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
# ---- utils.data.transforms.RandomApply
from tensorlib.utils.data import transforms
blurred = transforms.RandomApply([transforms.GaussianBlur(3)], p=0.3)
blurred(tl.rand(3, 8, 8)).shape
# ---- utils.data.transforms.RandomChoice utils.data.transforms.RandomOrder
from tensorlib.utils.data import transforms
change = transforms.NAME([transforms.RandomHorizontalFlip(p=1.0), transforms.Pad((1, 0))])
change(tl.tensor([[[1.0, 2.0]]]))
# ---- utils.data.transforms.RandomErasing
from tensorlib.utils.data import transforms
transforms.RandomErasing(p=1.0, scale=(0.2, 0.4))(tl.ones(1, 4, 4))
# ---- utils.data.transforms.RandomHorizontalFlip utils.data.transforms.RandomVerticalFlip
from tensorlib.utils.data import transforms
transforms.NAME(p=1.0)(tl.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
# ---- utils.data.transforms.functional.hflip utils.data.transforms.functional.vflip
from tensorlib.utils.data.transforms import functional
functional.NAME(tl.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
# ---- utils.data.transforms.functional.adjust_brightness
# ---- utils.data.transforms.functional.adjust_contrast
# ---- utils.data.transforms.functional.adjust_gamma
# ---- utils.data.transforms.functional.adjust_saturation
from tensorlib.utils.data.transforms import functional
image = tl.tensor([0.1, 0.5, 0.8, 0.3, 0.2, 0.6]).reshape(3, 1, 2)
functional.NAME(image, 2.0)
# ---- utils.data.transforms.functional.invert
from tensorlib.utils.data.transforms import functional
functional.invert(tl.tensor([[[0, 100, 255]]], dtype=tl.uint8))
# ---- utils.data.transforms.functional.affine
from tensorlib.utils.data.transforms import functional
image = tl.tensor([[[1.0, 2.0, 3.0]]])
functional.affine(image, angle=0, translate=(1, 0), scale=1.0, shear=0)     # one to the right
# ---- utils.data.transforms.functional.center_crop
from tensorlib.utils.data.transforms import functional
functional.center_crop(tl.arange(16).reshape(1, 4, 4), 2)
# ---- utils.data.transforms.functional.erase
from tensorlib.utils.data.transforms import functional
functional.erase(tl.ones(1, 3, 4), 0, 1, 2, 2, 0.0)         # from row 0, column 1: 2 x 2
# ---- utils.data.transforms.functional.gaussian_blur
from tensorlib.utils.data.transforms import functional
functional.gaussian_blur(tl.eye(4)[None], 3, sigma=1.0)
# ---- utils.data.transforms.functional.resized_crop
from tensorlib.utils.data.transforms import functional
functional.resized_crop(tl.rand(3, 8, 8), top=1, left=2, height=4, width=4, size=16).shape
# ---- serialization.add_safe_globals serialization.get_safe_globals
# ---- serialization.clear_safe_globals
import decimal
from tensorlib import serialization
serialization.add_safe_globals([decimal.Decimal])       # files of torch.save may have these
serialization.get_safe_globals()
serialization.clear_safe_globals()
# ---- serialization.LoadEndianness serialization.set_default_load_endianness
# ---- serialization.get_default_load_endianness
from tensorlib import serialization
serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
serialization.get_default_load_endianness()
serialization.set_default_load_endianness(None)
# ---- serialization.LoadError (raises)
import pathlib
_ = pathlib.Path("model.pt").write_bytes(b"no model")
tl.load("model.pt")
# ---- profiler.profile profiler.EventList profiler.Figures
from tensorlib.profiler import profile
x = tl.rand(100, 100)
with profile() as p:
    y = (x @ x).relu().sum()
found = p.key_averages()
[(each.key, each.count) for each in found]
# ---- profiler.ProfilerAction
from tensorlib.profiler import schedule
each_step = schedule(wait=1, warmup=1, active=2)
[each_step(step).name for step in range(4)]
# ---- profiler.ProfilerActivity profiler.supported_activities
from tensorlib.profiler import ProfilerActivity, profile, supported_activities
supported_activities()
with profile(activities=[ProfilerActivity.CPU]) as p:
    y = tl.rand(3).exp()
# ---- profiler.kineto_available
tl.profiler.kineto_available()
# ---- profiler.emit_nvtx (raises)
tl.profiler.emit_nvtx()
# ---- profiler.tensorboard_trace_handler
import os
from tensorlib.profiler import profile, tensorboard_trace_handler
with profile(on_trace_ready=tensorboard_trace_handler("traces", "first")) as p:
    y = tl.rand(3).exp()
[name.endswith(".pt.trace.json") for name in os.listdir("traces")]
# ---- utils.benchmark.Language
from tensorlib.utils.benchmark import Language, Timer
Timer("pass", language=Language.PYTHON)
# ---- utils.benchmark.Timer utils.benchmark.Measurement
from tensorlib.utils.benchmark import Timer
timer = Timer("x + 1", globals={"x": tl.rand(1000)}, label="addition")
measured = timer.timeit(100)
measured.number_per_run, measured.median < 1e-3
# ---- utils.benchmark.Compare
from tensorlib.utils.benchmark import Compare, Timer
results = [Timer(f"x.{name}()", globals={"x": tl.rand(size)}, label="functions", sub_label=name,
                 description=f"{size}").timeit(50)
           for name in ("exp", "tanh") for size in (100, 10_000)]
Compare(results).print()
# ---- utils.benchmark.select_unit
from tensorlib.utils.benchmark import select_unit
select_unit(0.0025), select_unit(3e-7)
# ---- utils.benchmark.TaskSpec
from tensorlib.utils.benchmark import TaskSpec
TaskSpec("x.exp()", setup="x = tl.rand(10)", label="exp", num_threads=2).title
# ---- utils.tensorboard.SummaryWriter
from tensorlib.utils.tensorboard import SummaryWriter
with SummaryWriter("runs/first") as log:
    for step in range(3):
        log.add_scalar("loss", 0.5 ** step, step)
# ---- utils.tensorboard.FileWriter
from tensorlib.utils.tensorboard import FileWriter
log = FileWriter("runs/first")
log.get_logdir()
log.close()
# ---- optim.scipy.minimize
from tensorlib.optim.scipy import minimize
x = tl.tensor([-1.0, 2.0], dtype=tl.float64, requires_grad=True)
result = minimize(lambda: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, [x])
result.success, x.detach().round(decimals=3)
