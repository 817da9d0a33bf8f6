"""The list of networks, by the names that checkpoints and training configurations use."""

from diffuco.foundation.errors import InputError
from diffuco.foundation.names import check_name
from diffuco.model.base import Network
from diffuco.model.gnn import Gnn

NETWORKS: dict[str, type[Network]] = {network.name: network for network in (Gnn,)}


def get_network(name: str) -> type[Network]:
    """The network of this name.

    >>> get_network("gnn").__name__
    'Gnn'
    """
    if name not in NETWORKS:
        raise InputError(f"unknown network '{name}'; choose one of {', '.join(NETWORKS)}, or register your own")
    return NETWORKS[name]


def register_network(network: type[Network]) -> None:
    """Let checkpoints and configurations find a network by its name; raises InputError if the name is taken."""
    check_name(network, NETWORKS, "network")
    NETWORKS[network.name] = network
