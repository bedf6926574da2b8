"""Where tensors live."""


class device:
    """Where a tensor lives. There is one: `device("cpu")`."""

    __slots__ = ("type", "index")

    def __init__(self, type="cpu", index=None):
        name = type.type if isinstance(type, device) else type
        if name not in ("cpu", "cpu:0"):
            raise RuntimeError(f"device: tensorlib runs on 'cpu', got {type!r}")
        self.type = "cpu"
        self.index = index

    def __repr__(self):
        return "device(type='cpu')"

    def __str__(self):
        return "cpu"

    def __eq__(self, other):
        return isinstance(other, device)

    def __hash__(self):
        return hash("cpu")


CPU = device()
