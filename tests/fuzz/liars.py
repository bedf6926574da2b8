"""Objects that pretend to be numbers, sequences and arrays, and lie, raise or run code on being
asked."""

import gc

import tensorlib as tl


class Lied(Exception):
    """What a liar raises: not the library's fault."""


INPUTS = []        # the arguments of the call under way, which liars act on
ASKED = []         # not empty once a liar has run code on tensors
MOST = 30          # times that a liar acts in one call, so that its code can call the library


def tensors():
    """The tensors among the arguments of the call under way."""
    return [x for x in INPUTS if isinstance(x, tl.Tensor)]


def resize(x):
    """Shows other memory, and less of it, through the same tensor."""
    x.data = tl.ones(1, dtype=x.dtype)


def rewrite(x):
    """Writes positions far outside of anything."""
    x.fill_(100 if x.dtype in (tl.int8, tl.uint8, tl.bool) else 2**14)


# What a liar does to each tensor of the call.
ACTS = {
    "resize": resize,
    "rewrite": rewrite,
    "transpose": lambda x: x.t_() if x.ndim == 2 else x.unsqueeze_(0),
    "reinit": lambda x: x.__init__([7.0]),
    "detach": lambda x: x.detach_(),
    "backward": lambda x: x.sum().backward(),
    "grad": lambda x: setattr(x, "grad", None),
    "collect": lambda x: gc.collect(),
    "cache": lambda x: tl.memory.empty_cache(),
    "clear": lambda x: [y.clear() for y in INPUTS if isinstance(y, (list, dict))],
    "grow": lambda x: [y.append(y) for y in INPUTS if isinstance(y, list) and len(y) < 100],
    "threads": lambda x: tl.set_num_threads(2),
    "nothing": lambda x: None,
}


class Liar:
    """Answers every question with `says`, after doing `act` to the tensors of the call."""

    def __init__(self, says, act="nothing", length=2, kind=None):
        self.says, self.act, self.length, self.kind, self.times = says, act, length, kind, 0

    def _answer(self, value):
        self.times += 1
        if self.act != "nothing" and self.times <= MOST:
            ASKED.append(self.act)
            for x in tensors():
                try:
                    ACTS[self.act](x)
                except Exception:       # what can't be done to this tensor is left
                    pass
        if isinstance(value, BaseException):
            raise value
        return value

    def __index__(self):
        return self._answer(self.says)

    def __int__(self):
        return self._answer(self.says)

    def __float__(self):
        return self._answer(self.says)

    def __bool__(self):
        return self._answer(self.says)

    def __len__(self):
        return self._answer(self.length)

    def __getitem__(self, i):
        if isinstance(i, int) and i >= 5:
            raise IndexError(i)
        return self._answer(self.says)

    def __iter__(self):
        self._answer(None)
        return iter([self.says] * 2)

    def __eq__(self, other):
        return self._answer(True)

    def __hash__(self):
        return 3

    def __repr__(self):
        return f"Liar({self.says!r}, {self.act!r})"


HELD = []          # used up: what is freed is used again, and only a new allocation collects


class Collecting:
    """A function in whose calls every allocation collects garbage, as a full heap does now and
    then, and each collection but the first `skip` does `act` to the tensors of the call."""

    def __init__(self, function, act, skip):
        self.function, self.act, self.left = function, act, skip

    def __call__(self, *args, **kwargs):
        HELD.extend((tl.ones(1, requires_grad=True) * 2, []) for _ in range(10))
        before = gc.get_threshold()
        gc.callbacks.append(self._collected)
        gc.set_threshold(1, 1, 1)
        try:
            return self.function(*args, **kwargs)
        finally:
            gc.set_threshold(*before)
            gc.callbacks.remove(self._collected)

    def _collected(self, phase, info):
        self.left -= phase == "stop"
        if phase == "stop" and -MOST < self.left < 0:
            Liar(None, self.act)._answer(None)


class ArrayLiar:
    """Has `__array__` (or an interface of arrays) that gives what it should not."""

    def __init__(self, array, act="nothing"):
        self.array, self.liar = array, Liar(None, act)

    def __array__(self, dtype=None, copy=None):
        self.liar._answer(None)
        return self.array


class SequenceLiar(list):
    """A list whose length and items are not those that it holds."""

    def __init__(self, items=(), length=3, act="nothing"):
        super().__init__(items)
        self.length, self.liar = length, Liar(None, act)

    def __len__(self):
        return self.liar._answer(self.length)

    def __iter__(self):
        self.liar._answer(None)
        return super().__iter__()


class TupleLiar(tuple):
    """A tuple whose length and iteration are not its own."""

    def __len__(self):
        return 1

    def __iter__(self):
        return iter((2, 3, 4))


class IntLiar(int):
    """An int that is another when asked again."""

    def __index__(self):
        return 5

    def __lt__(self, other):
        return True

    def __ge__(self, other):
        return True


class TensorLiar:
    """Stands in for a tensor in operations, and gives nonsense."""

    @classmethod
    def __tensor_call__(cls, op, args, kwargs):
        return 3

    value = shape = dtype = None


class Odd(tl.Tensor):
    """A subclass whose attributes and methods are not a tensor's."""

    shape = (2**40,)
    ndim = 77
    dtype = None

    def __len__(self):
        return -1

    def numel(self):
        return -5


def holding_itself():
    """A list that holds itself."""
    held = [1.0]
    held.append(held)
    return held


def readonly(array):
    """The array, which can't be written any more."""
    array.setflags(write=False)
    return array


def with_graph(x):
    """A result of `x` whose graph is there."""
    return (x.detach().requires_grad_() * 2).tanh()


def once_used(x):
    """A result whose graph was swept already."""
    y = with_graph(x)
    y.sum().backward()
    return y


def inference(x):
    """A copy of `x` that tracks no version."""
    with tl.inference_mode():
        return x.clone()


# ---- functions that are wrong, on which the fuzzer itself is tried -------------------------------

def raise_system_error():
    """Raises what no library may raise."""
    raise SystemError("on purpose")


def write_and_raise(x):
    """Changes its argument, and raises."""
    x.zero_()
    raise ValueError("on purpose")


def raise_attribute_error():
    """Raises what says nothing to who called it."""
    return None.shape
