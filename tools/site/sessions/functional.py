# Examples for pages of the reference; tools/site/examples.py says how they are read.
# ---- conv1d nn.functional.conv1d
x, weight = tl.tensor([[1.0, 2.0, 4.0, 8.0]]), tl.tensor([[[-1.0, 1.0]]])
CALL(x, weight)  # one channel in, one out: what each element is above the one before
# ---- conv2d nn.functional.conv2d
x, weight = tl.eye(4)[None], tl.ones(1, 1, 2, 2)
CALL(x, weight, stride=2)
# ---- conv3d nn.functional.conv3d
x, weight = tl.randn(2, 3, 8, 8, 8), tl.randn(5, 3, 3, 3, 3)
CALL(x, weight, padding=1).shape
# ---- conv_transpose1d nn.functional.conv_transpose1d
x, weight = tl.tensor([[1.0, 2.0, 4.0]]), tl.tensor([[[1.0, 0.5]]])
CALL(x, weight, stride=2)
# ---- conv_transpose2d nn.functional.conv_transpose2d
x, weight = tl.tensor([[[1.0, 2.0]]]), tl.ones(1, 1, 2, 2)
CALL(x, weight, stride=2)
# ---- conv_transpose3d nn.functional.conv_transpose3d
x, weight = tl.randn(2, 3, 4, 4, 4), tl.randn(3, 5, 2, 2, 2)
CALL(x, weight, stride=2).shape
# ---- bilinear nn.functional.bilinear
x, y, weight = tl.randn(5, 3), tl.randn(5, 4), tl.randn(2, 3, 4)
CALL(x, y, weight).shape
# ---- nn.functional.linear
x, bias = tl.tensor([[1.0, 2.0]]), tl.tensor([0.0, 1.0])
weight = tl.tensor([[1.0, 0.0], [0.5, 0.5]])
nn.functional.linear(x, weight, bias)
# ---- binary_cross_entropy_with_logits nn.functional.binary_cross_entropy_with_logits
logits, labels = tl.tensor([2.0, -1.0, 0.0]), tl.tensor([1.0, 0.0, 1.0])
CALL(logits, labels)
# ---- nn.functional.binary_cross_entropy
chances, labels = tl.tensor([0.9, 0.2, 0.5]), tl.tensor([1.0, 0.0, 1.0])
nn.functional.binary_cross_entropy(chances, labels)
# ---- cosine_embedding_loss nn.functional.cosine_embedding_loss
x, y = tl.tensor([[1.0, 0.0], [1.0, 0.0]]), tl.tensor([[1.0, 1.0], [1.0, 1.0]])
CALL(x, y, tl.tensor([1, -1]))  # the first two are to be alike, the others not
# ---- cosine_similarity nn.functional.cosine_similarity
x, y = tl.tensor([[1.0, 0.0], [1.0, 1.0]]), tl.tensor([[0.0, 2.0], [3.0, 3.0]])
CALL(x, y)
# ---- pairwise_distance nn.functional.pairwise_distance
x, y = tl.tensor([[0.0, 0.0], [1.0, 1.0]]), tl.tensor([[3.0, 4.0], [1.0, 2.0]])
CALL(x, y)
# ---- hinge_embedding_loss nn.functional.hinge_embedding_loss
distances, alike = tl.tensor([0.2, 0.7]), tl.tensor([1.0, -1.0])
CALL(distances, alike)
# ---- margin_ranking_loss nn.functional.margin_ranking_loss
CALL(tl.tensor([2.0, 1.0]), tl.tensor([1.0, 1.2]), tl.tensor([1, 1]))
# ---- triplet_margin_loss nn.functional.triplet_margin_loss
anchor, like, unlike = tl.tensor([[0.0, 0.0]]), tl.tensor([[1.0, 0.0]]), tl.tensor([[0.0, 1.5]])
CALL(anchor, like, unlike)
# ---- nn.functional.triplet_margin_with_distance_loss
anchor, like, unlike = tl.tensor([[0.0, 0.0]]), tl.tensor([[1.0, 0.0]]), tl.tensor([[0.0, 1.5]])
distance = lambda x, y: (x - y).abs().sum(-1)
nn.functional.NAME(anchor, like, unlike, distance_function=distance)
# ---- ctc_loss nn.functional.ctc_loss
scores = tl.randn(50, 2, 20).log_softmax(2)  # 50 steps of 2 sequences; letter 0 is none
letters = tl.randint(1, 20, (2, 10))
CALL(scores, letters, tl.tensor([50, 40]), tl.tensor([10, 7]))
# ---- nn.functional.gaussian_nll_loss
mean, target, variance = tl.tensor([1.0, 2.0]), tl.tensor([1.5, 2.0]), tl.tensor([0.25, 1.0])
nn.functional.gaussian_nll_loss(mean, target, variance)
# ---- nn.functional.huber_loss nn.functional.l1_loss nn.functional.mse_loss
# ---- nn.functional.smooth_l1_loss
predicted, target = tl.tensor([1.0, 2.0, 5.0]), tl.tensor([1.5, 2.0, 2.0])
nn.functional.NAME(predicted, target)
nn.functional.NAME(predicted, target, reduction="none")
# ---- nn.functional.kl_div
p, q = tl.tensor([0.5, 0.5]), tl.tensor([0.9, 0.1])
nn.functional.kl_div(q.log(), p, reduction="sum")  # how far q is from p
# ---- nn.functional.nll_loss
scores = tl.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
nn.functional.nll_loss(scores.log_softmax(1), tl.tensor([0, 2]))
# ---- nn.functional.multi_margin_loss
scores = tl.tensor([[0.9, 0.2, 0.4]])
nn.functional.multi_margin_loss(scores, tl.tensor([0]))  # each other is to be lower by 1
# ---- nn.functional.multilabel_margin_loss
scores = tl.tensor([[0.9, 0.2, 0.4]])
nn.functional.multilabel_margin_loss(scores, tl.tensor([[0, 2, -1]]))  # 0 and 2 are right
# ---- nn.functional.multilabel_soft_margin_loss
scores, right = tl.tensor([[0.9, -0.2, 0.4]]), tl.tensor([[1.0, 0.0, 1.0]])
nn.functional.multilabel_soft_margin_loss(scores, right)
# ---- nn.functional.soft_margin_loss
nn.functional.soft_margin_loss(tl.tensor([0.9, -0.2]), tl.tensor([1.0, -1.0]))
# ---- nn.functional.poisson_nll_loss
log_rates, counts = tl.tensor([0.0, 1.0]), tl.tensor([1.0, 3.0])
nn.functional.poisson_nll_loss(log_rates, counts)
# ---- layer_norm nn.functional.layer_norm rms_norm nn.functional.rms_norm
CALL(tl.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), (3,))
# ---- group_norm nn.functional.group_norm
x = tl.arange(8.0).reshape(1, 4, 2)
CALL(x, 2)  # two channels together
# ---- nn.functional.batch_norm
x, mean, variance = tl.randn(100, 3), tl.zeros(3), tl.ones(3)
y = nn.functional.batch_norm(x, mean, variance, training=True)
y.std(0), mean  # the running mean has begun to follow
# ---- nn.functional.instance_norm
nn.functional.instance_norm(tl.tensor([[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]]))
# ---- nn.functional.local_response_norm
nn.functional.local_response_norm(tl.ones(1, 4, 2), size=3).shape
# ---- gru_cell: nn.GRUCell(2, 3)
# ---- rnn_tanh_cell: nn.RNNCell(2, 3)
# ---- rnn_relu_cell: nn.RNNCell(2, 3, nonlinearity="relu")
cell, x, h = VALUE, tl.ones(1, 2), tl.zeros(1, 3)
tl.NAME(x, h, *cell.parameters()).equal(cell(x, h))
# ---- nn.functional.adaptive_avg_pool2d: (2, 3)
# ---- nn.functional.adaptive_max_pool2d: (2, 3)
# ---- nn.functional.avg_pool2d: 2
# ---- nn.functional.max_pool2d: 2
nn.functional.NAME(tl.arange(24.0).reshape(1, 4, 6), VALUE)
# ---- nn.functional.lp_pool2d
nn.functional.lp_pool2d(tl.ones(1, 4, 4), 2, kernel_size=2)  # the norm of each window
# ---- nn.functional.adaptive_avg_pool3d: (2, 2, 1)
# ---- nn.functional.adaptive_max_pool3d: (2, 2, 1)
# ---- nn.functional.avg_pool3d: 2
# ---- nn.functional.max_pool3d: 2
# ---- nn.functional.lp_pool3d: 2, 2
nn.functional.NAME(tl.rand(1, 8, 4, 6, 6), VALUE).shape
# ---- nn.functional.max_unpool1d
x = tl.tensor([[1.0, 3.0, 6.0, 2.0]])
largest, places = nn.functional.max_pool1d(x, 2, return_indices=True)
nn.functional.max_unpool1d(largest, places, 2)
# ---- nn.functional.max_unpool2d
x = tl.tensor([[[1.0, 3.0], [6.0, 2.0]]])
largest, places = nn.functional.max_pool2d(x, 2, return_indices=True)
nn.functional.max_unpool2d(largest, places, 2)
# ---- nn.functional.max_unpool3d
x = tl.rand(1, 1, 4, 4, 4)
largest, places = nn.functional.max_pool3d(x, 2, return_indices=True)
nn.functional.max_unpool3d(largest, places, 2).count_nonzero()
# ---- nn.functional.affine_grid nn.functional.grid_sample
image = tl.arange(4.0).reshape(1, 1, 2, 2)
turned = tl.tensor([[[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]]])  # by a quarter, about the centre
grid = nn.functional.affine_grid(turned, (1, 1, 2, 2), align_corners=False)
nn.functional.grid_sample(image, grid, align_corners=False)
# ---- nn.functional.channel_shuffle
nn.functional.channel_shuffle(tl.arange(4)[None, :, None], 2).flatten()
# ---- nn.functional.pixel_shuffle
nn.functional.pixel_shuffle(tl.arange(4).reshape(1, 4, 1, 1), 2)
# ---- nn.functional.pixel_unshuffle
nn.functional.pixel_unshuffle(tl.arange(4).reshape(1, 1, 2, 2), 2).flatten()
# ---- nn.functional.embedding_bag
table = tl.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
nn.functional.embedding_bag(tl.tensor([0, 1, 2]), table, tl.tensor([0, 2]))  # means of 2 and of 1
# ---- nn.functional.unfold
nn.functional.unfold(tl.arange(9.0).reshape(1, 1, 3, 3), kernel_size=2)  # a column for each window
# ---- nn.functional.fold
columns = nn.functional.unfold(tl.ones(1, 1, 3, 3), kernel_size=2)
nn.functional.fold(columns, (3, 3), kernel_size=2)  # in how many windows each element was
# ---- nn.functional.hardtanh nn.functional.softplus
nn.functional.NAME(tl.tensor([-2.0, 0.0, 0.5, 3.0]))
# ---- nn.functional.threshold
nn.functional.threshold(tl.tensor([0.2, 0.5, 0.7]), 0.5, 9.0)
# ---- nn.functional.scaled_dot_product_attention
q, k, v = tl.randn(2, 4, 5, 8), tl.randn(2, 4, 9, 8), tl.randn(2, 4, 9, 8)  # 4 heads of 8
nn.functional.scaled_dot_product_attention(q, k, v).shape
# ---- nn.functional.multi_head_attention_forward
layer, x = nn.MultiheadAttention(8, 2), tl.randn(5, 1, 8)
out, weights = nn.functional.multi_head_attention_forward(
    x, x, x, 8, 2, layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0,
    layer.out_proj.weight, layer.out_proj.bias)
out.allclose(layer(x, x, x)[0]), weights.shape
# ---- embedding
table = tl.tensor([[1.0, 2.0], [3.0, 4.0]])
tl.embedding(table, tl.tensor([1, 0, 1]))  # the table first
# ---- batch_norm
x = tl.tensor([[1.0, 2.0], [3.0, 6.0]])
tl.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
# ---- instance_norm
x = tl.tensor([[[1.0, 3.0]]])
tl.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
# ---- kl_div
logs, target = tl.tensor([0.5, 0.5]).log(), tl.tensor([0.25, 0.75])
tl.kl_div(logs, target)
tl.kl_div(logs, target, reduction=1)  # the mean
# ---- poisson_nll_loss
rates, counts = tl.tensor([0.0, 1.0]), tl.tensor([1.0, 2.0])
tl.poisson_nll_loss(rates, counts, log_input=True, full=False, eps=1e-8, reduction=2)  # the sum
