"""A user's own graphs in parts: what decides the part, what is left out, what is refused."""

from collections import Counter

import pytest

from diffuco.foundation.errors import InputError
from diffuco.graphs.collection import SPLITS, Collection, split_of
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph


@pytest.fixture(scope="module")
def graphs() -> list[Graph]:
    return get_dataset("ba-tiny").graphs("train", 300)


def test_parts_cover_the_graphs_and_are_about_as_large_as_promised(graphs):
    mine = Collection.of("mine", graphs)
    parts = {split: mine.graphs(split) for split in SPLITS}
    assert sorted(graph.digest for part in parts.values() for graph in part) == sorted(g.digest for g in graphs)
    assert mine.graphs("all") == list(mine.members)
    assert 220 <= len(parts["train"]) <= 260
    assert all(15 <= len(parts[split]) <= 45 for split in ("validation", "test"))


def test_the_part_depends_on_the_graph_alone(graphs):
    renamed = Graph.from_edges(graphs[0].edges[::-1], graphs[0].num_nodes, name="other")
    assert split_of(renamed) == split_of(graphs[0])
    few, many = (Collection.of("mine", some) for some in (graphs[100:50:-1], graphs))
    assert {g.digest for g in few.graphs("test")} <= {g.digest for g in many.graphs("test")}


def test_equal_graphs_are_kept_once_and_graphs_without_edges_not_at_all(graphs):
    mine = Collection.of("mine", [*graphs[:5], *graphs[:3], Graph.from_edges([], num_nodes=4)])
    assert (len(mine.members), mine.num_repeated, mine.num_edgeless) == (5, 3, 1)
    assert max(Counter(graph.digest for graph in mine.members).values()) == 1


def test_the_digest_tells_sets_apart_but_not_their_order(graphs):
    assert Collection.of("a", graphs[:9]).digest == Collection.of("b", graphs[8::-1]).digest
    assert Collection.of("a", graphs[:9]).digest != Collection.of("a", graphs[:8]).digest


def test_unknown_parts_and_too_many_graphs_are_refused(graphs):
    mine = Collection.of("mine", graphs)
    assert len(mine.graphs("train", 7)) == 7
    with pytest.raises(InputError, match="train, validation, test and all"):
        mine.graphs("dev")
    with pytest.raises(InputError, match="1,000 graphs requested from mine/test; it has"):
        mine.graphs("test", 1000)
