"""Where results differ from PyTorch's on purpose, each with its reason."""


def excuse(name, call, mine, other, text):
    """The reason why a call may differ, or None."""
    return None
