"""Draws straight-line programs on tensors that are strided, expanded, overlap, and share memory:
values, views, writes through views, modes, control flow and random numbers.

All have the shape (3, 3) or are made so, in float64.
"""

import random
from dataclasses import dataclass, replace

from .states import indented

# Arguments: what each is, given `b`, tensors made anew for the call.
ARGUMENTS = (
    "b[0]", "b[1]", "b[0].t()", "b[0][:3]", "b[2][1:, 1:]", "b[2][:3, :3]",
    "b[2][::1, ::1][:3, 1:]", "b[3].expand(3, 3)", "b[4].expand(3, 3)", "b[5][..., 0]",
    "b[5].transpose(0, 2)[0]", "b[0].detach()", "b[0].view(3, 3)", "b[1].t()",
    "b[6].as_strided((3, 3), (1, 1))", "b[6][:9].view(3, 3)", "b[6].as_strided((3, 3), (3, 1), 2)",
    "b[3].t().expand(3, 3)", "b[0] * 1", "b[1].sin()", "b[7][0]", "b[7].squeeze(0)",
    "b[7].transpose(0, 1)[:, 0]")
BASES = ("R(3, 3)", "R(3, 3)", "R(4, 4)", "R(1, 3)", "R(3, 1)", "R(3, 3, 3)", "R(16)", "R(1, 3, 3)")
# Statements: `{n}` is a new name, `{a}` and `{b}` are names, `{k}` is a number.
STATEMENTS = (
    "{n} = {a}.sin()", "{n} = {a} * {b}", "{n} = {a} + {k}", "{n} = {a} @ {b}", "{n} = {a}.t()",
    "{n} = {a} - {b}.mean()", "{n} = {a}.tanh() * {k}", "{n} = {a}[[2, 0, 1]]",
    "{n} = {a}.clone()", "{n} = {a}[0].expand(3, 3)", "{n} = {a}[:, :1].expand(3, 3)",
    "{n} = {a}.detach()", "{n} = {a}.reshape(9).view(3, 3)", "{n} = {a}.flip(0)",
    "{n} = tl.where({a} > 0, {a}, {b})", "{n} = {a}.softmax(1)", "{n} = {a}.cumsum(0)",
    "{n} = tl.cat([{a}[:1], {b}[1:]])", "{n} = tl.stack([{a}[0], {b}[1], {a}[2]], 1)",
    "{n} = tl.zeros(3, 3, dtype=tl.float64)", "{n} = tl.arange(9.0, dtype=tl.float64).view(3, 3)",
    "{n} = {a}.contiguous()", "{n} = {a}.transpose(0, 1).contiguous()",
    "{n} = {a} if {a}.requires_grad else {b}", "{n} = {a}.as_strided((3, 3), {a}.stride())",
    "{n} = {a} * int({a}.is_contiguous())", "{n} = {a}[None][0]",
    "{n} = {a}.unsqueeze(0).transpose(0, 1).squeeze(1) @ {b}", "{a}.mul_({k})", "{a}.add_({b})",
    "{a}[0] = {b}[1]", "{a}[:, 1:].mul_({k})", "{a}.t().add_({k})", "{a}.copy_({b})",
    "{a}.diagonal().zero_()", "{a}[{b} > 0] = {k}", "{a}.detach().mul_({k})",
    "{a}[1:].copy_({a}[:-1].clone())", "{a}[1:].add_({b}[:-1])", "{a}.sin_()",
    "{a}.T[0].fill_({k})", "{a}.clamp_(-{k}, {k})", "{a}.sub_({b}.t())", "{a}.flip(0).mul_({k})",
    "{a}.zero_()", "{n} = {a} + tl.rand(3, 3, dtype=tl.float64)", "{n} = {a} * tl.randn_like({a})",
    "{n} = F.dropout({a}, 0.5)", "{n} = tl.bernoulli({a}.sigmoid()) * {b}",
    "with tl.no_grad():\n    {n} = {a} * {k}", "with tl.no_grad():\n    {a}.mul_({k})",
    "with tl.enable_grad():\n    {n} = {a}.cos()",
    "{n} = tl.cond({a}.sum() > 0, lambda: {a} * {k}, lambda: {b} + {k})",
    "{n} = tl.cond({b}.sum() > 0, lambda: {a}, lambda: {b})",
    "{n} = tl.cond({a}.sum() > {k}, lambda u: u.sin(), lambda u: u, ({b},))",
    "_, {n} = tl.while_loop(lambda i, u: i < 2, lambda i, u: (i + 1, u * {k}), (tl.tensor(0), "
    "{a}))",
    "_, {n} = tl.while_loop(lambda i, u: i < 0, lambda i, u: (i + 1, u * {k}), (tl.tensor(0), "
    "{a}))", "{n}, _ = tl.scan(lambda c, r: (c * {k} + r, c), {a}, tl.stack([{b}, {a}]))",
    "_, {n} = tl.scan(lambda c, r: (c, c + r), {a}[0], {b})",
    "{n} = tl.func.vmap(lambda r: r * r.sum())({a})",
    "{n} = tl.func.grad(lambda u: (u * u).sin().sum())({a})", "{n} = {a}.float().double()",
    "{n} = {a}.to(tl.float64)", "{n} = {a}.view(tl.int64).view(tl.float64)", "{a}, {b} = {b}, {a}",
    "{n} = {a}[1:].sum(0, keepdim=True).expand(3, 3)",
    "{n} = tl.zeros(3, 3, dtype=tl.float64)\n{n}.t()[0] = {a}[1]")


@dataclass(frozen=True)
class Drawn:
    """calls: for each the arguments by number, and the seed of its values."""

    statements: tuple
    results: tuple
    calls: tuple
    grads: tuple            # which bases require a gradient


def drawn(seed, number):
    """The program of this number."""
    rng = random.Random(f"layouts {seed} {number}")
    names = ["x0", "x1", "x2"]
    statements = []
    for i in range(rng.randint(1, 8)):
        text = rng.choice(STATEMENTS).format(n=f"y{i}", a=rng.choice(names), b=rng.choice(names),
                                             k=rng.choice(["0.5", "2.0", "1.25"]))
        statements.append(text)
        if f"y{i}" in text:
            names.append(f"y{i}")
    kinds = [tuple(rng.randrange(len(ARGUMENTS)) for _ in range(3)) for _ in range(2)]
    calls = tuple((kinds[rng.random() < 0.35], rng.randrange(1000))
                  for _ in range(rng.randint(3, 5)))
    some = rng.random() < 0.5
    grads = tuple(some and rng.random() < 0.4 for _ in BASES)
    return Drawn(tuple(statements), tuple(rng.sample(names, min(len(names), rng.randint(1, 3)))),
                 calls, grads)


def text_of(program):
    """The program as the text of a module."""
    body = [line for text in program.statements for line in text.split("\n")]
    bases = ", ".join(text[:-1] + f", grad={grad})" for text, grad in zip(BASES, program.grads))
    lines = ["import tensorlib as tl", "F = tl.nn.functional", "def build():", *indented([
        "kept = []",
        "def given(places, seed):",
        "    g = tl.Generator().manual_seed(seed)",
        "    def R(*size, grad):",
        "        return tl.randn(*size, dtype=tl.float64, generator=g).requires_grad_(grad)",
        f"    kept[:] = b = [{bases}]",
        "    made = {" + ", ".join(
            f"{i}: lambda: {text}" for i, text in enumerate(ARGUMENTS)) + "}",
        "    return {f'x{i}': made[k]() for i, k in enumerate(places)}",
        "def f(x0, x1, x2):", *indented(body), f"    return {', '.join(program.results)},",
        "steps = [" + ", ".join(f"dict(also=lambda: given({places}, {seed}))"
                                for places, seed in program.calls) + "]",
        "return f, steps, lambda: kept"])]
    return "\n".join(lines) + "\n"


def smaller(program):
    """Programs with one thing less."""
    for i in range(len(program.statements)):
        yield replace(program, statements=program.statements[:i] + program.statements[i + 1:])
    for i in range(len(program.calls)):
        if len(program.calls) > 1:
            yield replace(program, calls=program.calls[:i] + program.calls[i + 1:])
    for i in range(len(program.results)):
        if len(program.results) > 1:
            yield replace(program, results=program.results[:i] + program.results[i + 1:])
    if any(program.grads):
        yield replace(program, grads=(False,) * len(BASES))
    for i, grad in enumerate(program.grads):
        if grad:
            yield replace(program, grads=program.grads[:i] + (False,) + program.grads[i + 1:])
    for i, (places, seed) in enumerate(program.calls):
        for j, place in enumerate(places):
            if place:
                less = (places[:j] + (0,) + places[j + 1:], seed)
                yield replace(program, calls=program.calls[:i] + (less,) + program.calls[i + 1:])
