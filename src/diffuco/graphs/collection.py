"""A user's own graphs, in a training, a validation and a test part.

The content of a graph decides its part. So nothing has to be remembered to hold graphs back, equal graphs are never on
both sides, and graphs that are added later leave the others where they are.
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
    """Graphs that differ from each other and have edges, as `Collection.of` leaves them."""

    name: str
    members: tuple[Graph, ...]
    num_repeated: int = 0
    """Graphs left out because they are equal to another."""
    num_edgeless: int = 0
    """Graphs left out because nothing has to be decided in them."""

    @classmethod
    def of(cls, name: str, graphs: Sequence[Graph]) -> "Collection":
        """The graphs without repetitions and without those that have no edge.

        >>> path, point = Graph.from_edges([(0, 1), (1, 2)]), Graph.from_edges([], num_nodes=1)
        >>> mine = Collection.of("mine", [path, point, path])
        >>> len(mine.members), mine.num_repeated, mine.num_edgeless
        (1, 1, 1)
        """
        with_edges = [graph for graph in graphs if graph.num_edges]
        distinct = tuple({graph.digest: graph for graph in with_edges}.values())
        return cls(name, distinct, len(with_edges) - len(distinct), len(graphs) - len(with_edges))

    def graphs(self, split: str, count: int | None = None, *, progress: bool = False) -> list[Graph]:
        """The first `count` graphs of a part, all by default; `all` is every graph. They are there, so no progress."""
        if split != "all" and split not in SPLITS:
            raise InputError(f"no split {split!r} of your own graphs; the splits are {', '.join(SPLITS)} and all")
        chosen = [graph for graph in self.members if split in ("all", split_of(graph))]
        if count is not None and not 0 <= count <= len(chosen):
            raise InputError(f"{counted(count, 'graph')} asked of {self.name}/{split}; it has {len(chosen)}")
        return chosen[:count]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the set of graphs, whatever their order."""
        return hashlib.sha256("".join(sorted(graph.digest for graph in self.members)).encode()).hexdigest()


def split_of(graph: Graph) -> str:
    """The part of a collection that a graph is in: a tenth is for validation, a tenth for the test.

    >>> split_of(Graph.from_edges([(0, 1), (1, 2)]))
    'train'
    """
    percent = int(graph.digest[:16], 16) * 100 >> 64
    if percent < TEST_PERCENT:
        return "test"
    return "validation" if percent < TEST_PERCENT + VALIDATION_PERCENT else "train"
