"""Graphs made of networkx graphs, matrices, edges and paths."""

import builtins
import itertools
from pathlib import Path
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.convert import as_graph, qubo_as_graph
from diffuco.graphs.formats.networkx_files import import_networkx
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem

TRIANGLE = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
WEIGHTED = np.array([[0, 2.5, 0], [2.5, 0, -1], [0, -1, 0]])


def test_a_graph_is_returned_as_it_is():
    graph = Graph.from_edges([(0, 1)])
    assert as_graph(graph) is graph


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_read(kind, tmp_path):
    path = tmp_path / "a.gr"
    path.write_text("p td 3 1\n1 3\n")
    assert as_graph(kind(path)).edges.tolist() == [[0, 2]]


@pytest.mark.parametrize("dtype", [int, float, bool])
@pytest.mark.parametrize(
    "kind",
    [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix, scipy.sparse.csc_array, scipy.sparse.dok_array],
)
def test_square_matrices_are_adjacency_matrices(kind, dtype):
    graph = as_graph(kind(TRIANGLE.astype(dtype)))
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert graph.edge_weights is None


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_entries_other_than_one_are_weights(kind):
    graph = as_graph(kind(WEIGHTED))
    assert (graph.num_nodes, graph.edges.tolist(), graph.edge_weights.tolist()) == (3, [[0, 1], [1, 2]], [2.5, -1])


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.triu(TRIANGLE), r"differs at \(0, 1\) and \(1, 0\); give a symmetric"),
        (np.ones((2, 3)), "give a square adjacency matrix"),
        (np.full((3, 3), np.nan), "NaN or infinite; give finite"),
        (TRIANGLE * 1j, "give real numbers"),
    ],
)
def test_matrices_that_are_no_adjacency_are_refused(kind, matrix, message):
    with pytest.raises(InputError, match=message):
        as_graph(kind(matrix))


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_a_diagonal_is_dropped_with_a_warning(kind):
    with pytest.warns(GraphWarning, match="3 self-loops"):
        assert as_graph(kind(TRIANGLE + np.eye(3))).num_edges == 3


def test_integer_arrays_of_two_columns_are_edges_and_float_ones_matrices():
    assert as_graph(np.array([[0, 3], [3, 1]])).edges.tolist() == [[0, 2], [1, 2]]
    assert as_graph(np.array([[0.0, 3.0], [3.0, 0.0]])).edge_weights.tolist() == [3]


@pytest.mark.parametrize("pairs", [[(0, 1), (2, 1)], ((0, 1), (2, 1)), {(0, 1), (2, 1)}, [[0, 1], [2, 1]]])
def test_pairs_are_edges(pairs):
    assert as_graph(pairs).edges.tolist() == [[0, 1], [1, 2]]


def test_no_pairs_are_the_empty_graph():
    assert as_graph([]).num_nodes == 0


@pytest.mark.parametrize(
    ("pairs", "labels", "edges"),
    [
        ([(1, 2), (2, 3)], [1, 2, 3], [[0, 1], [1, 2]]),
        ([(1001, 2002), (3003, 2002)], [1001, 2002, 3003], [[0, 1], [1, 2]]),
        (np.array([[3003, 2002], [2002, 1001]]), [1001, 2002, 3003], [[0, 1], [1, 2]]),
        ([(np.int64(7), np.int64(5))], [5, 7], [[0, 1]]),
        ([(0, -1)], [-1, 0], [[0, 1]]),
        ([(2**70, 1)], [1, 2**70], [[0, 1]]),
        ([("b", "a"), ("a", "c")], ["b", "a", "c"], [[0, 1], [1, 2]]),
        ([("b", 1), (1, "1")], ["b", 1, "1"], [[0, 1], [1, 2]]),
        ([(0, 2), (1, 2)], [0, 1, 2], [[0, 2], [1, 2]]),
    ],
)
def test_pairs_are_labels_as_in_files(pairs, labels, edges):
    graph = as_graph(pairs)
    assert (list(graph.labels), graph.edges.tolist(), graph.edge_weights) == (labels, edges, None)
    assert all(type(label) in (int, str) for label in graph.labels)


@pytest.mark.parametrize(
    "triples",
    [
        [(5, 7, 2), (7, 9, 3)],
        [(5, 7, 2.0), (7, 9, 3.0)],
        [(5, 7, {"weight": 2}), (7, 9, {"weight": 3, "colour": "red"})],
    ],
)
def test_triples_have_weights(triples):
    graph = as_graph(triples)
    assert (list(graph.labels), graph.edge_weights.tolist()) == ([5, 7, 9], [2, 3])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 1), (2,)], r"\(2,\) is not an edge; give pairs"),
        ([0, 1], "0 is not an edge; give pairs .* several graphs as a list of such lists"),
        (["ab"], "'ab' is not an edge"),
        ([(0.5, 1)], "0.5 is not a node label; give pairs"),
        ([(None, 1)], "None is not a node label"),
        ([(0, 1, "heavy")], "the weight 'heavy' is not a number"),
        ([(0, 1, float("nan"))], "weights must be finite"),
        ([(0, 1), (1, 2, 3)], "give all of them a weight or none"),
    ],
)
def test_lists_that_are_no_edges_are_refused(pairs, message):
    with pytest.raises(InputError, match=message):
        as_graph(pairs)


@pytest.mark.parametrize(
    "columns",
    [
        {"source": ["a", "b"], "target": ["b", "c"], "weight": [2, 3]},
        {"Weight": [2, 3], "kind": [0, 0], "from": ["a", "b"], "to": ["b", "c"]},
        {"friend": ["a", "b"], "other": ["b", "c"], "how much": [2.0, 3.0]},
    ],
)
def test_frames_of_edges_are_read_by_the_names_of_their_columns(columns):
    pandas = pytest.importorskip("pandas")
    graph = as_graph(pandas.DataFrame(columns))
    assert (list(graph.labels), graph.edge_weights.tolist()) == (["a", "b", "c"], [2, 3])


def test_frames_without_names_for_the_ends_are_refused():
    pandas = pytest.importorskip("pandas")
    assert list(as_graph(pandas.DataFrame([(5, 7), (7, 9)])).labels) == [5, 7, 9]
    with pytest.raises(InputError, match="4 columns; give two named source and target"):
        as_graph(pandas.DataFrame([(5, 7, 1, 2)]))
    with pytest.raises(InputError, match="nan is not a node label"):
        as_graph(pandas.DataFrame({"source": [1, None], "target": [2, 3]}))


def test_a_qubo_is_a_dictionary_or_triples_whose_entries_add_up():
    coefficients = {(5, 5): -3, (5, 7): 1, (7, 5): 3, (7, 7): -1}
    for source in (coefficients, [(*pair, value) for pair, value in coefficients.items()]):
        graph = qubo_as_graph(source)
        assert (list(graph.labels), graph.node_weights.tolist(), graph.edge_weights.tolist()) == ([5, 7], [-3, -1], [4])
    assert qubo_as_graph({(("x", 0), ("y", 1)): 2}).labels == [("x", 0), ("y", 1)]
    for bad, message in (({"a": 1}, "'a' is not a pair"), ({(0, 1): "x"}, "the weight 'x' is not a number")):
        with pytest.raises(InputError, match=message):
            qubo_as_graph(bad)
    with pytest.raises(InputError, match="is a QUBO, for the problem qubo; give a list of triples"):
        as_graph(coefficients)


@pytest.mark.parametrize("thing", [None, 3, {"a": 1}, object(), np.zeros(3), np.zeros((2, 2, 2))])
def test_other_things_are_refused(thing):
    with pytest.raises(InputError, match="; give a"):
        as_graph(thing)


def test_networkx_graphs_keep_labels_weights_and_isolated_nodes():
    source = networkx.Graph(name="sample")
    source.add_node("z", weight=4)
    source.add_edge("x", "y", weight=2)
    source.add_edge("y", "w")
    graph = as_graph(source)
    assert (graph.name, list(graph.labels)) == ("sample", ["z", "x", "y", "w"])
    assert (graph.edges.tolist(), graph.edge_weights.tolist()) == ([[1, 2], [2, 3]], [2, 1])
    assert graph.node_weights.tolist() == [4, 1, 1, 1]


def test_networkx_graphs_have_any_labels_and_need_no_weights():
    source = networkx.Graph([(7, "b"), ("b", 1.5)])
    source.add_node(())
    assert list(as_graph(source).labels) == [7, "b", 1.5, ()]
    plain = as_graph(networkx.Graph([(0, 1), (1, 2)], name="plain"))
    assert (plain.labels, plain.edge_weights, plain.name) == (range(3), None, "plain")
    assert as_graph(networkx.Graph()).num_nodes == 0


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (networkx.DiGraph([(0, 1)]), "the networkx graph is directed; give source.to_undirected"),
        (networkx.MultiGraph([(0, 1)]), "the networkx graph is a multigraph; give networkx.Graph"),
        (networkx.Graph([(0, 1, {"weight": "heavy"})]), "the weight of an edge is not a number"),
        (networkx.Graph([(0, 1, {"weight": float("nan")})]), "weights must be finite"),
    ],
)
def test_networkx_graphs_that_are_not_simple_are_refused(source, message):
    with pytest.raises(InputError, match=message):
        as_graph(source)


def test_igraph_graphs_keep_names_weights_and_isolated_nodes():
    igraph = pytest.importorskip("igraph")
    source = igraph.Graph(4, [(3, 1), (1, 2)])
    source.vs["name"] = ["z", "x", "y", "w"]
    source.es["weight"], source.vs["weight"] = [2, 1], [4, 1, None, 1]
    graph = as_graph(source)
    assert (list(graph.labels), graph.edges.tolist()) == (["z", "x", "y", "w"], [[1, 2], [1, 3]])
    assert (graph.edge_weights.tolist(), graph.node_weights.tolist()) == ([1, 2], [4, 1, 1, 1])
    plain = as_graph(igraph.Graph.Ring(5))
    assert (plain.num_edges, plain.labels, plain.edge_weights) == (5, range(5), None)


@pytest.mark.parametrize(
    ("edges", "directed", "message"),
    [
        ([(0, 1)], True, "the igraph graph is directed; give source.as_undirected"),
        ([(0, 1), (1, 0)], False, "parallel edges; call source.simplify"),
    ],
)
def test_igraph_graphs_that_are_not_simple_are_refused(edges, directed, message):
    source = pytest.importorskip("igraph").Graph(edges, directed=directed)
    with pytest.raises(InputError, match=message):
        as_graph(source)


def pyg_data(columns, num_nodes, edge_weight=None):
    """What `torch_geometric.data.Data` shows of a graph."""
    index = torch.tensor(columns, dtype=torch.long).reshape(-1, 2).T
    weights = {} if edge_weight is None else {"edge_weight": torch.tensor(edge_weight)}
    return SimpleNamespace(edge_index=index, num_nodes=num_nodes, **weights)


@pytest.mark.parametrize("columns", [[(1, 0), (1, 2)], [(0, 1), (1, 0), (1, 2), (2, 1)]])
def test_pyg_edges_count_once_in_one_direction_or_both(columns):
    graph = as_graph(pyg_data(columns, 4))
    assert (graph.num_nodes, graph.edges.tolist(), graph.edge_weights) == (4, [[0, 1], [1, 2]], None)


def test_pyg_weights_belong_to_their_edges():
    assert as_graph(pyg_data([], 3)).num_nodes == 3
    graph = as_graph(pyg_data([(2, 1), (0, 1), (1, 0)], 3, [5.0, 2.0, 2.0]))
    assert (graph.edges.tolist(), graph.edge_weights.tolist()) == ([[0, 1], [1, 2]], [2, 5])


@pytest.mark.parametrize(
    ("weights", "message"), [([1.0, 2.0], "differs between the two directions"), ([1.0], "one weight per column")]
)
def test_pyg_weights_that_make_no_sense_are_refused(weights, message):
    with pytest.raises(InputError, match=message):
        as_graph(pyg_data([(0, 1), (1, 0)], 2, weights))


def test_without_networkx_the_message_says_what_to_install(monkeypatch):
    real_import = builtins.__import__

    def without_networkx(name, *arguments, **keywords):
        if name == "networkx":
            raise ImportError(name)
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_networkx)
    with pytest.raises(InputError, match="run pip install"):
        import_networkx()


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_a_qubo_matrix_keeps_its_diagonal_and_both_triangles(wrap):
    matrix = np.random.default_rng(0).integers(-5, 6, (6, 6)).astype(float)
    graph = qubo_as_graph(wrap(matrix))
    for bits in itertools.product([0, 1], repeat=6):
        x = np.array(bits, dtype=bool)
        assert get_problem("qubo").check(graph, x).objective == pytest.approx(x @ matrix @ x)


def adjacency_frame(matrix, names=None):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(matrix, index=names, columns=names)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("names", ["abcdef", [7, 5, 9, 8, 0, 1], "uvwxyz"])
def test_a_frame_whose_index_equals_its_columns_is_an_adjacency_matrix(size, names):
    source = networkx.cycle_graph(size) if size > 2 else networkx.path_graph(size)
    frame = adjacency_frame(networkx.to_numpy_array(source), list(names[:size]))
    assert as_graph(frame).labels == list(names[:size])
    assert as_graph(frame).edges.tolist() == [list(edge) for edge in source.edges]


def test_frames_of_networkx_and_of_plain_matrices_are_read():
    pytest.importorskip("pandas")
    for size in (2, 3, 4):
        cycle = networkx.cycle_graph(size)
        plain = adjacency_frame(networkx.to_numpy_array(cycle, dtype=int))
        for frame in (networkx.to_pandas_adjacency(cycle), plain):
            assert as_graph(frame).edges.tolist() == as_graph(cycle).edges.tolist()
    assert as_graph(adjacency_frame([[0, 5], [5, 0]], ["0", "1"])).edge_weights.tolist() == [5]
    with pytest.warns(GraphWarning, match="1 self-loop"):
        assert as_graph(adjacency_frame([[1, 1], [1, 0]], [0, 1])).num_edges == 1


def test_a_frame_read_from_a_file_has_text_for_columns():
    frame = adjacency_frame([[0, 2], [2, 0]], [3, 4])
    frame.columns = ["3", "4"]
    assert (as_graph(frame).labels, as_graph(frame).edge_weights.tolist()) == ([3, 4], [2])


def test_a_qubo_frame_is_a_matrix():
    graph = qubo_as_graph(adjacency_frame([[-3, 4], [0, -1]], ["a", "b"]))
    assert (graph.labels, graph.node_weights.tolist(), graph.edge_weights.tolist()) == (["a", "b"], [-3, -1], [4])


@pytest.mark.parametrize(
    "table",
    [
        np.array([[0, 5], [5, 0]]),
        np.zeros((2, 2), int),
        [[0, 5], [5, 0]],
        TRIANGLE.tolist(),
        [[0, 0, 0]] * 3,
    ],
)
def test_a_table_that_may_be_edges_or_a_matrix_is_refused(table):
    with pytest.raises(InputError, match=r"edges or a matrix; give a matrix as .*float.*, edges as a list of tuples"):
        as_graph(table)


def test_a_frame_that_may_be_edges_or_a_matrix_is_refused():
    frame = adjacency_frame(TRIANGLE)
    frame.columns = ["x1", "x2", "x3"]
    with pytest.raises(InputError, match="edges or a matrix"):
        as_graph(frame)
    text = adjacency_frame([["a", "b"], ["b", "a"]])
    with pytest.warns(GraphWarning, match="1 repeated edge"):
        assert as_graph(text).labels == ["a", "b"]


def test_tables_that_are_the_same_either_way_are_read():
    for table in (np.array([[0, 1], [1, 0]]), [(0, 5), (5, 0)], {(0, 5), (5, 0)}):
        with pytest.warns(GraphWarning, match="1 repeated edge"):
            assert as_graph(table).num_edges == 1


def test_repeated_pairs_with_other_weights_are_named():
    with pytest.warns(GraphWarning, match="edge 1 gives 'B' and 'A' another weight; the first one counts"):
        assert as_graph([("A", "B", 2), ("B", "A", 3)]).edge_weights.tolist() == [2]
