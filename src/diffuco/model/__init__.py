"""The denoising networks and their files. Names are imported when first used, since a card needs no torch."""

from typing import TYPE_CHECKING

from diffuco.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from diffuco.model.base import Network, NetworkConfig
    from diffuco.model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint, save_folder
    from diffuco.model.gnn import Gnn, GnnConfig
    from diffuco.model.header import read_card
    from diffuco.model.networks import NETWORKS, register_network

_HOME = {
    "NETWORKS": "diffuco.model.networks",
    "Checkpoint": "diffuco.model.checkpoint",
    "Gnn": "diffuco.model.gnn",
    "GnnConfig": "diffuco.model.gnn",
    "Network": "diffuco.model.base",
    "NetworkConfig": "diffuco.model.base",
    "load_checkpoint": "diffuco.model.checkpoint",
    "read_card": "diffuco.model.header",
    "register_network": "diffuco.model.networks",
    "save_checkpoint": "diffuco.model.checkpoint",
    "save_folder": "diffuco.model.checkpoint",
}

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

__getattr__ = lazy_names(__name__, _HOME)
