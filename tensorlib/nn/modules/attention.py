"""Multi-head attention, with its projections."""

from typing import Any

from tensorlib import Tensor, empty
from tensorlib.nn import functional as F
from tensorlib.nn import init
from tensorlib.nn.modules.linear import NonDynamicallyQuantizableLinear
from tensorlib.nn.modules.module import Module
from tensorlib.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of several heads, projected before and after.

    kdim, vdim: the sizes of keys and values where they are others than `embed_dim`. add_bias_kv:
    one more key and value, which are learnt; add_zero_attn: one more of zeros. Called with (query,
    key, value) it gives the result and, unless `need_weights` is False, the weights.

    Shapes: (L, B, E), (S, B, K), (S, B, V) -> (L, B, E), (B, L, S); with `batch_first` B comes
    first; without B, too.
    Raises: ValueError, AssertionError for sizes of which none can be made; as
    `nn.functional.multi_head_attention_forward`.
    Source: Vaswani et al., "Attention Is All You Need", NeurIPS 2017.

    >>> x = tensorlib.ones(3, 2, 4)
    >>> out, weights = MultiheadAttention(4, num_heads=2)(x, x, x)
    >>> out.shape, weights.shape
    (tensorlib.Size([3, 2, 4]), tensorlib.Size([2, 3, 3]))
    """

    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError("embed_dim and num_heads must be greater than 0, got "
                             f"embed_dim={embed_dim} and num_heads={num_heads} instead")
        if embed_dim % num_heads:
            raise AssertionError(f"embed_dim must be divisible by num_heads, got {embed_dim} and "
                                 f"{num_heads}")
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        together = self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        shapes = {"in_proj_weight": (3 * embed_dim, embed_dim) if together else None,
                  "q_proj_weight": None if together else (embed_dim, embed_dim),
                  "k_proj_weight": None if together else (embed_dim, self.kdim),
                  "v_proj_weight": None if together else (embed_dim, self.vdim),
                  "in_proj_bias": (3 * embed_dim,) if bias else None,
                  "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
                  "bias_v": (1, 1, embed_dim) if add_bias_kv else None}
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(
                empty(shape, device=device, dtype=dtype)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draws the parameters of the first projection anew; biases are zeros."""
        for name, weight in self.named_parameters(recurse=False):
            if name.endswith("weight"):
                init.xavier_uniform_(weight)
            elif name == "in_proj_bias":
                init.zeros_(weight)
            else:
                init.xavier_normal_(weight)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                key_padding_mask: Tensor | None = None, need_weights: bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """The result, and the weights: see `nn.functional.multi_head_attention_forward`."""
        turned = self.batch_first and query.ndim == 3
        if turned:                         # tensors that are one stay one, for their projection
            same = key is query, value is key
            query = query.transpose(0, 1)
            key = query if same[0] else key.transpose(0, 1)
            value = key if same[1] else value.transpose(0, 1)
        out_proj, weight = self.out_proj, self.in_proj_weight
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout, out_proj.weight,
            out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask,
            weight is None, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, None, None, average_attn_weights, is_causal)
        return (out.transpose(0, 1) if turned else out), weights
