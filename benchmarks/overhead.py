"""What one operation costs beside its arithmetic: small tensors, one thread."""

from benchmarks.case import case, expression, uniform

SMALL = (16,)

expression("overhead", "a + b", a=SMALL, b=SMALL, target=6)
expression("overhead", "a + b", name="a + b, requires grad", a=SMALL, b=SMALL, grad=True, target=6)
expression("overhead", "a * 2.0", a=SMALL, no_slower_than="a + b")
expression("overhead", "a.exp()", a=SMALL)
expression("overhead", "a.sum()", a=SMALL)
expression("overhead", "a[0]", a=SMALL, target=4)
expression("overhead", "a.view(4, 4)", a=SMALL)
expression("overhead", "lib.zeros(16)")
expression("overhead", "lib.tensor([1.0, 2.0, 3.0])")
expression("overhead", "a @ b", name="a @ b, 8x8", a=(8, 8), b=(8, 8), target=6)


@case("overhead", "(a * a).sum().backward()", target=12)
def square_sum_backward(lib):
    a = uniform(lib, *SMALL).requires_grad_()

    def run():
        a.grad = None
        (a * a).sum().backward()
        return a.grad
    return run


@case("overhead", "100 operations and backward", target=12)
def chain_backward(lib):
    a, b, c = (uniform(lib, *SMALL, seed=seed) for seed in range(3))
    a.requires_grad_()

    def run():
        a.grad = None
        y = a
        for _ in range(50):
            y = y * b + c
        y.sum().backward()
        return a.grad
    return run
