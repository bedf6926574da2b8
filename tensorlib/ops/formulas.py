"""Tracing a derivative's formula into a tile program.

A derivative is written once, as an expression such as `1 - out * out`. It runs on Tensors when a
graph of the gradient is wanted; here it runs once on symbols, which record each step. The program
ends with `zmul`: the gradient times the derivative, zero where the gradient is exactly zero.
"""

from tensorlib._core.tiles.program import TileProgram

GRADIENT = ("input", 0)


class Symbol:
    """A value of the formula: one of its parameters, or the result of a step."""

    __slots__ = ("steps", "ref")

    def __init__(self, steps, ref):
        self.steps = steps
        self.ref = ref

    def apply(self, loop, *operands):
        """Records a step, a loop on these symbols and numbers, and returns its symbol."""
        refs = tuple(x.ref if isinstance(x, Symbol) else ("constant", float(x)) for x in operands)
        self.steps.append((loop, refs))
        return type(self)(self.steps, ("step", len(self.steps) - 1))

    def conj(self):
        """The conjugate of a real value: itself."""
        return self

    def sgn(self):
        """The sign of a real value."""
        return self.sign()

    def __getattr__(self, loop):
        """`x.cos()` records a step of the loop `cos`."""
        if loop.startswith("__"):
            raise AttributeError(loop)
        return lambda *others: self.apply(loop, self, *others)

    def where(self, condition, other):
        """As `Tensor.where`: this value where the condition is true, else the other."""
        return self.apply("where", condition, self, other)

    def masked_fill(self, mask, value):
        """As `Tensor.masked_fill`: the number where the mask is true, else this value."""
        return self.apply("where", mask, value, self)

    def __add__(self, other):
        return self.apply("add", self, other)

    def __radd__(self, other):
        return self.apply("add", other, self)

    def __sub__(self, other):
        return self.apply("sub", self, other)

    def __rsub__(self, other):
        return self.apply("sub", other, self)

    def __mul__(self, other):
        return self.apply("mul", self, other)

    def __rmul__(self, other):
        return self.apply("mul", other, self)

    def __truediv__(self, other):
        return self.apply("div", self, other)

    def __rtruediv__(self, other):
        return self.apply("div", other, self)

    def __pow__(self, other):
        return self.apply("pow", self, other)

    def __neg__(self):
        return self.apply("neg", self)

    def __lt__(self, other):
        return self.apply("lt", self, other)

    def __le__(self, other):
        return self.apply("le", self, other)

    def __gt__(self, other):
        return self.apply("gt", self, other)

    def __ge__(self, other):
        return self.apply("ge", self, other)

    def __eq__(self, other):
        return self.apply("eq", self, other)

    def __ne__(self, other):
        return self.apply("ne", self, other)

    __hash__ = None


class ComplexSymbol(Symbol):
    """A value of a formula for complex numbers."""

    __slots__ = ()

    def conj(self):
        """The conjugate, by a loop."""
        return self.apply("conj", self)

    def sgn(self):
        """The number over its absolute value, by a loop."""
        return self.apply("sgn", self)


def program_of(formula):
    """The tile program of an operation's formula, whose parameters are its tensors."""
    steps = []
    count = formula.__code__.co_argcount
    formula(*[Symbol(steps, ("input", i)) for i in range(count)])
    return number_slots(count, steps, [])


def trace(formula, booleans=(), fused=None, conjugate=False):
    """The tile program of g times the formula, and the constant 0 or 1 if the formula is that.

    The program's inputs are g and then the formula's other parameters, of which `booleans` are
    bool. A formula with a parameter `g` is the whole gradient and is not multiplied by it. `fused`
    names a loop that does it all in one pass, for the hottest derivatives. conjugate: the program
    is for complex numbers, whose gradients take the derivative's conjugate (`sweep/rules.pyx`).
    """
    code = formula.__code__
    parameters = code.co_varnames[: code.co_argcount]
    inputs = ["g", *(name for name in parameters if name != "g")]
    boolean_inputs = [i for i, name in enumerate(inputs) if name in booleans]
    if fused is not None:
        return TileProgram(len(inputs), [(fused, tuple(range(len(inputs))))]), None
    steps = []
    symbol = ComplexSymbol if conjugate else Symbol
    values = [symbol(steps, ("input", inputs.index(name))) for name in parameters]
    if conjugate and "g" in parameters:
        values[parameters.index("g")] = values[parameters.index("g")].conj()
    result = formula(*values)
    if not isinstance(result, Symbol):
        if result in (0, 1):
            return None, result
        result = symbol(steps, ("constant", float(result)))
    if conjugate:
        result = result.conj()
    if "g" not in parameters:
        steps.append(("zmul", (GRADIENT, result.ref)))
    return number_slots(len(inputs), steps, boolean_inputs), None


def number_slots(n_inputs, steps, boolean_inputs):
    """The TileProgram of symbolic steps: slots count inputs, then constants, then steps."""
    constants = list(dict.fromkeys(
        value for _, refs in steps for kind, value in refs if kind == "constant"))
    first_step = n_inputs + len(constants)

    def slot(ref):
        kind, value = ref
        if kind == "input":
            return value
        return n_inputs + constants.index(value) if kind == "constant" else first_step + value

    numbered = [(loop, tuple(slot(ref) for ref in refs)) for loop, refs in steps]
    return TileProgram(n_inputs, numbered, constants, boolean_inputs)
