"""How the elements of a tensor lie in memory, as PyTorch's arguments name it."""


class Format:
    """How the elements lie in memory, for the arguments `layout` and `memory_format`."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"tensorlib.{self.name}"

    def __reduce__(self):
        return self.name         # the module's one object of this name


strided = Format("strided")
contiguous_format = Format("contiguous_format")
preserve_format = Format("preserve_format")
