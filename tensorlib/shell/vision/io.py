"""Files of images and films are not read here: PIL reads them, and `ToTensor` goes on."""

__all__: list[str] = []
