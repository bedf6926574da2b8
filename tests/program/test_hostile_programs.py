"""Programs that someone has spoilt: each is refused with a clear error, or is a program. Reading
and verifying them computes nothing, so a size as large as the memory takes no memory."""

import random
import re

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn, program

TYPES = ["add", "matmul", "fill_", "copy_", "rand", "optimizer_step", "function", "set_grad",
         "placeholder", "cond", "scan", "while_loop", "eye", "arange", "linspace", "full", "sum",
         "stack", "put_index", "view", "unfold", "strided_part", "getitem", "empty", "repeat",
         "convolve", "max_pool", "recurrent", "mul_gradient", "tanh_gradient_gradient", "nothing"]
VALUES = ["4611686018427387904", "9223372036854775807", "-9223372036854775809", "9" * 30, "-1",
          "0", "nan", "inf", "None", "True", "'x'", "(1, 2)", "()", "[0]", "slice(None)",
          "float32", "...", "1.5", "{}", "(4611686018427387904, 4)", "slice(0, 9, 0)",
          "[True, False]", "x", "[[1], 2]", "''"]
SHAPES = ["", "2", "None, None", "4611686018427387903, 4611686018427387903", "0", "3, 3",
          "1000000000000"]
DTYPES = ["float32", "float64", "int64", "bool", "uint8", "bfloat16", "float16"]


def loop(x):
    def body(n, a):
        return n + 1, tl.cond(a.sum() > 0, lambda: (a * x).sin(), lambda: a[:1] + a)
    return tl.while_loop(lambda n, a: n < 3, body, (tl.tensor(0), x))[1]


def programs():
    images = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                           nn.Linear(18, 3)).eval()
    made = [program.trace(loop, tl.ones(3)), program.trace(images, tl.randn(1, 1, 8, 8)),
            program.trace(lambda x: tl.scan(lambda c, t: (c * t, c + t), x[0], x)[1],
                          tl.ones(3, 2)),
            program.trace(lambda x: x.topk(2)[0].expand(4, 2).cumsum(0).repeat(2, 1), tl.ones(5))]
    for p in made:
        program.gradients(p.outputs, p.inputs)
    return [(str(p), p.values()) for p in made]


def spoilt(text, rng):
    """The text with one thing changed that a text editor would not notice."""
    lines = text.split("\n")
    i, j, kind = rng.randrange(len(lines)), rng.randrange(len(lines)), rng.randrange(9)
    if kind == 0:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 1:
        del lines[i]
    elif kind == 2:
        lines.insert(j, lines[i])
    elif kind == 3:
        lines[i] = re.sub(r"(?<== )\w+(?=\()", lambda _: rng.choice(TYPES), lines[i], count=1)
    elif kind in (4, 5):
        lines[i] = replaced(lines[i], r"(?<![\w.@])-?\d+(\.\d+)?(?![\w.@])|\([^()]*\)|None|True",
                            VALUES, rng)
    elif kind == 6:
        lines[i] = replaced(lines[i], r"[a-z_]\w*", re.findall(r"[a-z_]\w*(?=:)", text), rng)
    elif kind == 7:
        lines[i] = replaced(lines[i], r"(?<=\[)[^\[\]]*(?=\])", SHAPES, rng)
    else:
        lines[i] = replaced(lines[i], "|".join(DTYPES), DTYPES, rng)
    return "\n".join(lines)


def replaced(line, pattern, pieces, rng):
    """A line with another piece in the place of one that fits a pattern."""
    found = list(re.finditer(pattern, line))
    if not found or not pieces:
        return line
    match = rng.choice(found)
    return line[:match.start()] + rng.choice(pieces) + line[match.end():]


@pytest.mark.parametrize("seed", range(4))
def test_spoilt_texts_are_refused_or_are_programs(seed):
    rng, texts = random.Random(seed), programs()
    tl.memory.reset_peak()
    before, refused = tl.memory.stats()["in_use"], 0
    for _ in range(250):
        text, values = rng.choice(texts)
        for _ in range(rng.randint(1, 3)):
            text = spoilt(text, rng)
        try:
            program.verify(program.parse(text, values))
        except program.ProgramError as error:
            assert str(error).startswith(("parse: line", "verify: "))
            refused += 1
    assert 150 < refused < 250
    assert tl.memory.stats()["peak"] - before < 2**20


@pytest.mark.parametrize("seed", range(4))
def test_spoilt_files_are_refused_or_are_programs(seed, tmp_path):
    rng, refused = random.Random(seed), 0
    path = tmp_path / "p"
    program.trace(loop, tl.ones(3)).save(path)
    whole = path.read_bytes()
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(data))
            kind = rng.randrange(4)
            if kind == 0:
                data[place] = rng.randrange(256)
            elif kind == 1:
                del data[place:place + rng.randint(1, 9)]
            elif kind == 2:
                data[place:place] = rng.choice([b"\xff\xfe", b"\0", b'"', b"9" * 20, b"}", b"\\u"])
            else:
                data[rng.randrange(8)] = rng.randrange(256)
        path.write_bytes(data)
        try:
            program.verify(program.load(path))
        except program.ProgramError as error:
            assert str(error).startswith(("parse: line", "verify: ", "load: "))
            refused += 1
    assert refused > 50


HEAD = "program(x) -> y:\n    input x: float32[2]\n\n    y: "


@each("line, message", [
    ("float32[4000000000] = zeros(size=(4000000000, 2))", "gives y"),
    ("float32[2] = eye(n=100000)", "gives y as"),
    ("float32[2] = arange(start=0, end=4000000000)", "gives y as"),
    ("float32[4611686018427387904] = relu(x)", "sizes"),
    ("float32[2] = mul(x, y)", "y is not defined"),
    ("float32[2] = mul_gradient(x, x)", "mul_gradient"),
    (f"float32[2] = mul{'_gradient' * 60}(x, x)", "mul_gradient"),
    ("float32[2] = softmax(x, dim=4611686018427387904)", "softmax"),
    ("float32[2] = view(x, shape=(4611686018427387904, 4))", "view"),
    ("float32[2] = max_pool(x, kernel=(0,), stride=(0,), padding=(9,), dilation=(0,), "
     "planes=(2,))", "max_pool"),
    ("float32[2] = function(args=(x,), function='os.system')", "function"),
    ("float32[2] = cond(pred=x)", "cond"),
    ("float32[2] = frombuffer(buffer='abc')", "frombuffer"),
    ("float32[2] = tanh(x)\n    check(x, name='none', facts=())", "knows no check 'none'"),
])
def test_hostile_calls(line, message):
    tl.memory.reset_peak()
    before = tl.memory.stats()["in_use"]
    with pytest.raises(program.ProgramError, match=message):
        program.verify(program.parse(f"{HEAD}{line}\n"))
    assert tl.memory.stats()["peak"] - before < 2**20


@pytest.mark.parametrize("call", [
    "placeholder(shape=(4000000000,), dtype=float32)", "hann_window(window_length=4000000000)"])
def test_what_is_made_of_numbers_is_not_made_by_the_verifier(call):
    tl.memory.reset_peak()
    before = tl.memory.stats()["in_use"]
    program.verify(program.parse(
        f"{HEAD}float32[4000000000] = {call}\n"))
    assert tl.memory.stats()["peak"] - before < 2**20


# Each of these took minutes, or did not end, where a pass over the text took another at each place.
LONG = 400_000


@pytest.mark.parametrize("line", [
    "y: float32[2] = mul(x, x)" + " " * LONG + "# a.py:3",
    "y: float32[2] = mul(x, x)\n" + "\n" * LONG,
], ids=["spaces before a comment", "lines without a word"])
def test_long_texts_are_read_in_one_pass(line):
    text = HEAD[:-len("y: ")] + line + "\n"
    assert str(program.parse(text)).split() == text.split()


@pytest.mark.parametrize("line, message", [
    ("float32[2] = mul(x, x)" + " " * LONG + "# a'b", "cannot read"),
    ("float32[2] = mul(x, " + "1" * LONG + "a)", "cannot read"),
    ("float32[2] = mul(x, '" + r"\a" * LONG + ")", "cannot read"),
    ("float32[2] = mul(x,\n" + "1,\n" * LONG, "mul takes 2 inputs"),
    ("float32[2] = mul(x, " + "[" * LONG, "nested too deep"),
    ("float32[2] = mul(x, x)" + " #" * LONG, "cannot read"),
], ids=["spaces", "digits", "a string without an end", "parts", "brackets", "signs of comments"])
def test_long_texts_are_refused_in_one_pass(line, message):
    with pytest.raises(program.ProgramError, match=message):
        program.parse(f"{HEAD}{line}\n")


def test_a_long_index_is_written_and_read():
    places = [int(i) for i in range(100_000)]
    made = program.trace(lambda x: x[places], tl.ones(100_000))
    assert str(program.parse(str(made), made.values())) == str(made)


def test_a_line_is_cut_in_no_string():
    text = (f"{HEAD}float32[2] = mul(x, x)\n")
    made = program.parse(text)
    call = made.block.ops[0]
    call.attributes["words"] = ["a,  b" * 30, 'it\'s, "so"' * 20, "[, ]" * 30]
    assert call.attributes["words"] == program.parse(str(made)).block.ops[0].attributes["words"]


@pytest.mark.parametrize("container", [list, dict, tuple])
def test_a_result_in_itself_is_an_error_or_runs_eagerly(container):
    def deep(x):
        value = [x]
        if container is list:
            value.append(value)
            return value
        if container is dict:
            value = {"x": x}
            value["self"] = value
            return value
        for _ in range(5000):
            value = (value,)
        return value

    with pytest.raises(RecursionError, match="what the function returned"):
        program.trace(deep, tl.ones(2))
    if container is tuple:
        return
    compiled = tl.compile(deep)
    with pytest.warns(RuntimeWarning, match=f"it returns a {container.__name__} that contains it"):
        compiled(tl.ones(2))
    found = compiled(tl.ones(2))
    assert type(found) is container and any(x is found for x in (
        found.values() if container is dict else found))


def test_a_list_that_is_returned_twice_is_one_list():
    def f(x):
        found = [x * 2]
        return found, found

    compiled = tl.compile(f)
    compiled(tl.ones(2))
    first, second = compiled(tl.ones(2))
    assert first is second
