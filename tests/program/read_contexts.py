"""Ways to read what each thread, or each context, has of its own."""

import contextvars
import threading

from read_cases import case


@case
class OfAThread:
    def __init__(self):
        self.a = threading.local()
        self.a.scale = 2.0

    def read(self, x):
        return x * self.a.scale + getattr(self.a, "more", 1.0)

    def change(self):
        self.a.scale = 3.0

    def change_what_was_not_there(self):
        self.a.more = 5.0

    def other(self):
        self.a.another = 1.0


@case
class OfAContext:
    def __init__(self):
        self.scale = contextvars.ContextVar("scale", default=2.0)
        self.more = contextvars.ContextVar("more")
        self.another = contextvars.ContextVar("another")

    def read(self, x):
        return x * self.scale.get() + self.more.get(1.0) - self.scale.get(4.0)

    def change(self):
        self.scale.set(3.0)

    def change_what_was_not_there(self):
        self.more.set(5.0)

    def other(self):
        self.another.set(1.0)
