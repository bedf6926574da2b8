"""Reading images and videos, which is not supported: Pillow can, and `ToTensor` converts."""

__all__: list[str] = []
