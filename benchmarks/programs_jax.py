"""JAX's time for a training step of `benchmarks.programs`, run by an interpreter that has JAX.

`python -m benchmarks.programs_jax` prints the time of compiling the step "perceptron of 3 layers,
Adam", of 64 x 64 numbers through 64-128-64-10, and the least and median time of a call. XLA takes
one thread, as the other side does.
"""

import os
import statistics
import time
import timeit

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

SIZES = (64, 128, 64, 10)
BATCH = 64
BETA1, BETA2, RATE, EPS = 0.9, 0.999, 1e-3, 1e-8


def parameters(key):
    """A weight and a bias for each layer."""
    keys = jax.random.split(key, len(SIZES) - 1)
    return [(jax.random.uniform(k, (a, b), minval=-a ** -0.5, maxval=a ** -0.5), jnp.zeros(b))
            for k, a, b in zip(keys, SIZES, SIZES[1:])]


def loss_of(params, x, y):
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = params[-1]
    return -jnp.take_along_axis(jax.nn.log_softmax(x @ weight + bias), y[:, None], 1).mean()


@jax.jit
def step(params, m, v, t, x, y):
    """The parameters, moments and count after a step of Adam, and the loss."""
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    t = t + 1
    m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, grads)
    v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, grads)
    rate = RATE / (1 - BETA1 ** t)
    params = jax.tree.map(
        lambda p, m, v: p - rate * m / (jnp.sqrt(v / (1 - BETA2 ** t)) + EPS), params, m, v)
    return params, m, v, t, loss


def main():
    key = jax.random.key(0)
    params = parameters(key)
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = [params, zeros, zeros, jnp.float32(0)]
    x = jax.random.normal(key, (BATCH, SIZES[0]))
    y = jax.random.randint(key, (BATCH,), 0, SIZES[-1])

    def run():
        *state[:], loss = step(*state, x, y)
        loss.block_until_ready()

    begin = time.perf_counter()
    run()
    print(f"JAX {jax.__version__}: compiled in {time.perf_counter() - begin:.2f} s")
    times = [t / 200 * 1e6 for t in timeit.repeat(run, number=200, repeat=20)]
    print(f"perceptron of 3 layers, Adam  {min(times):8.1f} us, "
          f"median {statistics.median(times):.1f}")


if __name__ == "__main__":
    main()
