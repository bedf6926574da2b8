# Examples for pages of the reference; tools/site/examples.py says how they are read.
# ---- gru: nn.GRU(2, 3)
# ---- rnn_relu: nn.RNN(2, 3, nonlinearity="relu")
# ---- rnn_tanh: nn.RNN(2, 3)
layer, x = VALUE, tl.randn(5, 1, 2)
out, h = tl.NAME(x, tl.zeros(1, 1, 3), list(layer.parameters()), True, 1, 0.0, False, False)
out.shape, out.equal(layer(x)[0])
# ---- lstm
layer, x = nn.LSTM(2, 3), tl.randn(5, 1, 2)
state = tl.zeros(1, 1, 3), tl.zeros(1, 1, 3)
out, h, c = tl.lstm(x, state, list(layer.parameters()), True, 1, 0.0, False, False)
out.shape, out.equal(layer(x)[0])
# ---- lstm_cell
cell, x = nn.LSTMCell(2, 3), tl.ones(1, 2)
h, c = tl.lstm_cell(x, (tl.zeros(1, 3), tl.zeros(1, 3)), *cell.parameters())
h.shape, h.equal(cell(x)[0])
# ---- nn.AdaptiveAvgPool1d nn.AdaptiveMaxPool1d
layer = nn.NAME(3)
layer(tl.tensor([[1.0, 3.0, 2.0, 6.0, 4.0, 5.0]]))
# ---- nn.AdaptiveMaxPool2d
layer = nn.AdaptiveMaxPool2d((2, 1))    # whatever the size of the image
layer(tl.rand(1, 8, 13, 7)).shape
# ---- nn.AdaptiveAvgPool3d nn.AdaptiveMaxPool3d
layer = nn.NAME((2, 2, 1))              # whatever the size of the volume
layer(tl.rand(1, 8, 5, 6, 7)).shape
# ---- nn.AvgPool1d nn.MaxPool1d
layer = nn.NAME(2)
layer(tl.tensor([[1.0, 3.0, 2.0, 6.0]]))
# ---- nn.AvgPool3d nn.MaxPool3d
layer = nn.NAME(2)
layer(tl.rand(1, 8, 4, 6, 6)).shape
# ---- nn.LPPool1d
layer = nn.LPPool1d(2, kernel_size=2)   # the norm of each window
layer(tl.tensor([[3.0, 4.0, 5.0, 12.0]]))
# ---- nn.LPPool2d
layer = nn.LPPool2d(2, kernel_size=2)
layer(tl.ones(1, 1, 4, 4))
# ---- nn.LPPool3d
layer = nn.LPPool3d(2, kernel_size=2)
layer(tl.ones(1, 1, 4, 4, 2)).shape
# ---- nn.FractionalMaxPool2d
layer = nn.FractionalMaxPool2d(2, output_size=(5, 4))
layer(tl.rand(1, 3, 9, 7)).shape
# ---- nn.FractionalMaxPool3d
layer = nn.FractionalMaxPool3d(2, output_size=(5, 4, 3))
layer(tl.rand(1, 3, 9, 7, 6)).shape
# ---- nn.functional.fractional_max_pool2d
nn.functional.fractional_max_pool2d(tl.rand(1, 3, 9, 7), 2, output_size=(5, 4)).shape
# ---- nn.functional.fractional_max_pool3d
nn.functional.fractional_max_pool3d(tl.rand(1, 3, 9, 7, 6), 2, output_size=(5, 4, 3)).shape
# ---- nn.MaxUnpool1d
pool, unpool = nn.MaxPool1d(2, return_indices=True), nn.MaxUnpool1d(2)
largest, places = pool(tl.tensor([[1.0, 3.0, 6.0, 2.0]]))
unpool(largest, places)
# ---- nn.MaxUnpool2d
pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
largest, places = pool(tl.tensor([[[1.0, 3.0], [6.0, 2.0]]]))
unpool(largest, places)
# ---- nn.MaxUnpool3d
pool, unpool = nn.MaxPool3d(2, return_indices=True), nn.MaxUnpool3d(2)
largest, places = pool(tl.rand(1, 1, 4, 4, 4))
unpool(largest, places).count_nonzero()
# ---- nn.CircularPad1d nn.ReflectionPad1d nn.ReplicationPad1d nn.ZeroPad1d
nn.NAME(2)(tl.tensor([[1.0, 2.0, 3.0, 4.0]]))
# ---- nn.ConstantPad1d
nn.ConstantPad1d((1, 2), 7.0)(tl.tensor([[1.0, 2.0, 3.0]]))
# ---- nn.CircularPad2d nn.ReflectionPad2d nn.ReplicationPad2d
nn.NAME((1, 1, 0, 1))(tl.tensor([[[1.0, 2.0], [3.0, 4.0]]]))      # left, right, top, bottom
# ---- nn.ConstantPad2d
nn.ConstantPad2d((1, 1, 0, 1), 7.0)(tl.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
# ---- nn.CircularPad3d nn.ReflectionPad3d nn.ReplicationPad3d nn.ZeroPad3d
nn.NAME(1)(tl.rand(1, 2, 4, 5, 6)).shape
# ---- nn.ConstantPad3d
nn.ConstantPad3d(1, 7.0)(tl.rand(1, 2, 4, 5, 6)).shape
# ---- nn.BatchNorm3d nn.InstanceNorm3d
layer = nn.NAME(4)
y = layer(tl.randn(2, 4, 3, 5, 5))
y.shape, y[:, 0].mean().abs() < 1e-6
# ---- nn.InstanceNorm1d
layer = nn.InstanceNorm1d(2)
layer(tl.tensor([[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]]))
# ---- nn.SyncBatchNorm
layer = nn.SyncBatchNorm(4)             # without a process group: as BatchNorm
layer(tl.randn(8, 4, 5)).shape
# ---- nn.LazyBatchNorm2d nn.LazyInstanceNorm2d
layer = nn.NAME()
_ = layer(tl.randn(2, 3, 4, 4))         # now the number of channels is known
layer
# ---- nn.LazyBatchNorm3d nn.LazyInstanceNorm3d
layer = nn.NAME()
_ = layer(tl.randn(2, 3, 4, 4, 4))      # now the number of channels is known
layer
# ---- nn.LazyConv1d nn.LazyConvTranspose1d
layer = nn.NAME(8, kernel_size=3)
_ = layer(tl.randn(2, 3, 10))           # now the number of channels is known
layer
# ---- nn.LazyConvTranspose2d
layer = nn.LazyConvTranspose2d(8, kernel_size=3)
_ = layer(tl.randn(2, 3, 10, 10))       # now the number of channels is known
layer
# ---- nn.LazyConv3d nn.LazyConvTranspose3d
layer = nn.NAME(8, kernel_size=3)
_ = layer(tl.randn(2, 3, 5, 6, 6))      # now the number of channels is known
layer
# ---- nn.ConvTranspose1d
layer = nn.ConvTranspose1d(4, 2, kernel_size=4, stride=2, padding=1)
layer(tl.randn(1, 4, 10)).shape         # twice as long
# ---- nn.ConvTranspose3d
layer = nn.ConvTranspose3d(4, 2, kernel_size=4, stride=2, padding=1)
layer(tl.randn(1, 4, 3, 5, 5)).shape    # twice as large
# ---- nn.Bilinear
layer = nn.Bilinear(3, 4, 2)
layer(tl.randn(5, 3), tl.randn(5, 4)).shape
# ---- nn.ChannelShuffle
nn.ChannelShuffle(2)(tl.arange(4)[None, :, None])
# ---- nn.PixelUnshuffle
nn.PixelUnshuffle(2)(tl.arange(16).reshape(1, 1, 4, 4))
# ---- nn.Container
class Pair(nn.Container):               # an older name of nn.Module
    def forward(self, x):
        return self.second(self.first(x))
Pair(first=nn.Linear(2, 3), second=nn.ReLU())
# ---- nn.CosineSimilarity
x, y = tl.tensor([[1.0, 0.0], [1.0, 1.0]]), tl.tensor([[0.0, 2.0], [3.0, 3.0]])
nn.CosineSimilarity(dim=1)(x, y)
# ---- nn.CrossMapLRN2d
layer = nn.CrossMapLRN2d(3)
layer(tl.rand(1, 4, 2, 2)).shape
# ---- nn.Softmax2d
nn.Softmax2d()(tl.rand(1, 3, 4, 5)).sum(1).allclose(tl.ones(1, 4, 5))
# ---- nn.Threshold
nn.Threshold(0.5, value=9.0)(tl.tensor([0.2, 0.5, 0.7]))
# ---- nn.Fold
columns = nn.Unfold(2)(tl.ones(1, 1, 3, 3))
nn.Fold((3, 3), kernel_size=2)(columns)         # in how many windows each element was
# ---- nn.UpsamplingBilinear2d nn.UpsamplingNearest2d
nn.NAME(scale_factor=2)(tl.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))
# ---- nn.functional.upsample nn.functional.upsample_nearest nn.functional.upsample_bilinear
nn.functional.NAME(tl.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), scale_factor=2)
# ---- nn.CosineEmbeddingLoss
loss = nn.CosineEmbeddingLoss()
first, second = tl.tensor([[1.0, 0.0], [1.0, 0.0]]), tl.tensor([[1.0, 1.0], [1.0, 1.0]])
loss(first, second, tl.tensor([1, -1]))         # the first pair is alike, the second is not
# ---- nn.CTCLoss
loss = nn.CTCLoss()
scores = tl.randn(50, 2, 20).log_softmax(2)     # 50 steps of 2 sequences; letter 0 is none
letters = tl.randint(1, 20, (2, 10))
loss(scores, letters, tl.tensor([50, 40]), tl.tensor([10, 7]))
# ---- nn.GaussianNLLLoss
loss = nn.GaussianNLLLoss()
mean, target, variance = tl.tensor([1.0, 2.0]), tl.tensor([1.5, 2.0]), tl.tensor([0.25, 1.0])
loss(mean, target, variance)
# ---- nn.MarginRankingLoss
loss = nn.MarginRankingLoss(margin=0.5)
loss(tl.tensor([2.0, 1.0]), tl.tensor([1.0, 1.2]), tl.tensor([1, 1]))   # the first is to be larger
# ---- nn.TripletMarginLoss
anchor, like, unlike = tl.tensor([[0.0, 0.0]]), tl.tensor([[1.0, 0.0]]), tl.tensor([[0.0, 1.5]])
nn.TripletMarginLoss()(anchor, like, unlike)    # 1 - 1.5, and a margin of 1
# ---- nn.TripletMarginWithDistanceLoss
anchor, like, unlike = tl.tensor([[0.0, 0.0]]), tl.tensor([[1.0, 0.0]]), tl.tensor([[0.0, 1.5]])
nn.TripletMarginWithDistanceLoss(
    distance_function=lambda x, y: (x - y).abs().sum(-1))(anchor, like, unlike)
# ---- nn.GRUCell
cell, h = nn.GRUCell(4, 3), tl.zeros(2, 3)
for x in tl.randn(6, 2, 4):             # 6 steps of 2 sequences
    h = cell(x, h)
h.shape
# ---- nn.LSTMCell
cell, state = nn.LSTMCell(4, 3), (tl.zeros(2, 3), tl.zeros(2, 3))
for x in tl.randn(6, 2, 4):             # 6 steps of 2 sequences
    state = cell(x, state)
[each.shape for each in state]
# ---- nn.RNNBase
layer = nn.LSTM(4, 3)
isinstance(layer, nn.RNNBase), layer.mode
[name for name, _ in layer.named_parameters()]
# ---- nn.RNNCellBase
[isinstance(cell, nn.RNNCellBase) for cell in (nn.RNNCell(4, 3), nn.GRUCell(4, 3))]
# ---- nn.ParameterDict
scales = nn.ParameterDict({"first": tl.ones(2), "second": tl.zeros(3)})
scales["first"]
list(scales)
# ---- nn.TransformerDecoder
layer = nn.TransformerDecoderLayer(d_model=16, nhead=4, dim_feedforward=32, batch_first=True)
decoder = nn.TransformerDecoder(layer, num_layers=2)
decoder(tl.randn(2, 5, 16), tl.randn(2, 9, 16)).shape   # 5 outputs so far, 9 inputs
# ---- nn.UninitializedBuffer
layer = nn.LazyBatchNorm1d()
isinstance(layer.running_mean, nn.UninitializedBuffer)
_ = layer(tl.randn(4, 3))
layer.running_mean.shape
# ---- nn.functional.celu_ nn.functional.elu_ nn.functional.hardtanh_ nn.functional.leaky_relu_
# ---- nn.functional.relu_ nn.functional.selu_ celu_ selu_ rrelu_
x = tl.tensor([-2.0, 0.5, 3.0])
_ = CALL(x)
x
# ---- nn.functional.threshold_ threshold_
x = tl.tensor([-2.0, 0.5, 3.0])
_ = CALL(x, 1.0, 0.0)
x
# ---- dropout_ alpha_dropout_ feature_alpha_dropout_ feature_dropout_
x = tl.ones(2, 3)
_ = tl.NAME(x, 0.5, True)
x
# ---- feature_dropout
tl.feature_dropout(tl.ones(1, 3, 2), 0.5, True)         # whole channels
# ---- index_put_
x = tl.zeros(3)
tl.index_put_(x, (tl.tensor([0, 2]),), tl.tensor([5.0, 7.0]))
# ---- nn.functional.dropout2d
nn.functional.dropout2d(tl.ones(1, 3, 2, 2))            # whole channels
# ---- nn.functional.dropout3d
nn.functional.dropout3d(tl.ones(1, 6, 2, 2, 2)).sum((2, 3, 4))  # whole channels
# ---- nn.functional.softmax nn.functional.log_softmax nn.functional.softmin
nn.functional.NAME(tl.tensor([1.0, 2.0, 3.0]), dim=0)
# ---- nn.functional.relu
nn.functional.relu(tl.tensor([-2.0, 0.5, 3.0]))
# ---- nn.init.constant_
nn.init.constant_(tl.empty(2, 3), 0.5)
# ---- nn.init.dirac_
layer = nn.Conv1d(2, 2, kernel_size=3, padding=1, bias=False)
_ = nn.init.dirac_(layer.weight)
x = tl.rand(2, 5)
layer(x).equal(x)
# ---- nn.init.eye_ nn.init.ones_ nn.init.zeros_
nn.init.NAME(tl.empty(2, 3))
# ---- nn.init.orthogonal_
w = nn.init.orthogonal_(tl.empty(3, 5))
(w @ w.T).allclose(tl.eye(3), atol=1e-6)
# ---- nn.init.sparse_
nn.init.sparse_(tl.empty(4, 3), sparsity=0.5)
# ---- nn.init.normal_ nn.init.uniform_ nn.init.trunc_normal_
layer = nn.Linear(3, 2)
nn.init.NAME(layer.weight)
# ---- nn.init.kaiming_normal_ nn.init.kaiming_uniform_
layer = nn.Linear(100, 50)
_ = nn.init.NAME(layer.weight, nonlinearity="relu")
layer.weight.std()                      # near (2 / 100) ** 0.5, for a ReLU that follows
# ---- nn.init.xavier_normal_ nn.init.xavier_uniform_
layer = nn.Linear(100, 50)
_ = nn.init.NAME(layer.weight)
layer.weight.std()                      # near (2 / (100 + 50)) ** 0.5
# ---- optim.swa_utils.get_ema_avg_fn
from tensorlib.optim.swa_utils import AveragedModel, get_ema_avg_fn
model = nn.Linear(1, 1)
average = AveragedModel(model, avg_fn=get_ema_avg_fn(0.9))
for weight in (1.0, 2.0):
    _ = nn.init.constant_(model.weight, weight)
    average.update_parameters(model)
average.module.weight.item()            # 0.9 * 1 + 0.1 * 2
# ---- optim.swa_utils.get_ema_multi_avg_fn
from tensorlib.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
model = nn.Linear(1, 1)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
for weight in (1.0, 2.0):
    _ = nn.init.constant_(model.weight, weight)
    average.update_parameters(model)
average.module.weight.item()            # 0.9 * 1 + 0.1 * 2
# ---- optim.swa_utils.get_swa_avg_fn
from tensorlib.optim.swa_utils import AveragedModel, get_swa_avg_fn
model = nn.Linear(1, 1)
average = AveragedModel(model, avg_fn=get_swa_avg_fn())
for weight in (1.0, 2.0, 6.0):
    _ = nn.init.constant_(model.weight, weight)
    average.update_parameters(model)
average.module.weight.item()
# ---- optim.swa_utils.get_swa_multi_avg_fn
from tensorlib.optim.swa_utils import AveragedModel, get_swa_multi_avg_fn
model = nn.Linear(1, 1)
average = AveragedModel(model, multi_avg_fn=get_swa_multi_avg_fn())
for weight in (1.0, 2.0, 6.0):
    _ = nn.init.constant_(model.weight, weight)
    average.update_parameters(model)
average.module.weight.item()
# ---- nn.zoo.BasicBlock
from tensorlib.nn.zoo import BasicBlock
BasicBlock(16, 32, stride=2)(tl.randn(1, 16, 8, 8)).shape
# ---- nn.zoo.ResNet
from tensorlib.nn.zoo import ResNet
model = ResNet([1, 1, 1, 1], num_classes=10, small_images=True)
model(tl.randn(2, 3, 16, 16)).shape
