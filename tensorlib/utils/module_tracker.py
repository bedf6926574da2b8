"""`ModuleTracker`: which modules are running."""

from typing import Any

from tensorlib._core.graph import owners


class ModuleTracker:
    """A context that knows by name which modules are running forwards: `parents`, with "Global".

    A module is called after those around it, by the names of attributes: "Sequential.0".
    """

    def __enter__(self) -> "ModuleTracker":
        self.names: dict[int, str] = {}
        self.running = ["Global"]
        self.hooks = owners.modules.hooked(self.before_module, self.after_module)
        self.hooks.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.hooks.__exit__()

    @property
    def parents(self) -> set[str]:
        """The names of what runs."""
        return set(self.running)

    def before_module(self, module: Any, args: Any) -> None:
        """The hook before a module runs."""
        name = self.names.setdefault(id(module), type(module).__name__)
        self.names.update((id(x), f"{name}.{part}") for part, x in module.named_children())
        self.running.append(name)

    def after_module(self, module: Any, args: Any, output: Any) -> None:
        """The hook after a module has run."""
        self.running.pop()


__all__ = ["ModuleTracker"]
