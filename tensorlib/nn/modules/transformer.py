"""Transformers: encoders and decoders of layers of attention."""

import copy
from collections.abc import Callable
from typing import Any

from tensorlib import Tensor, full
from tensorlib.nn import functional as F
from tensorlib.nn import init
from tensorlib.nn.modules.attention import MultiheadAttention
from tensorlib.nn.modules.container import ModuleList
from tensorlib.nn.modules.dropout import Dropout
from tensorlib.nn.modules.linear import Linear
from tensorlib.nn.modules.module import Module
from tensorlib.nn.modules.normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]

Activation = str | Callable[[Tensor], Tensor]


def activation_of(given: Activation) -> Callable[[Tensor], Tensor]:
    """The function that "relu", "gelu" or a function itself stands for. Raises: RuntimeError."""
    if callable(given):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    function: Callable[[Tensor], Tensor] = getattr(F, given)
    return function


def causal_mask(size: int, dtype: Any = None) -> Tensor:
    """(size, size), with -inf above the diagonal and 0 elsewhere."""
    return full((size, size), -float("inf"), dtype=dtype).triu(1)


def is_causal_mask(mask: Tensor | None, hint: bool | None, x: Tensor, batch_first: bool) -> bool:
    """Whether a mask is the causal one: by the hint or, where that is None, by its elements."""
    if hint is not None or mask is None:
        return bool(hint)
    size = x.shape[1 if x.ndim == 3 and batch_first else 0]
    if tuple(mask.shape) != (size, size):
        return False
    if not mask.is_floating_point():
        return bool((mask == (causal_mask(size) != 0)).all())
    return bool((mask == causal_mask(size, mask.dtype)).all())


def layers_of(layer: Module, count: int) -> ModuleList:
    """Copies of a layer."""
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


_get_clones, _get_activation_fn = layers_of, activation_of      # as scripts for PyTorch call them


class Layer(Module):
    """What the layers of encoders and decoders have in common: their parts."""

    reads_memory = False           # whether there is attention to a memory between the other parts

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = F.relu, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first,
                                            **made)
        if self.reads_memory:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias,
                                                     batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
        if self.reads_memory:
            self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        if self.reads_memory:
            self.dropout3 = Dropout(dropout)
        self.activation = activation_of(activation)

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
                  is_causal: bool = False) -> Tensor:
        """Attention of the sequence to itself."""
        out, _ = self.self_attn(x, x, x, key_padding_mask=key_padding_mask, need_weights=False,
                                attn_mask=attn_mask, is_causal=is_causal)
        dropped: Tensor = self.dropout1(out)
        return dropped

    def _ff_block(self, x: Tensor) -> Tensor:
        """The two linear layers."""
        out: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return out


class TransformerEncoderLayer(Layer):
    """Attention of a sequence to itself, then two linear layers, each added to what it took.

    norm_first: each normalises what it takes, not what it gives. activation: "relu", "gelu" or a
    function, between the linear layers, of which the first gives `dim_feedforward`.
    Shapes: (T, B, E), with `batch_first` (B, T, E), or (T, E) -> the same.
    Raises: RuntimeError for another activation; as `MultiheadAttention`.
    Source: Vaswani et al., "Attention Is All You Need", NeurIPS 2017.

    >>> TransformerEncoderLayer(4, nhead=2)(tensorlib.ones(3, 2, 4)).shape
    tensorlib.Size([3, 2, 4])
    """

    def forward(self, src: Tensor, src_mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        masks = src_mask, src_key_padding_mask, is_causal
        if self.norm_first:
            src = src + self._sa_block(self.norm1(src), *masks)
            return src + self._ff_block(self.norm2(src))
        src = self.norm1(src + self._sa_block(src, *masks))
        out: Tensor = self.norm2(src + self._ff_block(src))
        return out

    def _ff_block(self, x: Tensor) -> Tensor:
        dropped: Tensor = self.dropout2(super()._ff_block(x))
        return dropped


class TransformerDecoderLayer(Layer):
    """As `TransformerEncoderLayer`, with attention to a memory in between.

    Shapes: (T, B, E) and a memory (S, B, E) -> (T, B, E); with `batch_first` B comes first.
    Raises: as `TransformerEncoderLayer`.

    >>> TransformerDecoderLayer(4, nhead=2)(tensorlib.ones(3, 2, 4), tensorlib.ones(5, 2, 4)).shape
    tensorlib.Size([3, 2, 4])
    """

    reads_memory = True

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory_mask, memory_key_padding_mask, memory_is_causal
        if self.norm_first:
            tgt = tgt + self._sa_block(self.norm1(tgt), *own)
            tgt = tgt + self._mha_block(self.norm2(tgt), memory, *other)
            return tgt + self._ff_block(self.norm3(tgt))
        tgt = self.norm1(tgt + self._sa_block(tgt, *own))
        tgt = self.norm2(tgt + self._mha_block(tgt, memory, *other))
        out: Tensor = self.norm3(tgt + self._ff_block(tgt))
        return out

    def _mha_block(self, x: Tensor, mem: Tensor, attn_mask: Tensor | None,
                   key_padding_mask: Tensor | None, is_causal: bool = False) -> Tensor:
        """Attention to the memory."""
        out, _ = self.multihead_attn(x, mem, mem, key_padding_mask=key_padding_mask,
                                     need_weights=False, attn_mask=attn_mask, is_causal=is_causal)
        dropped: Tensor = self.dropout2(out)
        return dropped

    def _ff_block(self, x: Tensor) -> Tensor:
        dropped: Tensor = self.dropout3(super()._ff_block(x))
        return dropped


class TransformerEncoder(Module):
    """Copies of a layer one after the other, then `norm`.

    Called with (src, mask, src_key_padding_mask, is_causal); where is_causal is None, the mask is
    checked for being causal. enable_nested_tensor and mask_check change nothing here.
    Shapes: as `TransformerEncoderLayer`.

    >>> TransformerEncoder(TransformerEncoderLayer(4, 2), num_layers=2)(
    ...     tensorlib.ones(3, 2, 4)).shape
    tensorlib.Size([3, 2, 4])
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
                 enable_nested_tensor: bool = True, mask_check: bool = True) -> None:
        super().__init__()
        self.layers = layers_of(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(self, src: Tensor, mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:
        """The sequence after all layers."""
        causal = is_causal_mask(mask, is_causal, src, takes_batch_first(self.layers))
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask,
                        is_causal=causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a layer one after the other, then `norm`.

    Called with (tgt, memory) and the masks of both; where tgt_is_causal is None, the mask is looked
    at to see if it is causal.
    Shapes: as `TransformerDecoderLayer`.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = layers_of(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        """The sequence after all layers."""
        causal = is_causal_mask(tgt_mask, tgt_is_causal, tgt, takes_batch_first(self.layers))
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                        tgt_key_padding_mask=tgt_key_padding_mask,
                        memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                        memory_is_causal=memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


def takes_batch_first(layers: ModuleList) -> bool:
    """Whether layers take (B, T, E)."""
    attention = getattr(layers[0], "self_attn", None) if len(layers) else None
    return bool(getattr(attention, "batch_first", False))


class Transformer(Module):
    """An encoder of a source and a decoder of a target that attends to it, each with a norm at the
    end.

    custom_encoder, custom_decoder: what stands in their places. The other arguments are those of
    the layers. Parameters of more than one dim are drawn by `nn.init.xavier_uniform_`.
    Shapes: (S, B, E), (T, B, E) -> (T, B, E); with `batch_first` B comes first; without B, too.
    Raises: RuntimeError for batches that differ and for another size than d_model.

    >>> model = Transformer(8, nhead=2, num_encoder_layers=1, num_decoder_layers=1)
    >>> model(tensorlib.ones(5, 2, 8), tensorlib.ones(3, 2, 8)).shape
    tensorlib.Size([3, 2, 8])
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
                 num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = F.relu, custom_encoder: Any = None,
                 custom_decoder: Any = None, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                   batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
            TransformerEncoderLayer(*options), num_encoder_layers, norm())
        self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
            TransformerDecoderLayer(*options), num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None,
                tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, src_is_causal: bool | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        """The target after the decoder."""
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and tgt.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal, got "
                               f"{src.shape[batch]} and {tgt.shape[batch]}")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model, "
                               f"{self.d_model}, got {src.shape[-1]} and {tgt.shape[-1]}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask,
                              is_causal=src_is_causal)
        out: Tensor = self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal)
        return out

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """(sz, sz), with -inf above the diagonal and 0 elsewhere: no place sees a later one.

        >>> Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return causal_mask(sz, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
