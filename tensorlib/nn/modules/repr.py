"""The repr of modules: the options that they were made with."""

from tensorlib.nn.modules.module import Module


class Shown(Module):
    """A module whose text names the options in `shown`, of which `inplace` only if it is set."""

    shown: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.shown
                         if name != "inplace" or getattr(self, name))
