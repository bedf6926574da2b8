"""PowerSGD: gradients of matrices as products of two thin ones.

Source: Vogels, Karimireddy, Jaggi: PowerSGD: practical low-rank gradient compression for
distributed optimization, NeurIPS 2019.
"""

from __future__ import annotations

from typing import Any

import tensorlib
from tensorlib import Tensor
from tensorlib.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from tensorlib.distributed.collectives import all_reduce
from tensorlib.distributed.group import ProcessGroup, group_of
from tensorlib.distributed.work import WorkFuture

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """What PowerSGD keeps from step to step.

    matrix_approximation_rank: the columns of the thin matrices. start_powerSGD_iter: so many steps
    are done with whole gradients first. min_compression_rate: matrices are sent whole unless this
    sends so many times fewer numbers. use_error_feedback: what a step leaves out is added to the
    next. warm_start: a step begins with the thin matrix of the last.
    """

    def __init__(self, process_group: ProcessGroup | None = None,
                 matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1000,
                 min_compression_rate: float = 2, use_error_feedback: bool = True,
                 warm_start: bool = True, orthogonalization_epsilon: float = 0,
                 random_seed: int = 0) -> None:
        if matrix_approximation_rank < 1:
            raise ValueError("PowerSGDState: matrix_approximation_rank is 1 or more, got "
                             f"{matrix_approximation_rank}")
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.generator = tensorlib.Generator().manual_seed(random_seed)
        self.iter = 0
        self.errors: dict[Any, Tensor] = {}
        self.right: dict[Any, Tensor] = {}
        self.numbers_before_compression = self.numbers_after_compression = 0

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer numbers were sent, those there were, and those sent."""
        after = self.numbers_after_compression
        return (self.numbers_before_compression / after if after else 0.0,
                self.numbers_before_compression, after)


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> WorkFuture:
    """The mean of the gradients, of matrices approximately: P Q', with P = M Q and Q = M' P."""
    group = group_of(state.process_group, "powerSGD_hook")
    if state.iter < state.start_powerSGD_iter:
        if bucket.is_last():
            state.iter += 1
        return allreduce_hook(group, bucket)
    with tensorlib.no_grad():
        matrices, rest = shared_out(state, bucket)
        thin = []
        for key, matrix in matrices:
            if state.use_error_feedback and key in state.errors:
                matrix.add_(state.errors[key])
            columns = min(state.matrix_approximation_rank, *matrix.shape)
            right = state.right.get(key) if state.warm_start else None
            if right is None:        # all ranks draw the same
                right = orthogonal(tensorlib.randn(matrix.shape[1], columns, dtype=matrix.dtype,
                                                   generator=state.generator), state)
            thin.append((key, matrix, matrix @ right, right))
        sent = joined([left for _, _, left, _ in thin] + rest, group.size())
        state.numbers_before_compression += bucket.buffer().numel()
        state.numbers_after_compression += sent.numel() + sum(q.numel() for *_, q in thin)
    if bucket.is_last():
        state.iter += 1
    future = all_reduce(sent, "sum", group, async_op=True).get_future()

    def finish(done: WorkFuture) -> Tensor:
        with tensorlib.no_grad():
            parts = apart(done.value()[0], [left for _, _, left, _ in thin] + rest)
            lefts = [orthogonal(part, state) for part in parts[:len(thin)]]
            rights = [matrix.mT @ left for (_, matrix, _, _), left in zip(thin, lefts)]
            if rights:
                together = joined(rights, group.size())
                all_reduce(together, "sum", group)
                rights = apart(together, rights)
            for (key, matrix, _, _), left, right in zip(thin, lefts, rights):
                approximation = left @ right.mT
                if state.use_error_feedback:
                    state.errors[key] = matrix - approximation
                if state.warm_start:
                    state.right[key] = orthogonal(right, state)
                matrix.copy_(approximation)
            for whole, part in zip(rest, parts[len(thin):]):
                whole.copy_(part)
        return bucket.buffer()

    return future.then(finish)


def shared_out(state: PowerSGDState, bucket: Any) -> tuple[list[tuple[Any, Tensor]], list[Tensor]]:
    """The gradients of a bucket that are worth a product, as matrices, and the others."""
    matrices, rest = [], []
    for parameter, gradient in zip(bucket.parameters(), bucket.gradients()):
        rows, columns = (gradient.shape[0], gradient[0].numel()) if gradient.ndim > 1 else (1, 1)
        thin = min(state.matrix_approximation_rank, rows, columns) * (rows + columns)
        if gradient.ndim > 1 and thin * state.min_compression_rate <= rows * columns:
            matrices.append((id(parameter), gradient.view(rows, columns)))
        else:
            rest.append(gradient)
    return matrices, rest


def joined(xs: list[Tensor], size: int) -> Tensor:
    """Tensors as one vector, divided by the number of ranks."""
    return tensorlib.cat([x.reshape(-1) for x in xs]).div_(size)


def apart(x: Tensor, like: list[Tensor]) -> list[Tensor]:
    """The parts of such a vector."""
    return [part.view(each.shape)
            for part, each in zip(x.split([each.numel() for each in like]), like)]


def orthogonal(x: Tensor, state: PowerSGDState) -> Tensor:
    """An orthonormal basis of the columns of a matrix."""
    return tensorlib.linalg.qr(x + state.orthogonalization_epsilon)[0]
