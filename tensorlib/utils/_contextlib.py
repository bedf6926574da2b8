"""A context manager that is a decorator, too, under the name by which libraries inherit from it."""

from contextlib import ContextDecorator


class _DecoratorContextManager(ContextDecorator):
    """The base of context managers that decorate functions: each call has a clone of its own."""

    def clone(self):
        """A context manager like this one; what takes arguments says how."""
        return type(self)()

    def _recreate_cm(self):
        return self.clone()
