"""Every operation of the registry in ONNX: as onnxruntime computes it, or refused with its line."""

import pytest

import tensorlib as tl
from tensorlib import program
from tensorlib.ops import registry
from tensorlib.testing.catalogue import call, dtypes_taken, in_dtype, outputs, samples

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx_models import compare  # noqa: E402

from tensorlib.onnx import UnsupportedOperatorError  # noqa: E402
from tensorlib.onnx.writer import HANDLERS  # noqa: E402
from tensorlib.program.ir.call_types import OWN, UnknownType, form_of  # noqa: E402
from tests.ops.catalogue import for_each  # noqa: E402

OPERATIONS = [op for op in registry.values() if op.testing.get("samples") and "." not in op.name]
SEVERAL = 3                  # samples of each operation that are looked at
# What models are made of: each has at least one sample that is exported.
NEEDED = """abs adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d add addbmm addcdiv
    addcmul addmm all amax amin any argmax argmin argsort avg_pool1d avg_pool2d avg_pool3d
    baddbmm batch_norm bilinear bmm broadcast_to cat cdist ceil celu channel_shuffle chunk clamp
    column_stack columns conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    cos cosine_similarity count_nonzero cross_of_logits cumsum diag diagonal div dot einsum elu
    embedding eq erf exp expand expm1 flatten flip floor floor_divide fmod gather ge gelu
    getitem glu group_norm gru_cell gt hardshrink hardsigmoid hardswish hardtanh index_add
    index_select instance_norm interpolate isfinite isinf isnan layer_norm le leaky_relu lerp
    linear local_response_norm log log10 log1p log2 log_softmax logaddexp logical_and
    logical_not logical_or logical_xor logit logsigmoid logsumexp look lt masked_fill matmul max
    max_pool1d max_pool2d max_pool3d maximum mean min minimum mish mm movedim mul
    multi_head_attention_forward mv nan_to_num narrow ne neg nll_of_logits nll_of_logs norm
    normalize one_hot outer pad permute pixel_shuffle pixel_unshuffle pow prelu prod reciprocal
    relu relu6 remainder repeat reshape rms_norm roll round rsqrt scaled_dot_product_attention
    scatter scatter_add select selu sigmoid sign silu sin slices_taken softmax softplus
    softshrink softsign sort split sqrt square squeeze stack std sub sum take_along_dim tan tanh
    tanhshrink tensordot threshold tile to topk transpose tril triu trunc unbind unflatten
    unfold unsqueeze var view vstack where""".split()


def exported_samples(op):
    """How many samples of an operation were compared, and how many refused."""
    found, refused = 0, 0
    for sample in samples(op)[:SEVERAL]:
        taken = dtypes_taken(op)
        sample = in_dtype(op, sample, next((x for x in ("float32", "int64", "complex64")
                                            if x in taken), "int64"))

        def function(*given):
            return tuple(x for x in outputs(call(op, sample.with_arrays(list(given))))
                         if isinstance(x, tl.Tensor))

        if not sample.arrays or not isinstance(call(op, sample), (tl.Tensor, tuple, list)):
            continue
        try:
            program.trace(function, *sample.arrays)
        except (program.CaptureError, TypeError):
            continue
        try:
            compare(function, tuple(sample.arrays))
            found += 1
        except UnsupportedOperatorError as error:
            assert "test_onnx_operations.py:" in str(error)
            refused += 1
    return found, refused


@for_each(OPERATIONS)
def test_an_operation_gives_in_onnx_what_it_gives_here(op):
    found, _ = exported_samples(op)
    assert found or op.name not in NEEDED


def test_what_models_need_is_in_the_registry():
    assert {op.name for op in OPERATIONS}.issuperset(NEEDED)


def test_the_table_has_no_names_that_do_not_exist():
    for name in HANDLERS:
        try:
            form_of(name)
        except UnknownType:
            assert name in OWN or name == "sub_block"
