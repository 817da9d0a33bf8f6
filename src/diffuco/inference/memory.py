"""How much memory solving a graph takes, told before it starts.

The network dominates: at its peak a layer holds several tensors of one feature row per node and sample. Samples of a
large graph are denoised a few at a time, so the peak grows with the graph but not with the number of samples.
"""

import os
from dataclasses import dataclass

import torch

from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.ops.torch_wave_decode import BYTES_PER_ENTRY, ENTRIES_AT_ONCE

ROWS_AT_ONCE = 2**21
"""Nodes times samples of one large graph that are denoised together; its samples are split to stay below."""
BYTES_PER_FEATURE = {"reference": 9 * 4, "tiled": 2 * 4 + 2, "fused": 5 * 2, "rowwise": 4 * 4}
"""Tensors a layer holds at its peak without gradients, times the bytes of a number. For the reference this was measured
on sparse batches; the fused engine makes two of features, two of messages and one of their sums, and the tiled one one
of each, the messages with 16 bits."""
BYTES_PER_REMOTE = 4
"""The same for a node of another process, of which only the message is held."""
TYPICAL_HIDDEN = 64
"""Features per node that are assumed of a network whose settings have no `num_hidden`: those of the paper's network. An
estimate only: a network that needs more may exhaust the memory, one that needs less may be refused a huge graph."""
BYTES_PER_EDGE = 100
"""Edge list, both directions of the compressed rows and the copies while they are made and decoded."""
BYTES_PER_STATE = 50
"""States, logits, energies and the double-precision copy that is decoded, per node and sample."""
USABLE_SHARE = 0.9
"""Of the free memory; the rest is for the process itself."""
LARGE_BYTES = 2**30
"""From here on a graph is announced before it is solved, and compared with the memory that is free."""


@dataclass(frozen=True)
class Requirement:
    """What one graph takes."""

    samples_at_once: int
    """Samples that are denoised together."""
    num_bytes: int
    """Estimated peak beyond what the process already holds."""

    @property
    def is_large(self) -> bool:
        """Whether the graph is announced, and compared with the memory that is free."""
        return self.num_bytes >= LARGE_BYTES


def requirement(
    graph: Graph,
    num_samples: int,
    num_hidden: int = TYPICAL_HIDDEN,
    engine: str = "reference",
    *,
    split: bool = True,
    num_parts: int = 1,
) -> Requirement:
    """The split of the samples, unless all are wanted together, and the peak it leads to with an engine.

    If several processes have a part of the nodes each, this is what one of them takes.

    >>> small = Graph.from_edges([(0, 1), (1, 2)])
    >>> requirement(small, num_samples=8, num_hidden=64).samples_at_once
    8
    """
    most_at_once = max(1, ROWS_AT_ONCE // max(1, graph.num_nodes)) if split else num_samples
    samples_at_once = min(num_samples, most_at_once)
    # A part also holds the messages of neighbours in other parts, at worst of all nodes.
    bytes_per_feature = BYTES_PER_FEATURE[engine] / num_parts + (BYTES_PER_REMOTE if num_parts > 1 else 0)
    activations = int(bytes_per_feature * num_hidden * graph.num_nodes * samples_at_once)
    states = BYTES_PER_STATE * graph.num_nodes * num_samples
    decoding = 0
    if engine == "fused":  # on a GPU, which decodes in waves once the samples are drawn
        entries = 2 * graph.num_edges + graph.num_nodes
        decoding = BYTES_PER_ENTRY * max(entries, min(num_samples * entries, ENTRIES_AT_ONCE))
    return Requirement(samples_at_once, max(activations, decoding) + states + BYTES_PER_EDGE * graph.num_edges)


def free_bytes(device: torch.device) -> int:
    """Memory that is free on the device now."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        with open("/proc/meminfo") as lines:
            table = dict(line.split(":", 1) for line in lines)
        return 1024 * int(table["MemAvailable"].split()[0])
    except (OSError, KeyError):
        # Systems other than Linux do not tell what they could free up; what is installed is an upper limit.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def fits(need: Requirement, device: torch.device) -> bool:
    """Whether there is memory for a graph."""
    if not need.is_large:
        return True
    if device.type == "cuda" and need.num_bytes > USABLE_SHARE * free_bytes(device):
        torch.cuda.empty_cache()  # what earlier graphs left behind
    return need.num_bytes <= USABLE_SHARE * free_bytes(device)


def check_fits(graph: Graph, need: Requirement, device: torch.device) -> None:
    """Refuse a graph that would exhaust the memory before any work is done."""
    if not fits(need, device):
        raise InputError(
            f"{graph.name or 'graph'}: {graph.num_nodes} nodes and {graph.num_edges} edges need about "
            f"{need.num_bytes / 2**30:.1f} GiB, {free_bytes(device) / 2**30:.1f} are free on {device}; "
            "lower --samples, use a smaller model or a larger machine"
        )
