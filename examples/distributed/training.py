"""What the examples share: steps of data-parallel training, by one process or by many.

Every process draws the same whole batch and takes its share, so that the number of processes
changes nothing but the order of sums; with `--deterministic` not even that.
"""

import argparse
from collections.abc import Callable
from hashlib import sha256

import tensorlib as tl
from tensorlib import Tensor, nn, optim
from tensorlib import distributed as dist
from tensorlib.nn.parallel import DistributedDataParallel

PIECES = 8          # of the whole batch, with --deterministic: any number of ranks that divides it


def parse_arguments(doc: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64, help="examples of all ranks together")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--deterministic", action="store_true",
                        help="the same bits for any number of ranks")
    return parser.parse_args()


def start() -> None:
    """Makes the group: of all ranks under a launcher, else of this process."""
    if dist.is_launched():
        dist.init_process_group()
    else:
        dist.init_process_group(world_size=1, rank=0)


def share(x: Tensor) -> Tensor:
    """This rank's part of a whole batch."""
    return x.chunk(dist.get_world_size())[dist.get_rank()]


def mean_of_ranks(losses: Tensor) -> float:
    """The mean of the losses of all ranks' pieces, in the order of the pieces."""
    every = tl.empty(dist.get_world_size() * len(losses))
    dist.all_gather_into_tensor(every, losses)
    return every.mean().item()


def train(model: nn.Module, loss_of: Callable[[nn.Module, Tensor, Tensor], Tensor],
          batch: Callable[[int], tuple[Tensor, Tensor]], optimizer: Callable[[nn.Module],
          optim.Optimizer], args: argparse.Namespace) -> float:
    """Trains a model, and returns the last loss, of the whole batch."""
    parallel = DistributedDataParallel(
        model, gradient_as_bucket_view=True, deterministic=args.deterministic,
        micro_batches=PIECES if args.deterministic else None)
    steps, loss = optimizer(model), 0.0
    for step in range(args.steps):
        inputs, targets = map(share, batch(args.batch))
        steps.zero_grad()
        pieces = []
        for x, y in parallel.micro_batches(inputs, targets):
            piece = loss_of(parallel, x, y)
            piece.backward()
            pieces.append(piece.detach())
        steps.step()
        loss = mean_of_ranks(tl.stack(pieces))
        if dist.get_rank() == 0 and (step % 20 == 19 or step == args.steps - 1):
            print(f"step {step + 1:5d}   loss {loss:.6f}", flush=True)
    return loss


def finish(model: nn.Module, loss: float) -> None:
    """Says what came out, and with which bits."""
    digest = sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} processes, loss {loss!r}, bits {digest.hexdigest()[:16]}")
    dist.destroy_process_group()
