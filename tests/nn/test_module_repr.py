"""What modules show of their options: the texts are PyTorch's."""

from collections import OrderedDict

from cases import each

import tensorlib as tl
from tensorlib import nn

# How a module is made, and what stands in the brackets after its name.
TEXTS = """
ReLU(True) -> inplace=True
Threshold(0.3, -7.0) -> threshold=0.3, value=-7.0
Threshold(1, 2, True) -> threshold=1, value=2, inplace=True
Hardtanh() -> min_val=-1.0, max_val=1.0
Hardtanh(-2.0, 3.0, True) -> min_val=-2.0, max_val=3.0, inplace=True
ReLU6(True) -> inplace=True
ELU() -> alpha=1.0
ELU(0.5, True) -> alpha=0.5, inplace=True
CELU(0.5) -> alpha=0.5
LeakyReLU() -> negative_slope=0.01
LeakyReLU(0.2, True) -> negative_slope=0.2, inplace=True
RReLU(0.1, 0.3) -> lower=0.1, upper=0.3
RReLU(inplace=True) -> lower=0.125, upper=0.3333333333333333, inplace=True
GELU() -> approximate='none'
GELU('tanh') -> approximate='tanh'
Softplus() -> beta=1.0, threshold=20.0
Softplus(2.0, 3.0) -> beta=2.0, threshold=3.0
Hardshrink() -> 0.5
Softshrink(0.7) -> 0.7
PReLU() -> num_parameters=1
PReLU(3, 0.1) -> num_parameters=3
Softmax(1) -> dim=1
LogSoftmax(-1) -> dim=-1
Softmin(0) -> dim=0
GLU() -> dim=-1
Dropout() -> p=0.5, inplace=False
Dropout(0.2, True) -> p=0.2, inplace=True
AlphaDropout(0.1) -> p=0.1, inplace=False
FeatureAlphaDropout(0.1, True) -> p=0.1, inplace=True
Conv1d(4, 6, 3) -> 4, 6, kernel_size=(3,), stride=(1,)
Conv2d(4, 6, 3, 2, 1, 2, 2, False, 'reflect') -> 4, 6, kernel_size=(3, 3), stride=(2, 2), \
padding=(1, 1), dilation=(2, 2), groups=2, bias=False, padding_mode=reflect
Conv2d(4, 6, (3, 2), padding='same') -> 4, 6, kernel_size=(3, 2), stride=(1, 1), padding=same
Conv3d(4, 6, 3, groups=2) -> 4, 6, kernel_size=(3, 3, 3), stride=(1, 1, 1), groups=2
Conv1d(4, 6, 3, padding=1, padding_mode='circular') -> 4, 6, kernel_size=(3,), stride=(1,), \
padding=(1,), padding_mode=circular
ConvTranspose1d(4, 6, 3) -> 4, 6, kernel_size=(3,), stride=(1,)
ConvTranspose2d(4, 6, 3, 2, 1, 1, 2, False, 2) -> 4, 6, kernel_size=(3, 3), stride=(2, 2), \
padding=(1, 1), dilation=(2, 2), output_padding=(1, 1), groups=2, bias=False
LazyConv2d(6, 3) -> 0, 6, kernel_size=(3, 3), stride=(1, 1)
MaxPool1d(2) -> kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False
MaxPool2d((2, 3), 1, 1, 2, ceil_mode=True) -> kernel_size=(2, 3), stride=1, padding=1, \
dilation=2, ceil_mode=True
AvgPool1d(2) -> kernel_size=(2,), stride=(2,), padding=(0,)
AvgPool2d(3, 2, 1) -> kernel_size=3, stride=2, padding=1
AvgPool3d(2) -> kernel_size=2, stride=2, padding=0
LPPool2d(2, 3, 1, True) -> norm_type=2, kernel_size=3, stride=1, ceil_mode=True
LPPool1d(1.5, 2) -> norm_type=1.5, kernel_size=2, stride=None, ceil_mode=False
MaxUnpool2d(2, 3, 1) -> kernel_size=(2, 2), stride=(3, 3), padding=(1, 1)
MaxUnpool1d(2) -> kernel_size=(2,), stride=(2,), padding=(0,)
AdaptiveAvgPool2d((None, 3)) -> output_size=(None, 3)
AdaptiveMaxPool1d(3) -> output_size=3
BatchNorm2d(4) -> 4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True
BatchNorm1d(4, 0.1, None, False, False) -> 4, eps=0.1, momentum=None, affine=False, bias=False, \
track_running_stats=False
InstanceNorm2d(4) -> 4, eps=1e-05, momentum=0.1, affine=False, bias=False, \
track_running_stats=False
InstanceNorm1d(4, 0.1, 0.3, True, True) -> 4, eps=0.1, momentum=0.3, affine=True, bias=True, \
track_running_stats=True
LayerNorm(6) -> (6,), eps=1e-05, elementwise_affine=True, bias=True
LayerNorm((8, 7), 0.1, bias=False) -> (8, 7), eps=0.1, elementwise_affine=True, bias=False
LayerNorm([7, 3], elementwise_affine=False) -> (7, 3), eps=1e-05, elementwise_affine=False, \
bias=False
GroupNorm(2, 4) -> 2, 4, eps=1e-05, affine=True, bias=True
GroupNorm(4, 4, 0.1, False) -> 4, 4, eps=0.1, affine=False, bias=False
GroupNorm(4, 4, bias=False) -> 4, 4, eps=1e-05, affine=True, bias=False
RMSNorm(6) -> (6,), eps=None, elementwise_affine=True
RMSNorm([8, 7], 0.1, False) -> (8, 7), eps=0.1, elementwise_affine=False
LocalResponseNorm(3) -> 3, alpha=0.0001, beta=0.75, k=1.0
LocalResponseNorm(2, 0.1, 0.5, 2.0) -> 2, alpha=0.1, beta=0.5, k=2.0
CrossMapLRN2d(3, 0.1, 0.5, 2) -> 3, alpha=0.1, beta=0.5, k=2
Embedding(9, 3) -> 9, 3
Embedding(9, 3, -2, 0.5, 1.0, True) -> 9, 3, padding_idx=7, max_norm=0.5, norm_type=1.0, \
scale_grad_by_freq=True
Embedding(9, 3, padding_idx=0) -> 9, 3, padding_idx=0
EmbeddingBag(9, 3) -> 9, 3, mode='mean'
EmbeddingBag(9, 3, 0.5, 1.0, True, 'sum', padding_idx=1) -> 9, 3, max_norm=0.5, norm_type=1.0, \
scale_grad_by_freq=True, mode='sum', padding_idx=1
ZeroPad2d(1) -> (1, 1, 1, 1)
ZeroPad1d((1, 2)) -> (1, 2)
ReflectionPad1d((1, 2)) -> (1, 2)
ReplicationPad2d(1) -> (1, 1, 1, 1)
CircularPad1d(1) -> (1, 1)
ConstantPad2d(1, 0.5) -> padding=(1, 1, 1, 1), value=0.5
ConstantPad1d((2, 1), 3.5) -> padding=(2, 1), value=3.5
PixelShuffle(2) -> upscale_factor=2
PixelUnshuffle(3) -> downscale_factor=3
ChannelShuffle(2) -> groups=2
Fold((5, 6), 2) -> output_size=(5, 6), kernel_size=2, dilation=1, padding=0, stride=1
Fold((5, 6), (2, 3), 1, 1, (2, 1)) -> output_size=(5, 6), kernel_size=(2, 3), dilation=1, \
padding=1, stride=(2, 1)
Unfold(3) -> kernel_size=3, dilation=1, padding=0, stride=1
Unfold((2, 3), 2, 1, 2) -> kernel_size=(2, 3), dilation=2, padding=1, stride=2
Upsample(scale_factor=2) -> scale_factor=2.0, mode='nearest'
Upsample((5, 3), mode='bilinear') -> size=(5, 3), mode='bilinear'
Upsample(scale_factor=(2, 1.5), mode='bicubic') -> scale_factor=(2.0, 1.5), mode='bicubic'
UpsamplingNearest2d(5) -> size=5, mode='nearest'
UpsamplingBilinear2d(scale_factor=2) -> scale_factor=2.0, mode='bilinear'
Flatten() -> start_dim=1, end_dim=-1
Flatten(0, 2) -> start_dim=0, end_dim=2
Unflatten(1, (2, 3)) -> dim=1, unflattened_size=(2, 3)
Linear(6, 3, False) -> in_features=6, out_features=3, bias=False
Bilinear(6, 5, 3) -> in1_features=6, in2_features=5, out_features=3, bias=True
Bilinear(6, 5, 3, False) -> in1_features=6, in2_features=5, out_features=3, bias=False
LSTM(3, 4) -> 3, 4
LSTM(3, 4, 2, False, True, 0.1, True, 2) -> 3, 4, proj_size=2, num_layers=2, bias=False, \
batch_first=True, dropout=0.1, bidirectional=True
GRU(3, 4, bidirectional=True) -> 3, 4, bidirectional=True
RNN(3, 4, nonlinearity='relu') -> 3, 4
RNNCell(3, 4) -> 3, 4
RNNCell(3, 4, False, 'relu') -> 3, 4, bias=False, nonlinearity=relu
LSTMCell(3, 4, False) -> 3, 4, bias=False
GRUCell(3, 4) -> 3, 4
"""


@each("line", TEXTS.strip().split("\n"))
def test_options(line):
    made, options = line.split(" -> ")
    module = eval(made, vars(nn).copy())
    assert repr(module) == f"{type(module).__name__}({options})"


def relu_and_tanh():
    return nn.Sequential(nn.ReLU(), nn.Tanh())


@each("module, lines", [
    (nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh(), nn.ReLU()]),
     ["ModuleList(", "  (0-1): 2 x ReLU()", "  (2): Tanh()", "  (3): ReLU()", ")"]),
    (nn.ModuleList([nn.Tanh(), relu_and_tanh(), relu_and_tanh(), relu_and_tanh()]),
     ["ModuleList(", "  (0): Tanh()", "  (1-3): 3 x Sequential(", "    (0): ReLU()",
      "    (1): Tanh()", "  )", ")"]),
    (nn.ModuleList(), ["ModuleList()"]),
    (nn.ModuleDict({"a": nn.ReLU(), "b": nn.Sequential(nn.Tanh())}),
     ["ModuleDict(", "  (a): ReLU()", "  (b): Sequential(", "    (0): Tanh()", "  )", ")"]),
    (nn.Container(a=nn.ReLU(), b=nn.Tanh()),
     ["Container(", "  (a): ReLU()", "  (b): Tanh()", ")"]),
    (nn.LinearCrossEntropyLoss(6, 5),
     ["LinearCrossEntropyLoss(",
      "  in_features=6, num_classes=5, out_features=(), bias=False, reduction=mean, "
      "ignore_index=None, label_smoothing=0.0, options=None",
      "  (linear): Linear(in_features=6, out_features=5, bias=False)", ")"]),
    (nn.LinearCrossEntropyLoss(6, 5, out_features=(2, 3), bias=True, reduction="sum",
            ignore_index=2, label_smoothing=0.1),
     ["LinearCrossEntropyLoss(",
      "  in_features=6, num_classes=5, out_features=(2, 3), bias=True, reduction=sum, "
      "ignore_index=2, label_smoothing=0.1, options=None",
      "  (linear): Linear(in_features=6, out_features=30, bias=True)", ")"]),
    (nn.ParameterDict(OrderedDict(b=tl.ones(2, 3), a=nn.Buffer(tl.ones(4)), c=3)),
     ["ParameterDict(", "    (b): Parameter containing: [tensorlib.FloatTensor of size 2x3]",
      "    (a): Parameter containing: [tensorlib.FloatTensor of size 4]",
      "    (c): Object of type: int", ")"]),
], ids=lambda value: type(value).__name__)
def test_modules_inside(module, lines):
    assert repr(module).split("\n") == lines


def test_parameters_and_buffers():
    numbers = tl.tensor([1.0, 2.5])
    assert repr(nn.Buffer(numbers)) == repr(numbers) == "tensor([1.0000, 2.5000])"
    assert repr(nn.Parameter(numbers)) == (
        "Parameter containing:\ntensor([1.0000, 2.5000], requires_grad=True)")
    assert repr(nn.UninitializedBuffer()) == "<UninitializedBuffer>"
