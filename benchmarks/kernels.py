"""What the arithmetic costs: large tensors of float32."""

from benchmarks.case import expression

# One row for each kernel: the expression and the target. Rows made from the registry of operations
# belong in this table too.
VECTOR = (65_536,)
UNARY = {
    "a.exp()": 2, "a.tanh()": 2, "a.sigmoid()": None, "a.sin()": None, "a.erf()": None,
    "a.relu()": None, "a.sum()": 1, "a.max()": None, "a.softmax(0)": None,
}
BINARY = {"a + b": 1, "a * b": 1, "a / b": None}
MATMUL = {64: 0.95, 256: 0.95, 1024: 0.95}

for code, target in UNARY.items():
    expression("kernels", code, name=f"{code}, 65,536", a=VECTOR, low=-4.0, high=4.0, target=target)
expression("kernels", "a.log()", name="a.log(), 65,536", a=VECTOR, low=0.1, high=4.0)
for code, target in BINARY.items():
    expression("kernels", code, name=f"{code}, 65,536", a=VECTOR, b=VECTOR, low=0.1, target=target)
for code, target in {"a.sum(0)": None, "a.sum(1)": 1, "a.softmax(1)": None}.items():
    expression("kernels", code, name=f"{code}, 256x256", a=(256, 256), target=target)
for n, target in MATMUL.items():
    expression("kernels", "a @ b", name=f"a @ b, {n}x{n}", a=(n, n), b=(n, n), target=target)
expression("kernels", "a + b", name="a + b, 16,777,216", a=(2**24,), b=(2**24,), target=3)

# Other layouts: heads of attention and images.
for code, shape in {
    "a.permute(0, 2, 1, 3).contiguous()": (8, 128, 8, 64),
    "a.permute(0, 2, 3, 1).contiguous()": (16, 64, 32, 32),
    "a.transpose(2, 3).contiguous()": (8, 128, 8, 64),
}.items():
    expression("kernels", code, name=f"{code}, {'x'.join(map(str, shape))}", a=shape)

# Convolutions: of small images, of one large image, and with steps.
for name, image, weight, options in (
    ("3x3, 16x32x32x32", (16, 32, 32, 32), (64, 32, 3, 3), "padding=1"),
    ("3x3, stride 2, 16x32x32x32", (16, 32, 32, 32), (64, 32, 3, 3), "stride=2, padding=1"),
    ("7x7, stride 2, 2x3x224x224", (2, 3, 224, 224), (64, 3, 7, 7), "stride=2, padding=3"),
    ("8x8, stride 4, 32x4x84x84", (32, 4, 84, 84), (32, 4, 8, 8), "stride=4"),
):
    expression("kernels", f"lib.nn.functional.conv2d(a, b, None, {options})",
               name=f"conv2d, {name}", a=image, b=weight)

# Margins: of numbers, and that show the image.
for mode in ("constant", "reflect", "replicate", "circular"):
    expression("kernels", f"lib.nn.functional.pad(a, (2, 2, 2, 2), mode={mode!r})",
               name=f"pad, {mode}, 8x3x64x64", a=(8, 3, 64, 64))

# Means of windows that cover an image.
for count, shape in ((1, (8, 512, 7, 7)), (7, (16, 64, 32, 32))):
    expression("kernels", f"lib.nn.functional.adaptive_avg_pool2d(a, {count})",
               name=f"adaptive_avg_pool2d to {count}, {'x'.join(map(str, shape))}", a=shape)

# Images looked at elsewhere.
expression("kernels", "lib.nn.functional.grid_sample(a, b, align_corners=False)",
           name="grid_sample, 4x3x64x64", a=(4, 3, 64, 64), b=(4, 64, 64, 2))

# A bias of few columns.
expression("kernels", "a + b", name="a + b, 65536x16 and 16", a=(65_536, 16), b=(16,))
