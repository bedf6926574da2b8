"""`python -m tensorlib.as_torch script.py`: a script written for PyTorch, as it stands."""

import os
import subprocess
import sys
from pathlib import Path

import tensorlib as tl

SCRIPT = """
import importlib.metadata
import pickle
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
import torch.linalg
from torch import Tensor, nn as again
from torch.autograd import Function
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset
import torchvision
import torchvision.transforms.functional as TF
from torchvision import datasets, models, transforms
import beside

assert transforms.functional is TF is torchvision.transforms.functional
assert len(datasets.Digits(transform=transforms.ToTensor())) == 1797 and models.LeNet()
assert again is nn is torch.nn and F is nn.functional and isinstance(torch.ones(1), Tensor)
torch.manual_seed(0)
x = torch.randn(16, 3)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
for a, b in DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8):
    optimizer.zero_grad()
    F.mse_loss(model(a), b).backward()
    optimizer.step()
StepLR(optimizer, 1).step()
torch.linalg.inv(torch.eye(2))
assert torch.__version__ >= (2, 4) and torch.__version__ > "2.4"
assert torch.__version__.startswith("2.") and "tensorlib" in torch.version.__version__
assert importlib.metadata.version("torch") == torch.__version__
assert torch.torch is torch and torch._C._LinAlgError is torch.linalg.LinAlgError
try:
    import torch.nothing
except ModuleNotFoundError as error:
    print(error)
assert str(x.dtype) == "torch.float32" and x.type() == "torch.FloatTensor"
assert repr(x.half()[:1, 0]).endswith("dtype=torch.float16)")
assert str(x.shape) == "torch.Size([16, 3])"
assert str(x.layout) == "torch.strided" and str(torch.channels_last) == "torch.channels_last"
assert str(x.max(0)).startswith("torch.return_types.max(")
assert str(type(x)) == "<class 'torch.Tensor'>" and Tensor.__module__ == "torch"
assert pickle.loads(pickle.dumps([x, Tensor]))[1] is Tensor
print(torch.__name__, nn.__spec__.name, sys.argv[1:], __name__, beside.NAME)
"""


def run(folder, *arguments):
    path = os.pathsep.join([str(Path(tl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, "-m", "tensorlib.as_torch", *arguments], cwd=folder,
                          env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)


def test_a_script_that_imports_torch_runs(tmp_path):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "beside.py").write_text("import torch\nNAME = torch.nn.Linear.__name__\n")
    said = ["No module named 'torch.nothing'",
            "torch tensorlib.nn ['--lr', '1'] __main__ Linear"]
    for where, arguments in ((tmp_path, ["scripts/train.py"]), (folder, ["-m", "train"])):
        done = run(where, *arguments, "--lr", "1")
        assert done.stdout.splitlines() == said, done.stderr


def test_without_a_script_it_says_how_it_is_called(tmp_path):
    for arguments in ([], ["-x"], ["-m"]):
        done = run(tmp_path, *arguments)
        assert done.returncode == 1 and done.stderr.startswith("usage: python -m tensorlib")


# what PyTorch 2.13 writes by `pickle.dumps({"view": x[:, 1], "weight": Parameter(ones(1))})`
PICKLED = """
eNrVkTtPwzAQgPOilcpTMLExhqWCUmiYQIBYIt5LFmSFxDRGIa6dSxFIlbJUPJQNszEw8tfYWJGQ4GiQKBJ/ACvn
OJdPZ9/n3Hp4NbTB6Cm7sLqMXqhiDLgMojrJgMWpKqaJpCcZi0MCNEm5JN2Gukd6vMRSfPltqoopEnM/JKeSn5OT
S6ApUhszuqblxl0tfn/cfps7e96frefGzouJc09otjeFW3ckBx7wmHSpTBlPhI6AN45/YgYQU0KTkPmJMG68Gibh
skNJyq5oKsyesGxvBJNpxCWIEdfwTPxiCYiKa3nWVw2etEXVtbIM97S96hdcHllowaCF2jYeHI7KZE3o3gQyq02n
6TjLLWfBWVpxRFk36GTCdCu7IKwDrHYstL9Y3a9XtOGRr+G0jg9GjvG0rvrqULm6a/SVa/bVbTGK/cc0AGwflY/u
yZBKGm6xANDi/KEC5IvKBWXtCFRkDF1Kx5f+OQUqEYwsO6pufvxf4a3Wwuqi02g0fwnX/xT+w6JwfUh2KVdzdZSL
cRtNfgu8GayucZXVPwHOe+OT
"""


def test_tensors_that_pytorch_pickled_are_read(tmp_path):
    (tmp_path / "read.py").write_text(f"""
import base64, pickle, zlib
import torch
found = pickle.loads(zlib.decompress(base64.b64decode('''{PICKLED}''')))
assert found["view"].tolist() == [1.0, 4.0] and found["view"].stride() == (3,)
assert type(found["weight"]) is torch.nn.Parameter and found["weight"].requires_grad
""")
    done = run(tmp_path, "read.py")
    assert not done.returncode, done.stderr


def test_processes_that_are_started_anew_import_torch(tmp_path):
    (tmp_path / "spawn.py").write_text("""
import multiprocessing
import torch

def total(n):
    return torch.ones(n).sum().item()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(total, [1, 2]) == [1.0, 2.0]
""")
    done = run(tmp_path, "spawn.py")
    assert not done.returncode, done.stderr
