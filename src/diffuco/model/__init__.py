"""The denoising networks and their files."""

from diffuco.model.base import Network, NetworkConfig
from diffuco.model.checkpoint import Checkpoint, load_checkpoint, read_card, save_checkpoint, save_folder
from diffuco.model.gnn import Gnn, GnnConfig
from diffuco.model.networks import NETWORKS, register_network

__all__ = [
    "NETWORKS",
    "Checkpoint",
    "Gnn",
    "GnnConfig",
    "Network",
    "NetworkConfig",
    "load_checkpoint",
    "read_card",
    "register_network",
    "save_checkpoint",
    "save_folder",
]
