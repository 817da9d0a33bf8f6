"""The network that denoises, and the files it is kept in."""

from diffuco.model.checkpoint import Checkpoint, load_checkpoint, read_card, save_checkpoint, save_folder
from diffuco.model.gnn import Gnn, GnnConfig

__all__ = ["Checkpoint", "Gnn", "GnnConfig", "load_checkpoint", "read_card", "save_checkpoint", "save_folder"]
