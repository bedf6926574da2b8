"""What libraries around PyTorch call of its compiled part, of which there is none here."""

__all__ = ["_log_api_usage_once"]


def _log_api_usage_once(event: str) -> None:
    """Does nothing: who uses what is not counted."""
