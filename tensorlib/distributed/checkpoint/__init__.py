"""Checkpoints that all ranks write and read together, with any number of ranks."""

from tensorlib.distributed.checkpoint.files import load, save
from tensorlib.distributed.checkpoint.state_dict import Stretch, get_state_dict, set_state_dict

__all__ = ["Stretch", "get_state_dict", "load", "save", "set_state_dict"]
