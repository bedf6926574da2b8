"""Sparse tensors: a graph's product, its gradient, and a step of a table of embeddings."""

import numpy as np

from benchmarks.case import case, uniform

NODES, ENTRIES, COLUMNS = 10_000, 100_000, 64


def graph(lib):
    """An adjacency matrix with random weights, and features."""
    rng = np.random.default_rng(0)
    indices = lib.from_numpy(rng.integers(0, NODES, (2, ENTRIES)))
    adjacency = lib.sparse_coo_tensor(indices, uniform(lib, ENTRIES), (NODES, NODES)).coalesce()
    return adjacency, uniform(lib, NODES, COLUMNS)


@case("sparse", "a sparse matrix times a dense one", target=1)
def product(lib):
    adjacency, features = graph(lib)
    return lambda: adjacency @ features


@case("sparse", "a sparse product and its gradient", target=1)
def gradient(lib):
    adjacency, features = graph(lib)
    features.requires_grad_()

    def run():
        features.grad = None
        (adjacency @ features).sum().backward()
        return features.grad
    return run


@case("sparse", "a step of SparseAdam", target=1)
def step(lib):
    table = lib.nn.Embedding.from_pretrained(uniform(lib, 20_000, COLUMNS), freeze=False,
                                             sparse=True)
    optimizer = lib.optim.SparseAdam(table.parameters())
    indices = lib.from_numpy(np.random.default_rng(0).integers(0, 20_000, 256))

    def run():
        optimizer.zero_grad()
        table(indices).sum().backward()
        optimizer.step()
        return table.weight.grad.coalesce().values()
    return run
