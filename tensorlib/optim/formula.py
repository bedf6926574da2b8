"""Optimisers declared by the formula of one element's update.

The formula is traced once into loops that go over a parameter, its gradient and its states in one
pass (`tensorlib._core.tiles.update`), and one call does all parameters of a group. With
`differentiable=True` it runs on the tensors themselves, and is recorded.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tensorlib import Tensor, strided, view_as_complex, view_as_real, zeros_like
from tensorlib._core.apply.optimizer_step import chosen, prepare, run_update
from tensorlib._core.tiles.update import Update
from tensorlib.ops.formulas import Symbol
from tensorlib.optim.optimizer import Optimizer, ParamsT, check_options

# A group whose steps all differ: after so many prepared steps that were not used, none is prepared.
MOST_UNUSED = 3
PAIRS = "complex"    # in the place of a group's number, for parameters seen as pairs


def as_pairs(x):
    """A state of a complex parameter as pairs of real numbers."""
    return view_as_real(x) if isinstance(x, Tensor) and x.is_complex() else x


def as_numbers(x):
    """A state of pairs as complex numbers; a count as it is."""
    return view_as_complex(x) if isinstance(x, Tensor) and x.ndim and x.shape[-1] == 2 else x


class FormulaOptimizer(Optimizer):
    """An optimiser that a formula defines.

    A subclass says which `options` of a group shape the formula, by being true or not; which
    `states(group)` it keeps; the `numbers` that depend on options and on the count of steps; and
    the formula.
    """

    options = ("maximize", "weight_decay")
    counts = True               # whether a state `step` counts the steps
    scalars = ()                # states that are one number each, whose new values `numbers` gives
    fused = {}                  # loops that do the same, by the options that are true
    fused_numbers = ()          # in the order in which these loops take them

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._updates = {}       # by the options that shape the formula

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        check_options(defaults)
        self._forget_prepared()
        super().__init__(params, defaults)

    def __setstate__(self, state):
        self._forget_prepared()
        super().__setstate__(state)

    def _forget_prepared(self):
        self._prepared: dict[int, Any] = {}        # by the group's place; None where it can't be
        self._unused: dict[int, int] = {}          # how many in a row were not used

    def states(self, group):
        """The names of the states that the formula takes, in its order."""
        raise NotImplementedError

    def numbers(self, group, step, state):
        """The numbers of the formula by name, for the count of steps with this one."""
        raise NotImplementedError

    def formula(self, group, n, p, g, *states):
        """The new parameter and the new states of one element; `n` has the numbers."""
        raise NotImplementedError

    def begin(self, group, p):
        """The states of a parameter before its first step, by name."""
        return {name: zeros_like(p) for name in self.states(group)}

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one step with every parameter that has a gradient; the loss that `closure()` gave.

        closure: computes the loss anew, with its gradients, and returns it.
        Raises: TypeError, RuntimeError for gradients and states that do not fit their parameter.
        """
        loss = None if closure is None else self._loss_of(closure)
        for place, group in enumerate(self.param_groups):
            prepared = self._prepared.get(place)
            if prepared is None or not prepared.run(group, self.state, self.numbers):
                self._step_of(place, group, prepared)
        return loss

    def _step_of(self, place, group, prepared):
        """Takes a step with the parameters of a group, of which there was none like it before."""
        sparse = [p for p in group["params"] if p.grad is not None and (
            p.grad.layout is not strided)]
        if sparse:
            self._step_sparse(place, group, prepared, sparse)
            return
        in_pairs = [p for p in group["params"] if p.is_complex() and p.grad is not None]
        if in_pairs:
            self._step_complex(place, group, prepared, in_pairs)
            return
        if group.get("differentiable"):
            self._step_recorded(group)
            return
        update = self._update(group)
        if prepared is not None and prepared.take_options(update, group) and prepared.run(
                group, self.state, self.numbers):
            return
        if not self.scalars:
            run_update(update, group, self.state, self._begun, self.numbers)
            if prepared is not None:
                self._unused[place] = 0 if prepared.used else self._unused.get(place, 0) + 1
            self._prepared[place] = (prepare(update, group, self.state)
                                     if self._unused.get(place, 0) < MOST_UNUSED else None)
            return
        noted: list[Any] = []
        run_update(update, group, self.state, self._begun, noting(self.numbers, noted))
        for state, found in noted:
            self._set_scalars(state, found)

    def _step_sparse(self, place, group, prepared, sparse):
        """Takes a step with a group of which some parameters have sparse gradients."""
        grads = [p.grad for p in sparse]
        for p, g in zip(sparse, grads):
            self.sparse_step(group, p, g)
        for p in sparse:
            p.grad = None
        try:
            self._step_of(place, group, prepared)
        finally:
            for p, g in zip(sparse, grads):
                p.grad = g

    def _step_complex(self, place, group, prepared, in_pairs):
        """Takes a step with a group of which some parameters are complex: as pairs of real ones,
        whose states they have."""
        if group.get("differentiable"):
            raise RuntimeError(f"{type(self).__name__}: differentiable=True takes real parameters; "
                               "view_as_complex makes complex numbers of them")
        twins = {}
        for p in in_pairs:
            twin = view_as_real(p.detach())
            twin.grad = view_as_real(p.grad)
            self.state[twin] = {name: as_pairs(x) for name, x in self.state[p].items()}
            twins[twin] = p
        others = [p for p in group["params"] if not p.is_complex()]
        try:
            if others:
                self._step_of(place, {**group, "params": others}, prepared)
            self._unused[PAIRS] = MOST_UNUSED           # views are new in every step
            self._step_of(PAIRS, {**group, "params": list(twins)}, None)
        finally:
            for twin, p in twins.items():
                for name, x in self.state.pop(twin).items():
                    known = self.state[p].get(name)
                    if not (isinstance(known, Tensor) and known.is_complex()):
                        self.state[p][name] = as_numbers(x)

    def sparse_step(self, group, p, g):
        """Takes a step with one parameter and a sparse gradient. Raises: RuntimeError."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients, as those "
                           "of nn.Embedding(sparse=True); SparseAdam, Adagrad and SGD do")

    def _update(self, group):
        """The group's formula as an `Update`, traced when first needed."""
        key = chosen(group, self.options)
        update = self._updates.get(key)
        if update is None:
            update = self._updates[key] = self._made_update(group, frozenset(
                name for name in self.options if group[name]))
        return update

    def _made_update(self, group, chosen):
        states, how = self.states(group), {"counts": self.counts, "each": self.scalars}
        loop = self.fused.get(chosen)
        if loop:
            return fused_update(type(self).__name__, loop, states, self.fused_numbers, **how)
        return trace_update(
            type(self).__name__, lambda n, p, g, *old: self._whole(group, n, p, g, *old), states,
            **how)

    def _whole(self, group, n, p, g, *states):
        return self.formula(group, n, p, -g if group["maximize"] else g, *states)

    def _begun(self, group, p):
        """The state of a parameter, with what it lacks."""
        state = self.state[p]
        if self.counts and state.get("step") is None:
            state["step"] = self._count(0)
        for name, value in self.begin(group, p).items():
            if state.get(name) is None:
                state[name] = value
        return state

    def _set_scalars(self, state, found):
        for name in self.scalars:
            state[name] = self._count(found[name])

    def _step_recorded(self, group):
        names = self.states(group)
        for p in group["params"]:
            if p.grad is None:
                continue
            state = self.state[p]
            fresh = any(state.get(name) is None for name in names)
            self._begun(group, p)
            step = 1 if fresh else 2
            if self.counts:
                state["step"] += 1
                step = state["step"].item()
            found = self.numbers(group, step, state)
            new, *values = self._whole(group, SimpleNamespace(**found), p, p.grad,
                                       *[state[name] for name in names])
            p.copy_(new)
            state.update(zip(names, values))
            self._set_scalars(state, found)


def noting(numbers, noted):
    """`numbers`, which notes with each state what it found for that."""
    def call(group, step, state):
        found = numbers(group, step, state)
        noted.append((state, found))
        return found

    return call


# ---- tracing a formula ---------------------------------------------------------------------------

class Numbers:
    """Stands for the numbers of a formula: any attribute is the symbol of a number."""

    def __init__(self, steps):
        self._steps = steps

    def __getattr__(self, name):
        return Symbol(self._steps, ("number", name))


def fused_update(name, loop, states, numbers, **how):
    """The `Update` that one loop does, which takes `numbers` in this order."""
    n = len(states) + 2
    return Update(name, states, numbers, (), [0, *[n] * (n - 1)], fused=loop, **how)


def trace_update(name, formula, states, **how):
    """The `Update` of a formula, `formula(numbers, p, g, *states)`, of one element.

    It gives the new parameter and the new states, in this order. It is written for tensors, with
    operators and such methods as have a loop; here it runs once on symbols. `numbers` has as
    attributes the numbers that it asks for; `how` is passed on to the `Update`.
    """
    steps = []
    operands = [Symbol(steps, ("operand", i)) for i in range(len(states) + 2)]
    g, *old, p = operands
    new_p, *new = formula(Numbers(steps), p, g, *old)
    results = [g, *new, new_p]
    if len(results) != len(operands):
        raise ValueError(f"{name}: the formula of {len(states)} states gave {len(new)}")
    seen = set()
    for i, (result, own) in enumerate(zip(results, operands)):
        # each operand that is written has a step of its own which does that
        if result is not own and (result.ref[0] != "step" or result.ref in seen):
            results[i] = result * 1.0
        seen.add(results[i].ref)
    refs = [ref for _, inputs in steps for ref in inputs]
    # names come first, then the constants
    numbers = [*dict.fromkeys(value for kind, value in refs if kind == "number"),
               *dict.fromkeys(value for kind, value in refs if kind == "constant")]
    first = {"operand": 0, "number": len(operands), "constant": len(operands),
             "step": len(operands) + len(numbers)}

    def place(ref):
        kind, value = ref
        return first[kind] + (numbers.index(value) if kind in ("number", "constant") else value)

    numbered = [(loop, tuple(place(ref) for ref in inputs)) for loop, inputs in steps]
    return Update(name, states, numbers, numbered, [place(result.ref) for result in results], **how)


# ---- what the formulas of Adam and its variants have in common -----------------------------------

def decayed(group, n, p, g):
    """A parameter and its gradient after weight decay, which falls on one of them."""
    if not group["weight_decay"]:
        return p, g
    if group["decoupled_weight_decay"]:
        return p * n.kept, g
    return p, g + p * n.weight_decay


def moments(n, g, exp_avg, exp_avg_sq):
    """The moving averages of a gradient and of its square, after this gradient."""
    return exp_avg + (g - exp_avg) * n.new1, exp_avg_sq * n.beta2 + g * g * n.new2
