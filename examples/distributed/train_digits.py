"""Learns to read handwritten digits, by one process or by many.

    python examples/distributed/train_digits.py
    mpiexec -n 2 python examples/distributed/train_digits.py
    python -m tensorlib.distributed.run -n 2 examples/distributed/train_digits.py --deterministic
"""

from training import finish, parse_arguments, start, train

import tensorlib as tl
from tensorlib import Tensor, nn, optim
from tensorlib.nn.functional import cross_entropy
from tensorlib.utils.data import datasets


def main() -> None:
    args = parse_arguments(__doc__)
    start()
    tl.manual_seed(args.seed)                            # the same batches on every rank
    scans = datasets.Digits()
    images, digits = scans.data.flatten(1), scans.targets
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def batch(count: int) -> tuple[Tensor, Tensor]:
        chosen = tl.randint(0, len(images), (count,))
        return images[chosen], digits[chosen]

    loss = train(model, lambda net, x, y: cross_entropy(net(x), y), batch,
                 lambda net: optim.SGD(net.parameters(), lr=args.lr, momentum=0.9), args)
    finish(model, loss)


if __name__ == "__main__":
    main()
