"""What the namespace can do, for code that asks: `__array_namespace_info__()`."""

import tensorlib as tl
from tensorlib.array_api.operands import KINDS, dtype_beside


class Info:
    """Answers about devices, dtypes and abilities."""

    def capabilities(self):
        """What shapes may depend on, and how many axes arrays may have."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """The device on which new arrays are made."""
        return tl.get_default_device()

    def default_dtypes(self, *, device=None):
        """The dtypes of new arrays by kind."""
        tl.empty((), device=device)              # refuses devices that there are not
        real = tl.get_default_dtype()
        return {"real floating": real, "complex floating": dtype_beside(1j, real),
                "integral": tl.int64, "indexing": tl.int64}

    def dtypes(self, *, device=None, kind=None):
        """The dtypes of the standard of a kind, or of one of several, by their names."""
        tl.empty((), device=device)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if kind is None:
            kinds = ("bool", "numeric")
        unknown = [one for one in kinds if one not in KINDS]
        if unknown:
            raise ValueError(f"dtypes: kind must be among {', '.join(KINDS)}, got {unknown[0]!r}")
        names = [name for one in kinds for name in KINDS[one]]
        return {name: getattr(tl, name) for name in names}

    def devices(self):
        """The devices on which arrays may be."""
        return (tl.device("cpu"),)


def __array_namespace_info__():
    """What the namespace can do."""
    return Info()
