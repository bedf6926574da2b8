"""What libraries around PyTorch take from its compiled part, of which there is none here."""

from tensorlib.linalg.checks import LinAlgError as _LinAlgError

__all__ = ["_LinAlgError", "_log_api_usage_once"]


def _log_api_usage_once(event: str) -> None:
    """Does nothing: who uses what is not counted."""
