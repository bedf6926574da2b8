"""Recurrent layers, and the cells that do one step of them."""

from operator import index as as_int
from typing import Any

from tensorlib._core.apply.halves import are_cast
from tensorlib._core.base.warned import warn_of
from tensorlib import Tensor, empty, zeros
from tensorlib._core.base.error_names import type_name
from tensorlib.nn import init
from tensorlib.nn.functional import recurrent as functions
from tensorlib.nn.modules.module import Module
from tensorlib.nn.parameter import Parameter
from tensorlib.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def check_size(name: str, value: Any) -> None:
    """Raises TypeError for what is not an int, ValueError for one that is not above zero."""
    if not isinstance(value, int):
        raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
    if value <= 0:
        raise ValueError(f"{name} must be greater than zero")


class RNNBase(Module):
    """What recurrent layers have in common: their parameters, and the call.

    Layer k has `weight_ih_lk` and `weight_hh_lk`, `bias_ih_lk` and `bias_hh_lk`, with `proj_size`
    also `weight_hr_lk`; what goes backwards in time ends in `_reverse`. All are drawn from
    -1/sqrt(hidden_size) to 1/sqrt(hidden_size).

    Raises: TypeError and ValueError for sizes that are not ints above 0, ValueError for a dropout
    that is not between 0 and 1, another mode, or a projection that is no smaller or not an LSTM's.
    """

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1,
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, proj_size: int = 0, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        if mode not in GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        for name, choice in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(choice, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(choice).__name__}")
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not (
                0 <= dropout <= 1):
            raise ValueError("dropout should be a number in range [0, 1] representing the "
                             f"probability of an element being zeroed, got {dropout!r}")
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size),
                           ("num_layers", num_layers)):
            check_size(name, size)
        proj_size = as_int(proj_size)
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable "
                             f"projections, got {proj_size}")
        if proj_size and mode != "LSTM":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if dropout and num_layers == 1:
            warn_of("dropout option adds dropout after all but last recurrent layer, so "
                    "non-zero dropout expects num_layers greater than 1, but got "
                    f"dropout={dropout} and num_layers={num_layers}", level=3)
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            shapes = self._parameter_shapes(layer)
            for suffix in ("", "_reverse") if bidirectional else ("",):
                names = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
                self._all_weights.append(list(names))
                for name, shape in names.items():
                    setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def _parameter_shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters of a layer in one direction, by their names without it."""
        width, state = GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        below = state * (2 if self.bidirectional else 1) if layer else self.input_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (width, below), "weight_hh": (width, state)}
        if self.bias:
            shapes.update(bias_ih=(width,), bias_hh=(width,))
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        for weight in self.parameters():
            init.uniform_within_(weight, self.hidden_size)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor]) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if getattr(self, name) is not weight:
                setattr(self, name, weight)

    def flatten_parameters(self) -> None:
        """Nothing: parameters need not lie in one piece of memory here."""

    def run(self, input: Any, states: tuple[Tensor, ...] | None) -> tuple[Any, tuple[Tensor, ...]]:
        """The hidden states of the last layer, like the input, and the last states of all layers.
        """
        packed = isinstance(input, PackedSequence)
        data = input.data if packed else input
        self.check_input(data, input.batch_sizes if packed else None)
        batched = packed or data.ndim == 3
        place = 0 if self.batch_first else 1
        if not batched:
            data = data.unsqueeze(place)
        count = int(input.batch_sizes[0]) if packed else data.shape[place]
        states = self.first_states(states, count, batched, data)
        order = input.sorted_indices if packed else None
        if order is not None:
            states = tuple(x.index_select(1, order) for x in states)
        rest = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional)
        kind = self.mode.lower()
        if packed:
            out, *ends = functions.all_layers(
                kind, data, tuple(input.batch_sizes.tolist()), states, *rest)
            out = PackedSequence(out, *input[1:])
        else:
            out, *ends = functions.over_time(kind, data, states, self.batch_first, *rest)
        if order is not None:
            ends = [x.index_select(1, input.unsorted_indices) for x in ends]
        if batched:
            return out, tuple(ends)
        return out.squeeze(place), tuple(x.squeeze(1) for x in ends)

    def check_input(self, data: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises ValueError or RuntimeError for an input, packed with sizes, that does not fit."""
        name, dims = type(self).__name__, (2, 3) if batch_sizes is None else (2,)
        if data.ndim not in dims:
            raise ValueError(f"{name}: Expected input to be {' or '.join(f'{d}D' for d in dims)}, "
                             f"got {data.ndim}D instead")
        if data.shape[-1] != self.input_size:
            raise RuntimeError(f"{name}: input.size(-1) must be equal to input_size. Expected "
                               f"{self.input_size}, got {data.shape[-1]}")
        weight = getattr(self, self._all_weights[0][0])
        wanted = weight.dtype
        if data.dtype != wanted and not are_cast(data, weight):
            raise ValueError(f"{name}: RNN input dtype ({data.dtype}) does not match weight dtype "
                             f"({wanted}). Convert input: input.to({wanted}), or convert model: "
                             f"model.to({data.dtype})")

    # ---- what subclasses that were written for PyTorch call

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None
                                 ) -> tuple[int, int, int]:
        """The shape of the hidden states for an input, packed with sizes or not."""
        count = input.shape[0 if self.batch_first else 1] if batch_sizes is None else int(
            batch_sizes[0])
        return (self.num_layers * (2 if self.bidirectional else 1), count,
                self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[int, int, int],
                          msg: str = "Expected hidden size {}, got {}") -> None:
        """Raises RuntimeError for states of another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises ValueError or RuntimeError for an input or states that do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states with their batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def first_states(self, states: tuple[Tensor, ...] | None, count: int, batched: bool,
                     data: Tensor) -> tuple[Tensor, ...]:
        """The states to begin with, zeros by default. Raises: RuntimeError for other sizes."""
        name, layers = type(self).__name__, self.num_layers * (2 if self.bidirectional else 1)
        shapes = [(layers, count, self.proj_size or self.hidden_size)]
        if self.mode == "LSTM":
            shapes.append((layers, count, self.hidden_size))
        if states is None:
            return tuple(zeros(shape, dtype=data.dtype, device=data.device) for shape in shapes)
        if len(states) != len(shapes):
            raise RuntimeError(f"{name}: expected {len(shapes)} states, got {len(states)}")
        wanted = 3 if batched else 2
        if any(x.ndim != wanted for x in states):
            what = "batched 3-D input" if batched else "unbatched 2-D input"
            raise RuntimeError(f"{name}: For {what}, hx should also be {wanted}-D but got "
                               f"{', '.join(f'{x.ndim}-D' for x in states)} tensors")
        found = states if batched else tuple(x.unsqueeze(1) for x in states)
        for i, (x, shape) in enumerate(zip(found, shapes)):
            if tuple(x.shape) != shape:
                which = f"hidden[{i}]" if len(shapes) > 1 else "hidden"
                raise RuntimeError(f"{name}: Expected {which} size {shape}, got {list(x.shape)}")
        return found

    def extra_repr(self) -> str:
        options = [("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False),
                   ("dropout", 0.0), ("bidirectional", False)]
        return ", ".join([str(self.input_size), str(self.hidden_size), *(
            f"{name}={getattr(self, name)}" for name, usual in options
            if getattr(self, name) != usual)])


class RNN(RNNBase):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh) over a sequence, in one or several layers.

    nonlinearity: "tanh" or "relu". bidirectional: a second layer goes from the last step to the
    first, and the results stand side by side. dropout: between layers, while training.
    Called with (input, hx): a sequence, padded or packed, and the states to begin with.
    Shapes: (T, B, I), with `batch_first` (B, T, I), or (T, I), and (L * D, B, H) -> (T, B, D * H)
    and (L * D, B, H), for L layers in D directions.
    Raises: as `RNNBase`; RuntimeError for sizes that do not fit, ValueError for other dims.

    >>> out, last = RNN(3, 4)(tensorlib.ones(5, 2, 3))
    >>> out.shape, last.shape
    (tensorlib.Size([5, 2, 4]), tensorlib.Size([1, 2, 4]))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1,
                 nonlinearity: str = "tanh", bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: Any = None, dtype: Any = None) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or "
                             "'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias,
                         batch_first, dropout, bidirectional, proj_size, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """The hidden states of the last layer, and the last one of each layer."""
        out, (last,) = self.run(input, None if hx is None else (hx,))
        return out, last


class GRU(RNNBase):
    """A gated recurrent unit over a sequence, in one or several layers.

    With z the update gate and r the reset gate, h = (1 - z) * tanh(W x + b + r * (U h + c)) + z h.
    The arguments, shapes and errors are those of `RNN`, without the nonlinearity.
    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", EMNLP 2014.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: int = 0, device: Any = None, dtype: Any = None) -> None:
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, proj_size, device, dtype)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """The hidden states of the last layer, and the last one of each layer."""
        out, (last,) = self.run(input, None if hx is None else (hx,))
        return out, last


class LSTM(RNNBase):
    """A long short-term memory over a sequence, in one or several layers.

    With gates i, f and o: c = f * c + i * tanh(W x + U h + b), h = o * tanh(c). proj_size: hidden
    states are multiplied by a matrix that makes them so small. The state is the pair (h, c); the
    other arguments, shapes and errors are those of `RNN`, without the nonlinearity.
    Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural Computation 9(8), 1997.

    >>> out, (h, c) = LSTM(3, 4, num_layers=2, bidirectional=True)(tensorlib.ones(5, 2, 3))
    >>> out.shape, h.shape, c.shape
    (tensorlib.Size([5, 2, 8]), tensorlib.Size([4, 2, 4]), tensorlib.Size([4, 2, 4]))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: int = 0, device: Any = None, dtype: Any = None) -> None:
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, proj_size, device, dtype)

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None
                ) -> tuple[Any, tuple[Tensor, Tensor]]:
        """The hidden states of the last layer, and the last (hidden, cell) of each layer."""
        if hx is not None and not isinstance(hx, (tuple, list)):
            raise TypeError("LSTM: hx must be a pair of Tensors (h, c), not "
                            f"{type_name(hx)}")
        out, (hidden, cell) = self.run(input, None if hx is None else tuple(hx))
        return out, (hidden, cell)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None
                               ) -> tuple[int, int, int]:
        """The shape of the cells for an input, packed with sizes or not."""
        layers, count, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, count, self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises ValueError or RuntimeError for an input or states that do not fit."""
        super().check_forward_args(input, hidden[0], batch_sizes)
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes),
                               "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The pair of states with their batch in another order."""
        if permutation is None:
            return hx
        hidden, cell = (x.index_select(1, permutation) for x in hx)
        return hidden, cell


# ---- cells ---------------------------------------------------------------------------------------

class RNNCellBase(Module):
    """What cells have in common: `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh`, and the call.

    All are drawn from -1/sqrt(hidden_size) to 1/sqrt(hidden_size).
    """

    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        check_size("hidden_size", hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        width = num_chunks * hidden_size
        for name, shape in (("weight_ih", (width, input_size)), ("weight_hh", (width, hidden_size)),
                            ("bias_ih", (width,)), ("bias_hh", (width,))):
            there = bias or name.startswith("weight")
            self.register_parameter(
                name, Parameter(empty(shape, device=device, dtype=dtype)) if there else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        for weight in self.parameters():
            init.uniform_within_(weight, self.hidden_size)

    def step(self, kind: str, input: Tensor, states: tuple[Tensor, ...] | None,
             count: int = 1) -> tuple[Tensor, ...]:
        """The `count` states after one step, from the same before it, zeros by default."""
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"{name}: input has inconsistent input_size: got "
                               f"{input.shape[-1]} expected {self.input_size}")
        shape = (*input.shape[:-1], self.hidden_size)
        if states is None:
            states = (zeros(shape, dtype=input.dtype, device=input.device),) * count
        for i, x in enumerate(states):
            if x.ndim not in (1, 2):
                raise ValueError(
                    f"{name}: expected hidden{i} to be 1D or 2D, got {x.ndim}D instead")
            if tuple(x.shape) != shape:
                raise RuntimeError(f"{name}: expected hidden{i} of shape {shape} for an input of "
                                   f"shape {tuple(input.shape)}, got {tuple(x.shape)}")
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        if input.ndim == 2:
            found = functions.one_step(kind, input, *states, *(None,) * (2 - count), *weights)
            return tuple(found[:count])
        rows = (x.unsqueeze(0) for x in (input, *states))
        found = functions.one_step(kind, *rows, *(None,) * (2 - count), *weights)
        return tuple(x.squeeze(0) for x in found[:count])

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += ", bias=False"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step of an `RNN`: the hidden state after it, from an input and that before it.

    Shapes: (B, I), (B, H) -> (B, H); without B, too.
    Raises: RuntimeError for sizes that do not fit, ValueError for other dims or another
    nonlinearity.

    >>> RNNCell(3, 4)(tensorlib.ones(2, 3)).shape
    tensorlib.Size([2, 4])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True,
                 nonlinearity: str = "tanh", device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The hidden state after the step."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"RNNCell: Unknown nonlinearity: {self.nonlinearity}")
        return self.step(f"rnn_{self.nonlinearity}", input, None if hx is None else (hx,))[0]


class GRUCell(RNNCellBase):
    """One step of a `GRU`: the hidden state after it, from an input and that before it.

    Shapes and errors are those of `RNNCell`.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The hidden state after the step."""
        return self.step("gru", input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`: (h, c) after it, from an input and (h, c) before it.

    Shapes and errors are those of `RNNCell`; the state is a pair.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
                ) -> tuple[Tensor, Tensor]:
        """The hidden state and the cell after the step."""
        if hx is not None and (not isinstance(hx, (tuple, list)) or len(hx) != 2):
            raise TypeError("LSTMCell: hx must be a pair of Tensors (h, c), not "
                            f"{type_name(hx)}")
        hidden, cell = self.step("lstm", input, None if hx is None else tuple(hx), 2)
        return hidden, cell
