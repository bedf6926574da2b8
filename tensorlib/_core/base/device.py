"""Where tensors live: on the CPU, or on `meta`, where they have no elements."""


class device:
    """Where a tensor lives: `device("cpu")`, or `device("meta")` for those without memory."""

    __slots__ = ("type", "index")

    def __init__(self, type="cpu", index=None):
        name = type.type if isinstance(type, device) else type
        if name not in ("cpu", "cpu:0", "meta"):
            raise RuntimeError(f"device: tensorlib runs on 'cpu' (or 'meta'), got {type!r}")
        self.type = "meta" if name == "meta" else "cpu"
        self.index = index

    def __repr__(self):
        return f"device(type='{self.type}')"

    def __str__(self):
        return self.type

    def __eq__(self, other):
        return isinstance(other, device) and self.type == other.type

    def __hash__(self):
        return hash(self.type)


CPU = device()
META = device("meta")


def is_meta_device(name):
    """Whether a device, or its name, is `meta`. Raises: RuntimeError for one that is not there."""
    return (name if isinstance(name, device) else device(name)).type == "meta"
