"""What a step of an optimiser costs: six small parameters, one of 65,536 elements, one of 16 M."""

from benchmarks.case import case, uniform

SMALL = ((64, 32), (64,), (64, 64), (64,), (10, 64), (10,))
KINDS = {
    "SGD": {"lr": 0.01}, "SGD with momentum": {"lr": 0.01, "momentum": 0.9}, "Adam": {},
    "AdamW": {}, "NAdam": {}, "RAdam": {}, "Adamax": {}, "Adagrad": {}, "Adadelta": {},
    "RMSprop": {}, "Rprop": {}, "ASGD": {}, "Adafactor": {},
}
MOST_USED = ("SGD", "SGD with momentum", "Adam", "AdamW", "RMSprop")


def steps(lib, kind, *shapes):
    """A step with the same gradients over and over; it returns the first parameter."""
    params = [uniform(lib, *shape, seed=2 * i).requires_grad_() for i, shape in enumerate(shapes)]
    for i, p in enumerate(params):
        p.grad = uniform(lib, *p.shape, seed=2 * i + 1)
    optimizer = getattr(lib.optim, kind.partition(" ")[0])(params, **KINDS[kind])

    def step():
        optimizer.step()
        return params[0].detach()

    return step


for kind in KINDS:
    case("optimizers", f"{kind}, six small parameters", target=5)(
        lambda lib, kind=kind: steps(lib, kind, *SMALL))
    case("optimizers", f"{kind}, 65,536", target=3)(
        lambda lib, kind=kind: steps(lib, kind, (65536,)))
for kind in MOST_USED:
    # plain descent reads and writes as little in PyTorch: memory alone decides
    case("optimizers", f"{kind}, 16 M", target=None if kind == "SGD" else 3, size="large")(
        lambda lib, kind=kind: steps(lib, kind, (1 << 24,)))
