"""The package opt_einsum, which is not used: `einsum` finds the order of its products itself."""

from .absent import is_available

enabled: bool = False
strategy: str | None = None

__all__ = ["enabled", "is_available", "strategy"]
