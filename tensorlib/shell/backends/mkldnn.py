"""Settings of oneDNN, which is not used: they can be set, and change nothing."""

from .absent import flags_of, is_available

enabled: bool = True
deterministic: bool = False
allow_tf32: bool = True

flags = flags_of(globals())

__all__ = ["allow_tf32", "deterministic", "enabled", "flags", "is_available"]
