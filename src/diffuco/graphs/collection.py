"""A user's own graphs, split into a training, a validation and a test part.

The content of a graph decides its part. So no list of held-back graphs has to be kept, equal graphs always fall into
the same part, and adding graphs later does not move the others.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted
from diffuco.graphs.graph import Graph

SPLITS = ("train", "validation", "test")
VALIDATION_PERCENT = 10
TEST_PERCENT = 10


@dataclass(frozen=True, eq=False)
class Collection:
    """Distinct graphs that all have edges; build one with `Collection.of`."""

    name: str
    members: tuple[Graph, ...]
    num_repeated: int = 0
    """Graphs left out because they are equal to another."""
    num_edgeless: int = 0
    """Graphs left out because they have no edges, so there is nothing to decide in them."""

    @classmethod
    def of(cls, name: str, graphs: Sequence[Graph]) -> "Collection":
        """Build a collection, leaving out repeated graphs and graphs without edges.

        >>> path, point = Graph.from_edges([(0, 1), (1, 2)]), Graph.from_edges([], num_nodes=1)
        >>> mine = Collection.of("mine", [path, point, path])
        >>> len(mine.members), mine.num_repeated, mine.num_edgeless
        (1, 1, 1)
        """
        with_edges = [graph for graph in graphs if graph.num_edges]
        distinct = tuple({graph.digest: graph for graph in with_edges}.values())
        return cls(name, distinct, len(with_edges) - len(distinct), len(graphs) - len(with_edges))

    def graphs(self, split: str, count: int | None = None, *, progress: bool = False) -> list[Graph]:
        """The first `count` graphs of a part, all of them by default; the part `all` is every graph.

        `progress` has no effect, because the graphs are already in memory.
        """
        if split != "all" and split not in SPLITS:
            raise InputError(f"no split {split!r} of your own graphs; the splits are {', '.join(SPLITS)} and all")
        chosen = [graph for graph in self.members if split in ("all", split_of(graph))]
        if count is not None and not 0 <= count <= len(chosen):
            raise InputError(f"{counted(count, 'graph')} requested from {self.name}/{split}; it has {len(chosen)}")
        return chosen[:count]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the set of graphs, independent of their order."""
        return hashlib.sha256("".join(sorted(graph.digest for graph in self.members)).encode()).hexdigest()


def split_of(graph: Graph) -> str:
    """The part of a collection that a graph belongs to; a tenth is for validation, a tenth for testing.

    >>> split_of(Graph.from_edges([(0, 1), (1, 2)]))
    'train'
    """
    percent = int(graph.digest[:16], 16) * 100 >> 64
    if percent < TEST_PERCENT:
        return "test"
    return "validation" if percent < TEST_PERCENT + VALIDATION_PERCENT else "train"
