"""What functions of networks refuse: the type of each error, its first words and what it got."""

import re

import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F
from tensorlib.nn.functional.interpolation import resample

VECTOR = tl.tensor([1.0, 2.0, 3.0])
ROWS = tl.ones(2, 3)
INTS = tl.ones(2, 3, dtype=tl.int64)
IMAGES = tl.ones(1, 2, 4, 4)
LINES = tl.ones(1, 2, 4)
HEADS = tl.ones(1, 3, 2, 4)
CLASSES = tl.tensor([0, 2])
TABLE = tl.ones(4, 3)
MIXED = "should have one dtype"
PACKED = ([tl.ones(4, 3), tl.ones(4, 4), tl.ones(4), tl.ones(4)], True, 1, 0.0, False, False)


def attention(**options):
    """Two queries of two heads over two keys, with given projections in place of a part."""
    x = tl.ones(2, 1, 4)
    return F.multi_head_attention_forward(
        x, x, x, 4, 2, tl.ones(12, 4), None, None, None, False, 0.0, tl.ones(4, 4), None, **options)


VALUE, RUN, TYPE = ValueError, RuntimeError, TypeError
CALLS = [
    # activations
    (RUN, "gelu: approximate must be 'none' or 'tanh', got 'sigmoid'",
     lambda: F.gelu(VECTOR, "sigmoid")),
    (TYPE, "softmax: input must be a Tensor, not list", lambda: F.softmax([1.0])),
    (RUN, "linear: dtypes differ: an input of tensorlib.float64, a weight of tensorlib.float32; "
     "convert the input: input.to(tensorlib.float32), or the model: model.to(tensorlib.float64)",
     lambda: F.linear(ROWS.double(), ROWS)),
    (RUN, "celu: alpha must not be 0", lambda: F.celu(VECTOR, 0.0)),
    (RUN, "softshrink: lambd must be 0 or more, got -0.5", lambda: F.softshrink(VECTOR, -0.5)),
    (tl.OutOfRangeError, "threshold: 300 does not fit in tensorlib.uint8, which holds 0 to 255",
     lambda: F.threshold(INTS.byte(), 1, 300)),
    (tl.OutOfRangeError, "threshold: 1000000.0 does not fit in tensorlib.float16",
     lambda: F.threshold(VECTOR.half(), 1e6, 0.0)),
    (VALUE, "hardtanh: min_val must not be above max_val, got 2.0, 1.0",
     lambda: F.hardtanh(VECTOR, 2.0, 1.0)),
    (RUN, "prelu: input is tensorlib.float32, but weight tensorlib.float64",
     lambda: F.prelu(VECTOR, tl.ones(1, dtype=tl.float64))),
    # dropout
    (RUN, "dropout1d: expected 2-D or 3-D input, got 1 dims", lambda: F.dropout1d(VECTOR)),
    (RUN, "dropout1d: expected 2-D or 3-D input, got 4 dims", lambda: F.dropout1d(IMAGES)),
    (RUN, "feature_alpha_dropout: expects an input with at least 2 dims, got 1",
     lambda: F.feature_alpha_dropout(VECTOR, 0.5, True)),
    # attention
    (RUN, "scaled_dot_product_attention: expected query, key and value to have the same dtype, got "
     "tensorlib.float32, tensorlib.float32 and tensorlib.float64",
     lambda: F.scaled_dot_product_attention(ROWS, ROWS, ROWS.double())),
    (RUN, "scaled_dot_product_attention: explicit attn_mask should not be set when is_causal=True",
     lambda: F.scaled_dot_product_attention(ROWS, ROWS, ROWS, tl.ones(2, 2), is_causal=True)),
    (RUN, "scaled_dot_product_attention: the heads of query must be a multiple of those of key and "
     "value, got (1, 3, 2, 4) and (1, 2, 2, 4)",
     lambda: F.scaled_dot_product_attention(HEADS, HEADS[:, :2], HEADS[:, :2], enable_gqa=True)),
    (RUN, "got (2, 3) and (2, 3)",
     lambda: F.scaled_dot_product_attention(ROWS, ROWS, ROWS, enable_gqa=True)),
    (RUN, "got (1, 3, 2, 4) and (1, 0, 2, 4)",
     lambda: F.scaled_dot_product_attention(HEADS, HEADS[:, :0], HEADS[:, :0], enable_gqa=True)),
    (AssertionError, "multi_head_attention_forward: expecting static keys and values of shape "
     "(2, 'S', 2), got (2, 5, 3)", lambda: attention(static_k=tl.ones(2, 5, 3))),
    (AssertionError, "(2, 'S', 2), got (2, 2)", lambda: attention(static_v=tl.ones(2, 2))),
    (RUN, "multi_head_attention_forward: The shape of the 2D attn_mask is (2, 3), but should be ",
     lambda: attention(attn_mask=tl.zeros(2, 3))),
    # convolutions
    (RUN, "conv2d: stride should be one number or 2, got (1, 1, 1)",
     lambda: F.conv2d(IMAGES, tl.ones(1, 2, 1, 1), stride=(1, 1, 1))),
    (RUN, "conv2d: input (tensorlib.float32), weight (tensorlib.float64) and bias " + MIXED,
     lambda: F.conv2d(IMAGES, tl.ones(1, 2, 1, 1, dtype=tl.float64))),
    (RUN, "conv1d: input (tensorlib.float32), weight (tensorlib.float32) and bias " + MIXED,
     lambda: F.conv1d(LINES, tl.ones(1, 2, 1), tl.ones(1, dtype=tl.float64))),
    (RUN, "conv1d: padding='same' is not supported for strided convolutions",
     lambda: F.conv1d(LINES, tl.ones(1, 2, 1), stride=2, padding="same")),
    (RUN, "conv1d: padding must be 'valid', 'same' or numbers, got 'full'",
     lambda: F.conv1d(LINES, tl.ones(1, 2, 1), padding="full")),
    (RUN, "conv_transpose1d: the output of size (0,) is too small",
     lambda: F.conv_transpose1d(LINES, tl.ones(2, 1, 1), padding=2)),
    # pooling
    (VALUE, "fractional_max_pool2d: output_ratio must be one number or 2, got (0.5,)",
     lambda: F.fractional_max_pool2d(IMAGES, 2, output_ratio=(0.5,))),
    (VALUE, "fractional_max_pool2d: output_ratio must be between 0 and 1, got (0.5, 1.0)",
     lambda: F.fractional_max_pool2d(IMAGES, 2, output_ratio=(0.5, 1.0))),
    (VALUE, "fractional_max_pool2d: output_ratio must be between 0 and 1, got 0.0",
     lambda: F.fractional_max_pool2d(IMAGES, 2, output_ratio=0.0)),
    (RUN, "fractional_max_pool2d: _random_samples must have shape (1, 2, 2), got (1, 2, 3)",
     lambda: F.fractional_max_pool2d(IMAGES, 2, 2, _random_samples=tl.ones(1, 2, 3))),
    (RUN, "avg_pool2d: divisor must not be 0, got 0",
     lambda: F.avg_pool2d(IMAGES, 2, divisor_override=0)),
    (RUN, "fold: expected 2D or 3D input, got shape (4,)", lambda: F.fold(tl.ones(4), (2, 2), 2)),
    (VALUE, "max_unpool1d: invalid output_size (10,), near (8,) is expected",
     lambda: F.max_unpool1d(LINES, LINES.long(), 2, output_size=(10,))),
    (VALUE, "max_unpool1d: invalid output_size (6,), near (8,) is expected",
     lambda: F.max_unpool1d(LINES, LINES.long(), 2, output_size=(6,))),
    (VALUE, "max_unpool2d: invalid output_size (8,), near (8, 8) is expected",
     lambda: F.max_unpool2d(IMAGES, IMAGES.long(), 2, output_size=(8,))),
    (RUN, "max_unpool1d: indices should be int64 and of the input's shape, got tensorlib.int32 of "
     "shape (1, 2, 4)", lambda: F.max_unpool1d(LINES, LINES.int(), 2)),
    (RUN, "got tensorlib.int64 of shape (1, 2, 2)",
     lambda: F.max_unpool1d(LINES, LINES[..., :2].long(), 2)),
    (RUN, "max_unpool1d: found an invalid index in a plane of (8,)",
     lambda: F.max_unpool1d(LINES, LINES.long() * 8, 2)),
    (RUN, "max_unpool1d: found an invalid index in a plane of (8,)",
     lambda: F.max_unpool1d(LINES, LINES.long() * -1, 2)),
    # images of other sizes
    (VALUE, "interpolate: input and output must have the same number of spatial dimensions, got "
     "(4, 4) and (2,)", lambda: F.interpolate(IMAGES, (2,))),
    (NotImplementedError, "interpolate: expects 3 to 5 dims, got shape (2, 3)",
     lambda: F.interpolate(ROWS, 2)),
    (NotImplementedError, "interpolate: expects 3 to 5 dims, got shape (1, 1, 1, 1, 1, 1)",
     lambda: F.interpolate(tl.ones(1, 1, 1, 1, 1, 1), 2)),
    (ValueError, "interpolate: antialias is for images and the modes 'bilinear' and 'bicubic', got "
     "'nearest' and 4 dims", lambda: F.interpolate(IMAGES, 2, mode="nearest", antialias=True)),
    (NotImplementedError, "interpolate: mode 'bicubic' does not fit to an input of 3 dims",
     lambda: F.interpolate(LINES, 2, mode="bicubic")),
    (RUN, "grid_sample: bicubic is for images, got 5 dims",
     lambda: F.grid_sample(tl.ones(1, 2, 4, 4, 4), tl.zeros(1, 1, 1, 1, 3), "bicubic")),
    # normalisation
    (RUN, "local_response_norm: size must be positive, got 0",
     lambda: F.local_response_norm(LINES, 0)),
    (RUN, "layer_norm: expected weight to be of the shape (3,), got (2,)",
     lambda: F.layer_norm(ROWS, (3,), tl.ones(2))),
    (RUN, "layer_norm: expected bias to be of the shape (3,), got (1, 3)",
     lambda: F.layer_norm(ROWS, (3,), None, tl.ones(1, 3))),
    (TYPE, "group_norm: weight must be a Tensor or None, not list",
     lambda: F.group_norm(LINES, 1, [1.0, 1.0])),
    (VALUE, "group_norm: expected more than 1 value in a group, got input size (1, 3, 1) and num_g",
     lambda: F.group_norm(VECTOR.reshape(1, 3, 1), 3)),
    # losses
    (VALUE, "mse_loss: inputs and weight must have the same size, got (2, 3) and (3,)",
     lambda: F.mse_loss(ROWS, ROWS, weight=VECTOR)),
    (TYPE, "mse_loss: weight must be a Tensor or None, not float",
     lambda: F.mse_loss(ROWS, ROWS, weight=2.0)),
    (RUN, "binary_cross_entropy: all elements of input should be between 0 and 1",
     lambda: F.binary_cross_entropy(VECTOR - 0.5, VECTOR)),
    (RUN, "binary_cross_entropy: all elements of input should be between 0 and 1",
     lambda: F.binary_cross_entropy(-VECTOR / 8, VECTOR)),
    (RUN, "binary_cross_entropy: all elements of target should be between 0 and 1",
     lambda: F.binary_cross_entropy(VECTOR / 4, VECTOR)),
    (RUN, "binary_cross_entropy: all elements of target should be between 0 and 1",
     lambda: F.binary_cross_entropy(VECTOR / 4, VECTOR * float("nan"))),
    (TYPE, "binary_cross_entropy: weight must be a Tensor or None, not int",
     lambda: F.binary_cross_entropy(VECTOR / 4, VECTOR / 4, 2)),
    (TYPE, "binary_cross_entropy_with_logits: weight must be a Tensor or None, not int",
     lambda: F.binary_cross_entropy_with_logits(VECTOR, VECTOR, pos_weight=2)),
    (RUN, "binary_cross_entropy: ",
     lambda: F.binary_cross_entropy(VECTOR / 4, VECTOR / 4, tl.ones(2))),
    (VALUE, "gaussian_nll_loss: var has negative entry/entries",
     lambda: F.gaussian_nll_loss(VECTOR, VECTOR, -1.0)),
    (TYPE, "gaussian_nll_loss: var", lambda: F.gaussian_nll_loss(VECTOR, VECTOR, [1.0])),
    (VALUE, "cross_entropy: expects an input with at least 1 dim",
     lambda: F.cross_entropy(tl.tensor(1.0), tl.tensor(0))),
    (RUN, "cross_entropy: label_smoothing must be between 0 and 1, got 1.5",
     lambda: F.cross_entropy(ROWS, CLASSES, label_smoothing=1.5)),
    (RUN, "cross_entropy: label_smoothing must be between 0 and 1, got -0.5",
     lambda: F.cross_entropy(ROWS, CLASSES, label_smoothing=-0.5)),
    (RUN, "cross_entropy: ignore_index is for targets that are classes",
     lambda: F.cross_entropy(ROWS, ROWS, ignore_index=1)),
    (VALUE, "cross_entropy: Expected input batch_size (2) to match target batch_size (3): expected "
     "a target of shape (2,) for an input of shape (2, 3), got (3,)",
     lambda: F.cross_entropy(ROWS, tl.tensor([0, 1, 2]))),
    (RUN, "nll_loss: expected a target of shape (2,) for an input of shape (2, 3), got (2, 1)",
     lambda: F.nll_loss(ROWS, CLASSES[:, None])),
    (VALUE, "batch_norm: eps must be positive in training, got 0.0",
     lambda: F.batch_norm(ROWS, None, None, training=True, eps=0.0)),
    (RUN, "cross_entropy: probabilities of shape (2, 2) for an input of shape (2, 3); a floating",
     lambda: F.cross_entropy(ROWS, tl.ones(2, 2))),
    (tl.UnsupportedDtype, "nll_loss: takes floating-point dtypes, got tensorlib.int64",
     lambda: F.nll_loss(INTS, CLASSES)),
    (RUN, "nll_loss: weight should be defined for all 3 classes or none, got shape (2,)",
     lambda: F.nll_loss(ROWS, CLASSES, tl.ones(2))),
    (VALUE, "triplet_margin_with_distance_loss: margin must be greater than 0, got 0.0",
     lambda: F.triplet_margin_with_distance_loss(ROWS, ROWS, ROWS, margin=0.0)),
    (VALUE, "triplet_margin_loss: margin must be greater than 0, got -1.0",
     lambda: F.triplet_margin_loss(ROWS, ROWS, ROWS, margin=-1.0)),
    (VALUE, "multi_margin_loss: only p == 1 and p == 2 supported, got 3",
     lambda: F.multi_margin_loss(ROWS, CLASSES, 3)),
    (RUN, "multi_margin_loss: the target must have numbers of classes, got tensorlib.float32",
     lambda: F.multi_margin_loss(ROWS, CLASSES.float())),
    (VALUE, "multi_margin_loss: weight must be a vector, got shape (2, 3)",
     lambda: F.multi_margin_loss(ROWS, CLASSES, weight=ROWS)),
    (RUN, "multi_margin_loss: weight must have 3 elements, one for each class, got 2",
     lambda: F.multi_margin_loss(ROWS, CLASSES, weight=VECTOR[:2])),
    (RUN, "multilabel_margin_loss: inconsistent target size (2, 2) for an input of shape (2, 3)",
     lambda: F.multilabel_margin_loss(ROWS, tl.zeros(2, 2, dtype=tl.int64))),
    (RUN, "ctc_loss: expects log_probs of 2 or 3 dims, got 1",
     lambda: F.ctc_loss(VECTOR, CLASSES, (1,), (1,))),
    (RUN, "ctc_loss: expects targets of shape (B, S), or a vector with as many as the lengths add "
     "up to, got (3,) and [1, 1]", lambda: F.ctc_loss(
         tl.zeros(4, 2, 3), tl.tensor([1, 2, 1]), (4, 4), (1, 1))),
    # tables
    (RUN, "embedding: 'weight' must be 2-D, got 1 dims", lambda: F.embedding(CLASSES, VECTOR)),
    (AssertionError, "embedding: padding_idx must be within num_embeddings, got 4 for 4",
     lambda: F.embedding(CLASSES, TABLE, 4)),
    (AssertionError, "embedding: padding_idx must be within num_embeddings, got -5 for 4",
     lambda: F.embedding(CLASSES, TABLE, -5)),
    (VALUE, "embedding_bag: mode has to be one of sum, mean or max, got 'min'",
     lambda: F.embedding_bag(INTS, TABLE, mode="min")),
    (NotImplementedError, "embedding_bag: per_sample_weights takes mode='sum'",
     lambda: F.embedding_bag(INTS, TABLE, per_sample_weights=ROWS)),
    (VALUE, "embedding_bag: per_sample_weights must have the shape of input",
     lambda: F.embedding_bag(INTS, TABLE, per_sample_weights=VECTOR, mode="sum")),
    (VALUE, "embedding_bag: if input is 2D, then offsets has to be None",
     lambda: F.embedding_bag(INTS, TABLE, CLASSES)),
    (RUN, "embedding_bag: offsets must begin with 0 and not fall, up to the number of indices, "
     "got [1, 2]", lambda: F.embedding_bag(CLASSES, TABLE, tl.tensor([1]))),
    (RUN, "up to the number of indices, got [0, 2, 1, 2]",
     lambda: F.embedding_bag(CLASSES, TABLE, tl.tensor([0, 2, 1]))),
    (RUN, "up to the number of indices, got [0, 3]",
     lambda: F.embedding_bag(CLASSES, TABLE, tl.tensor([0, 3]), include_last_offset=True)),
    # recurrent layers
    (RUN, "rnn_tanh: expected states of 1 layers and directions, got [2]",
     lambda: tl.rnn_tanh(tl.ones(2, 1, 3), tl.ones(2, 1, 4), *PACKED)),
    (RUN, "rnn_relu: expected an input of 3 dims, got 2",
     lambda: tl.rnn_relu(tl.ones(2, 3), tl.ones(1, 1, 4), *PACKED)),
    (RUN, "rnn_relu: expected a sequence of at least one step",
     lambda: tl.rnn_relu(tl.ones(0, 1, 3), tl.ones(1, 1, 4), *PACKED)),
    (RUN, "rnn_tanh_cell: expected an input and a hidden state of 2 dims and as many rows, got "
     "(2, 3) and (1, 4)", lambda: tl.rnn_tanh_cell(ROWS, tl.ones(1, 4), *PACKED[0])),
    (RUN, "got (3,) and (1, 4)", lambda: tl.rnn_tanh_cell(VECTOR, tl.ones(1, 4), *PACKED[0])),
    (RUN, "got (2, 3) and (4,)", lambda: tl.rnn_tanh_cell(ROWS, tl.ones(4), *PACKED[0])),
    (TYPE, "lstm_cell: hx must be a pair of Tensors, the hidden state and the cell",
     lambda: tl.lstm_cell(ROWS, (ROWS,), ROWS, ROWS)),
]


@each("error, words, call", CALLS, ids=lambda x: x if type(x) is str else "")
def test_it_is_refused(error, words, call):
    with pytest.raises(error, match=re.escape(words)) as raised:
        call()
    assert type(raised.value) is error


@each("x", [tl.ones(2, 3, 4, dtype=tl.bool), tl.ones(())])
def test_resampling_by_itself_writes_nothing_beyond_its_result(x):
    """The operation alone, which `interpolate` gives floating images only."""
    with pytest.raises((RuntimeError, IndexError), match="interpolate: "):
        resample(x, -1, 4, 5, False, False, None, False, False)


def test_reductions_have_numbers_and_older_words():
    names = F._Reduction
    assert [names.get_enum(x) for x in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="x is not a valid value for reduction"):
        names.get_enum("x")
    with pytest.warns(UserWarning, match="please use reduction='none'"):
        assert names.legacy_get_string(None, False) == "none"
    assert names.legacy_get_enum(False, None, emit_warning=False) == 2
