"""What a graph says about its core, and the core about the graph, fit together."""

from dataclasses import replace

import numpy as np
import pytest

from diffuco.graphs.cut_core import cut_core
from diffuco.graphs.dominating_core import dominating_core
from diffuco.graphs.families import grid_graph
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.qubo_core import qubo_core
from diffuco.graphs.set_core import cover_core, set_core


@pytest.mark.parametrize("core_of", [cut_core, qubo_core, set_core, cover_core, dominating_core])
@pytest.mark.parametrize("family", ["grid", "preferential"])
def test_the_way_back_and_forth_ends_at_the_same_answer(core_of, family):
    rng = np.random.default_rng(0)
    graph = grid_graph(400, 0.1, rng, triangles=True) if family == "grid" else ba_graph(400, 2, rng)
    if core_of is qubo_core:
        graph = replace(graph, node_weights=rng.integers(-1, 2, 400).astype(float))
    core = core_of(graph)
    states = rng.random((core.graph.num_nodes, 5)) < 0.5
    answers = core.extend(states, graph.num_nodes)
    told = core.restrict(answers)
    assert told.shape == states.shape
    assert np.array_equal(core.extend(told, graph.num_nodes), answers)
