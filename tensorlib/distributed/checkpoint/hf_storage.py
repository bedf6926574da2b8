"""Further storages of PyTorch's checkpoints, which are not supported."""

from tensorlib.distributed.unsupported_settings import absent

INSTEAD = "checkpoint.save and load take a folder"

HuggingFaceStorageReader = absent("HuggingFaceStorageReader", INSTEAD)
HuggingFaceStorageWriter = absent("HuggingFaceStorageWriter", INSTEAD)
