"""Complex numbers and Fourier transforms: arithmetic, products, transforms and a gradient."""

from benchmarks.case import Case, Timed, case, register, uniform

SIZES = (65_536, 4_194_304)
ARITHMETIC = {"a + b": 1.5, "a * b": 1.5, "a.abs()": 1.5, "a.exp()": 1.5}


def numbers(lib, *shape, seed=0):
    """The same random complex64 tensor in either library."""
    return lib.complex(uniform(lib, *shape, seed=seed), uniform(lib, *shape, seed=seed + 1))


def statement(name, code, target, **given):
    """A case that times `code` on tensors that functions of the library make."""
    register(Case(name, "spectra", lambda lib: Timed(code, {
        "lib": lib, **{key: make(lib) for key, make in given.items()}}), target))


for size in SIZES:
    for code, target in ARITHMETIC.items():
        statement(f"{code}, {size:,} complex64", code, target,
                  a=lambda lib, size=size: numbers(lib, size),
                  b=lambda lib, size=size: numbers(lib, size, seed=2))
statement("a @ b, 256x256 complex64", "a @ b", 1, a=lambda lib: numbers(lib, 256, 256),
          b=lambda lib: numbers(lib, 256, 256, seed=2))
for shape in ((1024, 1024), (1_048_576,), (1000, 100)):
    sizes = " x ".join(f"{n:,}" for n in shape)
    statement(f"fft.fft of {sizes}", "lib.fft.fft(a)", 1,
              a=lambda lib, shape=shape: numbers(lib, *shape))
    statement(f"fft.rfft of {sizes}", "lib.fft.rfft(a)", 1,
              a=lambda lib, shape=shape: uniform(lib, *shape))
statement("fft.fft2 of 512 x 512", "lib.fft.fft2(a)", 1, a=lambda lib: numbers(lib, 512, 512))


@case("spectra", "a step of a spectral solver and its gradient", target=1)
def solver(lib):
    wave = numbers(lib, 256, 256).requires_grad_()
    turns = lib.polar(lib.ones(256, 256), uniform(lib, 256, 256, seed=2))

    def run():
        wave.grad = None
        lib.fft.ifft2(lib.fft.fft2(wave) * turns).abs().square().sum().backward()
        return wave.grad
    return run
