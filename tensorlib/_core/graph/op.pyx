"""Operations: the record of each, with its rules, and the registry."""

cimport cython

from collections.abc import Mapping
from types import MappingProxyType

from tensorlib._core.base.closed cimport close_type
from tensorlib._core.base.locks cimport Lock, drop, hold
from tensorlib._core.base.upcalls cimport upcalls
from tensorlib._core.graph.node cimport OUTPUT
from tensorlib._core.tiles.loops cimport loop_id
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.program cimport TileProgram

from tensorlib._core.base.error_names import nearest


# ---- records -------------------------------------------------------------------------------------

class Operations(dict):
    """Operations by name; the KeyError for an unknown name suggests similar ones.

    Operations declared outside the library have the name of their module as a prefix, which may be
    left out where it is unambiguous.
    """

    def __missing__(self, name):
        if all_declared():
            return self[name]
        declared = [op for key, op in self.items() if key.rpartition(".")[2] == name]
        if len(declared) == 1:
            return declared[0]
        near = [op.name for op in declared] or nearest(str(name), self)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise KeyError(f"ops: no operation named {name!r}{hint}")


class Registry(Mapping):
    """All operations by name, read-only. Iterating over it declares the lazy families."""

    def __getitem__(self, name):
        return OPS[name]

    def __iter__(self):
        all_declared()
        return iter(OPS)

    def __len__(self):
        all_declared()
        return len(OPS)

    def __repr__(self):
        return f"<the registry of {len(self)} operations>"


cdef bint all_declared() except -1:
    """Declares the families that are not declared yet; returns whether there were any."""
    return upcalls.declare_all != NULL and (<object>upcalls.declare_all)()


cdef Lock once                # of what is made of an operation when it is first asked for
cdef object OPS = Operations()
cdef dict GUARDS = {None: NOTHING, "zero": ZEROS, "negative": NEGATIVES}
registry = Registry()
declared = MappingProxyType(OPS)      # as far as they are

# what a rule may ask of an argument that is not saved
cdef dict FACTS = {"shape": SHAPE, "ndim": NDIM, "dtype": DTYPE}


@cython.final
cdef class Rule:
    def __repr__(self):
        return f"<rule of {', '.join(self.names)}>"

    cdef TileProgram tiles_of(self, bint complex_numbers):
        """The program of an element-wise formula; of complex numbers it is made here first."""
        cdef TileProgram made
        if not complex_numbers:
            return self.program
        if self.conjugated is None:
            made = self.conjugate if isinstance(self.conjugate, TileProgram) else self.conjugate()
            hold(&once)
            if self.conjugated is None:
                self.conjugated = made
            drop(&once)
        return self.conjugated


close_type(Rule)


@cython.final
@cython.binding(False)            # methods check their `self`
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Op:
    """One operation: what it computes, its gradient and its forward-mode rule.

    `name` and `doc` as in PyTorch; `arguments` are the tensors it takes, `attributes` its other
    arguments. `places` are the positions of the tensors in a call, where they do not come first. An
    element-wise operation has the name of a `loop`, or a tile `program` of several loops. A Python
    number beside a half type is rounded to that type, unless it is one of the `factors`: as in
    PyTorch, these have the precision of float32, in which half types are computed.
    """

    def __cinit__(self, str name, str doc or None, arguments, attributes=(), defaults=(),
                  outputs=("out",), *, forward=None, loop=None, program=None,
                  boolean_inputs=(), factors=(), bint to_float=False, refuses=None,
                  no_bools=None,
                  bint differentiable=True, bint variadic=False,
                  bint is_view=False, bint takes_out=False, bint random=False, returns=None,
                  convert=None, places=None, str linearity="", testing=None,
                  bint pure=False, bint reads_values=True,
                  bint checks_values=True, bint sized_by_values=True, bint may_view=False,
                  bint takes_complex=False, bint packs=False, bint whole=False,
                  bint affine=False, str key="",
                  draws=None, str family="", str node_name="",
                  multiplications=None):
        self.name = name
        self.doc = doc
        parts = name.rpartition(".")[2].strip("<>").split("_")
        self.node_name = node_name or (
            "".join(part[:1].upper() + part[1:] for part in parts) + "Backward0")
        self.arguments = tuple(arguments)
        self.attributes = tuple(attributes)
        self.defaults = tuple(defaults)
        self.outputs = tuple(outputs)
        self.n_args = len(self.arguments)
        self.forward = forward
        self.differentiable = differentiable
        self.linearity = linearity
        self.variadic = variadic
        self.is_view = is_view
        self.takes_out = takes_out
        self.random = random
        self.pure = pure
        self.reads_values = reads_values or sized_by_values
        self.checks_values = checks_values
        self.sized_by_values = sized_by_values
        self.may_view = may_view
        self.takes_complex = takes_complex
        self.packs = packs
        self.whole = whole
        self.affine = affine
        self.key = key
        self.draws = None if draws is None else tuple(draws)
        self.family = family
        self.multiplications = multiplications
        self.returns = Tensor if returns is None else returns
        self.convert = convert
        self.places = tuple(range(self.n_args) if places is None else places)
        self.testing = testing or {}
        self.rules = (None,) * self.n_args
        self.kept_attributes = frozenset()
        self.to_float = to_float
        self.guard = GUARDS[refuses] if no_bools is None else BOOLS
        self.no_bools = no_bools
        self.boolean_inputs = tuple(boolean_inputs)
        self.rounded = sum(1 << i for i, x in enumerate(self.arguments) if x not in factors)
        self.elementwise = loop is not None
        if loop is not None:
            self.loop = loop_id(loop)
            self.program = program if program is not None else TileProgram(
                self.n_args, [(loop, tuple(range(self.n_args)))], (), boolean_inputs)

    def add_rule(self, str argument or None, function, program=None, constant=None,
                 bint spreads=False, names=None, conjugate=None, bint takes_halves=False):
        """Registers how the gradient of `argument` (None: of all at once) is computed.

        The parameters of `function` name what it needs, and so what is saved: `g`, an output, an
        argument, an attribute, an argument's shape, ndim or dtype (`input_shape`), or the `node`
        itself; `names` are used in the place of its parameters. An element-wise formula comes with
        its tile `program`, or with the `constant` 0 or 1 that it is; `conjugate` makes the program
        for complex numbers. A rule that `spreads` repeats the gradient over the attribute `dim`:
        the sweep does it without a call. One that `takes_halves` computes them in float32 itself.
        """
        cdef Rule rule = self.make_rule(function, names, MAX_PARAMETERS)
        rule.widens = rule.widens and not takes_halves
        self.kept_attributes |= {name for name in rule.names if name in self.attributes}
        rule.joint = argument is None
        rule.program, rule.conjugate = program, conjugate
        rule.kind = TILES if program is not None else FUNCTION
        if constant is not None:
            rule.kind = PASS if constant else ZERO
        if spreads:
            rule.kind = SPREAD
        if argument is None:
            self.rules = (rule,) * self.n_args
        elif argument not in self.arguments:
            raise ValueError(
                f"{self.name}: has no argument {argument!r}; it takes {self.arguments}")
        else:
            rules = list(self.rules)
            rules[self.arguments.index(argument)] = rule
            self.rules = tuple(rules)

    cdef Rule make_rule(self, function, names, int most):
        """A rule of `function` whose parameters, or `names` in their place, are found."""
        cdef Rule rule = Rule.__new__(Rule)
        cdef int i
        if not self.differentiable:
            raise ValueError(f"{self.name}: is declared without a derivative and takes no rule")
        rule.function = function
        rule.names = function.__code__.co_varnames[:function.__code__.co_argcount] if (
            names is None) else names
        if len(rule.names) > most:
            raise ValueError(f"{self.name}: a rule takes at most {most} parameters")
        rule.n_wants = len(rule.names)
        rule.widens = "." not in self.name and "node" not in rule.names and not self.affine and (
            self.linearity not in ("linear", "multilinear"))
        for i, name in enumerate(rule.names):
            self.resolve(rule, i, name)
        return rule

    cdef int resolve(self, Rule rule, int i, str name) except -1:
        """Resolves a parameter of a rule."""
        cdef str owner, what
        if name == "g":
            rule.wants[i] = GRADIENT
        elif name.startswith("d_") and name[2:] in self.arguments:
            rule.wants[i], rule.places[i] = TANGENT, self.arguments.index(name[2:])
        elif name in self.outputs:
            rule.wants[i], rule.places[i] = SAVED, OUTPUT + self.outputs.index(name)
            rule.mask |= <unsigned int>1 << rule.places[i]
        elif name in self.arguments and not self.variadic:
            rule.wants[i], rule.places[i] = SAVED, self.arguments.index(name)
            rule.mask |= <unsigned int>1 << rule.places[i]
        elif name in self.arguments:
            rule.wants[i] = INPUTS
            rule.mask |= (<unsigned int>1 << OUTPUT) - 1
        elif name in self.attributes:
            rule.wants[i], rule.places[i] = ATTRIBUTE, self.attributes.index(name)
        elif name == "node":
            rule.wants[i] = NODE
        else:
            owner, what = fact_named(self, name)
            rule.wants[i] = FACTS[what]
            rule.places[i] = self.arguments.index(owner)

    def add_tangent(self, function, names=None, str linearity="jvp"):
        """Registers the forward-mode rule: the output's tangent from those of the inputs.

        Its parameters name what it needs, as in a gradient rule, and the tangents `d_ARGUMENT`;
        `names` are used in the place of its parameters.
        """
        self.tangent_rule = self.make_rule(function, names, MAX_WANTS)
        self.linearity = linearity
        return function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    @property
    def needs(self):
        """The names of what its gradient needs: inputs, outputs, and `grad_OUTPUT` of outputs."""
        return (<object>upcalls.needs_of)(self)

    @property
    def gradient(self):
        """The backward operation, an Op with a gradient of its own; None where there is none.

        It takes what `needs` names, then by keyword the attributes of the forward operation and,
        unless that is composed of others, `likes`, the shape and dtype of each input; `wanted` may
        say which gradients are needed. It returns a tuple, the gradient of each input.
        """
        if self.backward is None and self.differentiable:
            made = (<object>upcalls.gradient_of)(self)
            hold(&once)
            if self.backward is None:              # another thread may have made it meanwhile
                self.backward = made
            drop(&once)
        return self.backward

    @property
    def tangent(self):
        """The forward-mode rule, tangent(args, kwargs, tangents): the output and its tangent.

        None where the operation has none. `args` are as in a call, `tangents` a tensor or None for
        each of its tensors.
        """
        return (<object>upcalls.tangent_of)(self)

    def __repr__(self):
        return f"<Op {self.name}({', '.join(self.arguments + self.attributes)})>"

    def __reduce__(self):
        return find, (self.name,)


cdef tuple fact_named(Op op, str name):
    """The argument and the property that a name such as `input_shape` refers to.

    Raises: ValueError for another name.
    """
    owner, _, what = name.rpartition("_")
    if owner not in op.arguments or what not in FACTS:
        raise ValueError(f"{op.name}: a rule asks for {name!r}, which it does not have")
    return owner, what


def register(dict operations):
    """Enters operations in the registry, by name."""
    OPS.update(operations)


def find(name):
    """The operation of this name. Raises KeyError with the nearest names."""
    return OPS[name]
