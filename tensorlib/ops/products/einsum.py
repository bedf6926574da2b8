"""Einstein summation: products of tensors by the letters of their dims.

An equation is parsed, and a plan made for it, once for each set of shapes; a call looks the plan up
and runs its steps. A step takes one or two operands: sums over letters that nothing else has, then
one product, of matrices where a letter is summed over, else element by element.
"""

from itertools import count
from math import prod

import numpy as np

from tensorlib._core.apply.halves import rounded_once
from tensorlib._core.base.error_names import type_name
from tensorlib._core.interpreters.foreign import forms
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import Tensors, composite
from tensorlib.ops.lazy import declared
from tensorlib.ops.pointwise.arithmetic import mul
from tensorlib.ops.products.matmul import matmul
from tensorlib.ops.samples import calls, reals_of, refused_calls
from tensorlib.ops.shape.views import diagonal, permute, reshape

PLANS = {}
MOST_PLANS = 2000        # after which the oldest ones are dropped
EXHAUSTIVE = 4           # operands up to which all orders are tried


# ---- the equation --------------------------------------------------------------------------------
# Letters are numbers: A to Z from 0, a to z from 26. The dims of an ellipsis are -1, -2, ... from
# the right, so that those of several operands broadcast.

def letter(name):
    """The letter of a number, as errors show it."""
    return chr(65 + name) if name < 26 else chr(71 + name)


def names_of(text, place):
    """The numbers of the letters of one operand, with None for an ellipsis."""
    names, i = [], 0
    while i < len(text):
        if text[i].isascii() and text[i].isalpha():
            names.append(ord(text[i]) - (65 if text[i] <= "Z" else 71))
            i += 1
        elif text.startswith("...", i):
            if None in names:
                raise RuntimeError(f"einsum: found '...' twice in {place}")
            names.append(None)
            i += 3
        elif text[i] == ".":
            raise RuntimeError(f"einsum: found '.' in {place} that is not part of any ellipsis")
        else:
            raise RuntimeError(f"einsum: found {text[i]!r} in {place}; subscripts must be in "
                               "[a-zA-Z]")
    return names


def parse(equation, shapes):
    """The numbers of the dims of each operand, and those of the output."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(shapes):
        raise RuntimeError(f"einsum: {'fewer' if len(texts) > len(shapes) else 'more'} operands "
                           f"were provided than specified in the equation: {len(shapes)} for "
                           f"{equation!r}")
    operands = [spelt_out(names_of(text, f"the subscripts of operand {i}"), i, len(shape))
                for i, (text, shape) in enumerate(zip(texts, shapes))]
    every = [name for names in operands for name in names]
    dots = sorted({name for name in every if name < 0})
    if not arrow:
        return operands, dots + sorted(n for n in set(every) if n >= 0 and every.count(n) == 1)
    output = []
    for name in names_of(right, "the output"):
        output += dots if name is None else [name]
    for name in output:
        if name >= 0 and (name not in every or output.count(name) > 1):
            why = ("does not appear in any input" if name not in every else
                   "appears more than once in the output")
            raise RuntimeError(f"einsum: output subscript {letter(name)} {why}: {equation!r}")
    return operands, output


def spelt_out(names, i, ndim):
    """The numbers of an operand's dims, those of its ellipsis among them."""
    missing = ndim - len(names) + (None in names)
    if None not in names and missing or missing < 0:
        raise RuntimeError(f"einsum: the number of subscripts in the equation ({len(names)}) does "
                           f"not match the number of dimensions ({ndim}) for operand {i}"
                           + ("" if None in names else " and no ellipsis was given"))
    if None not in names:
        return names
    place = names.index(None)
    return names[:place] + list(range(-missing, 0)) + names[place + 1:]


def sizes_of(operands, shapes):
    """The size of each letter. Raises: RuntimeError where two do not broadcast."""
    sizes = {}
    for i, (names, shape) in enumerate(zip(operands, shapes)):
        own = dict(zip(names, shape))
        for name, size in zip(names, shape):
            if size != own[name]:
                raise RuntimeError(f"einsum: subscript {letter(name)} is repeated for operand {i}, "
                                   f"but the sizes don't match, {size} and {own[name]}")
            before = sizes.get(name, 1)
            if size != before and 1 not in (size, before):
                what = f"subscript {letter(name)}" if name >= 0 else "the ellipsis"
                raise RuntimeError(f"einsum: {what} has size {size} for operand {i}, which does "
                                   f"not broadcast with previously seen size {before}")
            sizes[name] = size if before == 1 else before
    return sizes


# ---- the order of products -----------------------------------------------------------------------

def order_of(operands, shapes, output):
    """Pairs of places in the list of operands, from which each step takes two and to whose end it
    adds their product. Planned as by `numpy.einsum_path`."""
    if len(operands) < 3:
        return [(0, 1)] * (len(operands) - 1)
    letters = dict(zip(sorted({name for names in operands for name in names}), count()))
    if len(letters) > 52:                       # more than NumPy has letters for
        return in_pairs([range(len(operands))], len(operands))
    given = [part for shape, names in zip(shapes, operands)
             for part in (np.broadcast_to(0.0, shape), [letters[name] for name in names])]
    how = "optimal" if len(operands) <= EXHAUSTIVE else "greedy"
    path, _ = np.einsum_path(*given, [letters[name] for name in output], optimize=how)
    return in_pairs(path[1:], len(operands))


def in_pairs(path, n):
    """A path for n operands whose steps of more than two are cut into pairs."""
    steps = []
    for places in path:
        places = sorted(places)
        while len(places) > 1:
            a, b, *rest = places
            steps.append((a, b))
            n -= 1
            places = [*(place - 2 for place in rest), n - 1] if rest else []
    return steps


# ---- plans ---------------------------------------------------------------------------------------

def plan_of(equation, shapes):
    """What computes an equation for operands of these shapes: a function of their sequence."""
    operands, output = parse(equation, shapes)
    sizes_of(operands, shapes)
    steps = order_of(operands, shapes, output)
    every = held = [Held(names, shape) for names, shape in zip(operands, shapes)]
    for i, x in enumerate(held):
        x.take_diagonals()
        x.sum_over(kept_by(held[:i] + held[i + 1:], output))
    calls = []
    for a, b in steps:
        left, right = held[a], held[b]
        held = [x for i, x in enumerate(held) if i not in (a, b)]
        made, call = product(left, right, kept_by(held, output), output)
        calls.append((a, b, left.ready(), right.ready(), call))
        held.append(made)
    last, = held
    last.sum_over(output)
    last.arrange(output)
    # of one product, moves before it and after it round nothing
    rounds = len(calls) > 1 or any(x.sums for x in (*every, last))
    return runner(calls, last.ready(), rounds)


def kept_by(others, output):
    """The letters that other operands or the output have."""
    return {name for x in others for name in x.names}.union(output)


def runner(calls, finish, rounds):
    """The function that runs the steps of a plan; rounds: several of them round half types."""
    if not calls:
        return lambda operands: finish(operands[0]) if finish else operands[0].view_as(operands[0])
    if len(calls) == 1:
        (_, _, left, right, call), = calls
        if left is right is finish is None:
            return lambda operands: call(*operands)

        def pair(operands):
            a, b = operands
            out = call(a if left is None else left(a), b if right is None else right(b))
            return out if finish is None else finish(out)
        return rounded_once(pair) if rounds else pair

    def chain(operands):
        held = list(operands)
        for a, b, left, right, call in calls:
            y, x = held.pop(b), held.pop(a)
            held.append(call(x if left is None else left(x), y if right is None else right(y)))
        return held[0] if finish is None else finish(held[0])
    return rounded_once(chain)


class Held:
    """What a plan knows of an operand: the letters of its dims, their sizes, and what is done to
    it before its product."""

    def __init__(self, names, shape):
        self.names = list(names)
        self.sizes = dict(zip(names, shape))
        self.doings = []
        self.sums = False

    def take_diagonals(self):
        """Dims of one letter become one."""
        for name in dict.fromkeys(self.names):
            while self.names.count(name) > 1:
                first = self.names.index(name)
                second = self.names.index(name, first + 1)
                self.doings.append((diagonal, (0, first, second)))
                del self.names[second], self.names[first]
                self.names.append(name)

    def sum_over(self, kept):
        """Dims whose letter is not kept are summed over."""
        dims = [d for d, name in enumerate(self.names) if name not in kept]
        if dims:
            self.doings.append((Tensor.sum, (dims,)))
            self.sums = True
            self.names = [name for name in self.names if name in kept]

    def drop_ones(self, other):
        """Dims of size 1 that broadcast with those of `other` are taken away."""
        dims = [d for d, name in enumerate(self.names)
                if self.sizes[name] == 1 and other.sizes.get(name, 1) != 1 and name in other.names]
        if dims:
            self.doings.append((Tensor.squeeze, (dims,)))
            self.names = [name for d, name in enumerate(self.names) if d not in dims]

    def arrange(self, names):
        """The dims in the order of these letters."""
        dims = [self.names.index(name) for name in names]
        if dims != list(range(len(dims))):
            self.doings.append((permute, (dims,)))
        self.names = list(names)

    def shape(self, *sizes):
        """The elements under other sizes."""
        self.doings.append((reshape, (sizes,)))

    def ready(self):
        """The function that does to the operand what is to be done, None for nothing."""
        doings = self.doings
        if not doings:
            return None
        if len(doings) == 1:
            (call, given), = doings
            return lambda x: call(x, *given)

        def each(x):
            for call, given in doings:
                x = call(x, *given)
            return x
        return each


def product(a, b, kept, output):
    """The product of two operands as `Held`, and the operation that makes it of both."""
    for x, y in ((a, b), (b, a)):
        x.drop_ones(y)
    both = [name for name in a.names if name in b.names]
    summed = [name for name in both if name not in kept]
    batch = in_order([name for name in both if name in kept], output)
    rows = in_order([name for name in a.names if name not in both], output)
    columns = in_order([name for name in b.names if name not in both], output)
    sizes = {**a.sizes, **b.sizes}
    sizes.update((name, a.sizes[name]) for name in a.names)
    if not summed:
        return by_elements(a, b, batch + rows + columns, sizes, output)
    a.arrange(batch + rows + summed)
    b.arrange(batch + summed + columns)
    inner = prod(sizes[name] for name in summed)
    of_batch = [sizes[name] for name in batch]
    m, n = (prod(sizes[name] for name in names) for names in (rows, columns))
    if len(rows) != 1 and (rows or batch) or len(summed) != 1:
        a.shape(*of_batch, *([m] if rows or batch else []), inner)
    if len(columns) != 1 and (columns or batch) or len(summed) != 1:
        b.shape(*of_batch, inner, *([n] if columns or batch else []))
    made = Held(batch + rows + columns, [sizes[name] for name in batch + rows + columns])
    if len(rows) != 1 and (rows or batch) or len(columns) != 1 and (columns or batch):
        made.shape(*made.sizes.values())
    return made, matmul


def in_order(names, output):
    """Letters in the order of the output, those that it has not at the end."""
    return sorted(names, key=lambda name: output.index(name) if name in output else len(output))


def by_elements(a, b, names, sizes, output):
    """The product element by element, with the letters in the order of the output."""
    names = in_order(names, output)
    for x in (a, b):
        x.arrange([name for name in names if name in x.names])
        if x.names != names[len(names) - len(x.names):]:
            x.shape(*[sizes[name] if name in x.names else 1 for name in names])
    return Held(names, [sizes[name] for name in names]), mul


# ---- the operation -------------------------------------------------------------------------------

def with_operands(equation, *shapes):
    """The arguments: the equation, and operands of the shapes."""
    return equation, reals_of(shapes, -1.0, 1.0)


@composite(tensors=("operands",), method=False, takes="integer floating", tolerance="product",
           reference=lambda equation, xs: np.einsum(equation, *xs),
           samples=calls(("ij,jk->ik", (2, 3), (3, 4)), ("ii->i", (3, 3)), ("ij->ji", (2, 3)),
                         ("bij,bkj->bik", (2, 2, 3), (2, 2, 3)), ("i,j", (2,), (3,)),
                         ("...i,...i->...", (2, 3), (3,)), ("ij,jk,kl", (2, 3), (3, 2), (2, 2)),
                         ("aij,ijb->ba", (2, 2, 3), (2, 3, 2)), arguments=with_operands),
           errors=refused_calls(
               *((RuntimeError, *case) for case in (
                   ("ij,jk", (2, 3), (2, 3)), ("ij", (2,)), ("ij,jk", (2, 3)), ("i1", (2, 2)),
                   ("i->j", (2,)), ("i.j", (2, 2)), ("i->ii", (2,)), ("i...j...", (2, 2)),
                   ("ii->i", (3, 1)))), arguments=with_operands),
           view="maybe", complex=True)
def einsum(equation, *operands: Tensors):
    """The sum of products of operands over letters of their dims: Einstein's convention.

    The equation has the letters of each operand's dims, and after "->" those of the result; the
    others are summed over. Without "->" the result has, in alphabetic order, the letters that
    appear once. "..." stands for dims that broadcast; a letter twice in one operand for its
    diagonal. Instead, each operand may be followed by a list of numbers below 52 for its letters
    (or `...`), with that of the result at the end.

    Several operands are multiplied in pairs, in an order that needs few multiplications.

    Raises: RuntimeError for an equation that is malformed or does not fit the operands, ValueError
    for calls without operands and for numbers that are not letters, TypeError.

    >>> a, b = tensorlib.ones(2, 3), tensorlib.ones(3, 4)
    >>> tensorlib.einsum("ij,jk->ik", a, b).shape
    tensorlib.Size([2, 4])
    >>> tensorlib.einsum("ij->j", a)
    tensor([2., 2., 2.])
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)) and type(equation) is str:
        operands = tuple(operands[0])
    if type(equation) is not str:
        return planned(equation, operands)
    for x in operands:
        if not isinstance(x, Tensor):
            return planned(equation, operands)
    try:
        plan = PLANS[equation, *[x.shape for x in operands]]
    except KeyError:
        return planned(equation, operands)
    return plan(operands)


def with_equation(equation, *operands):
    """The arguments of a call in the form with an equation and the operands one by one."""
    if type(equation) is not str:
        equation, operands = from_numbers((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return equation, *operands


forms[einsum] = with_equation


def planned(equation, operands):
    """The result of a call for which there is no plan yet."""
    if not isinstance(equation, str):
        equation, operands = from_numbers((equation, *operands))
    if not operands:
        raise ValueError("einsum: must specify the equation and at least one operand")
    for i, x in enumerate(operands):
        if not isinstance(x, Tensor):
            raise TypeError(f"einsum: expected a Tensor as operand {i}, got {type_name(x)}")
    shapes = tuple(x.shape for x in operands)
    plan = PLANS.get((equation, *shapes))
    if plan is None:
        if len(PLANS) >= MOST_PLANS:
            for key in list(PLANS)[:MOST_PLANS // 2]:
                PLANS.pop(key, None)
        PLANS[equation, *shapes] = plan = plan_of(equation, shapes)
    return plan(operands)


def from_numbers(given):
    """The equation, and the operands, of a call with lists of numbers."""
    operands = given[:-1:2] if len(given) % 2 else given[::2]
    lists = [text_of(numbers) for numbers in given[1::2]]
    equation = ",".join(lists)
    if len(given) % 2:
        equation += "->" + text_of(given[-1])
    return equation, operands


def text_of(numbers):
    """The letters of a list of numbers."""
    if not isinstance(numbers, (list, tuple)):
        raise TypeError("einsum: expected an equation, or a list of numbers after each operand, "
                        f"got {type(numbers).__name__}")
    for n in numbers:
        if n is not Ellipsis and not (isinstance(n, int) and 0 <= n < 52):
            raise ValueError(f"einsum: {n!r} in a list of subscripts is not within the valid "
                             "range [0, 52)")
    return "".join("..." if n is Ellipsis else letter(n) for n in numbers)


declared(__name__)
