"""Reading and writing graphs: round trips, one example of every format, and the reference data."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.formats import FORMATS, read_graph, read_graphs, write_graph
from diffuco.graphs.graph import Graph

DATA = Path(__file__).parents[2] / "shared" / "data"
WRITABLE = [known for known in FORMATS if known.write is not None]
QUBO_FORMATS = ("qubo-sparse", "qbsolv")

small_settings = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def weights(count, smallest=-100):
    value = st.one_of(st.integers(smallest, 100).map(float), st.floats(smallest, 1e6, allow_subnormal=False))
    return st.lists(value, min_size=count, max_size=count)


@st.composite
def graphs(draw, holds=frozenset(), smallest_node_weight=0):
    num_nodes = draw(st.integers(0, 7))
    possible = [(u, v) for u in range(num_nodes) for v in range(u + 1, num_nodes)]
    edges = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    text = st.text(st.characters(categories=["L", "Nd"], max_codepoint=0x3FF), min_size=1, max_size=4)
    numbers = st.integers(-(2**60), 2**60)
    labels = ()
    if "labels" in holds and draw(st.booleans()):
        kind = draw(st.sampled_from([text, numbers]))
        labels = draw(st.lists(kind, min_size=num_nodes, max_size=num_nodes, unique=True))
    has_edge_weights = "edge_weights" in holds and draw(st.booleans())
    has_node_weights = "node_weights" in holds and draw(st.booleans())
    return Graph.from_edges(
        np.array(edges, dtype=np.int64).reshape(-1, 2),
        num_nodes,
        edge_weights=draw(weights(len(edges))) if has_edge_weights else None,
        node_weights=draw(weights(num_nodes, smallest_node_weight)) if has_node_weights else None,
        labels=labels,
    )


def content(graph, *, by_label, default_node_weight=1.0):
    """What a graph says, whatever the order of its nodes and whether weights of 1 are written out."""
    names = [str(label) for label in graph.labels] if by_label else range(graph.num_nodes)
    edge_weights = np.ones(graph.num_edges) if graph.edge_weights is None else graph.edge_weights
    node_weights = np.full(graph.num_nodes, default_node_weight) if graph.node_weights is None else graph.node_weights
    edges = {frozenset((names[u], names[v])): w for (u, v), w in zip(graph.edges, edge_weights, strict=True)}
    return edges, dict(zip(names, node_weights, strict=True))


@pytest.mark.parametrize("known", WRITABLE, ids=lambda known: known.name)
@given(data=st.data())
@small_settings
def test_writing_then_reading_gives_the_same_graph(known, data, tmp_path):
    is_qubo = known.name in QUBO_FORMATS
    graph = data.draw(graphs(known.holds, -100 if known.name in (*QUBO_FORMATS, "graphml", "npz") else 0))
    suffix = data.draw(st.sampled_from(known.suffixes)) + data.draw(st.sampled_from(["", ".gz", ".bz2", ".xz"]))
    path = tmp_path / f"graph{suffix}"
    write_graph(graph, path)
    again = read_graph(path)
    by_label, default = "labels" in known.holds, 0.0 if is_qubo else 1.0
    assert content(again, by_label=by_label, default_node_weight=default) == content(
        graph, by_label=by_label, default_node_weight=default
    )
    assert again.name == "graph"


@pytest.mark.parametrize("known", WRITABLE, ids=lambda known: known.name)
@pytest.mark.parametrize("num_nodes", [0, 1, 3])
def test_graphs_without_edges_survive(known, num_nodes, tmp_path):
    path = tmp_path / f"empty{known.suffixes[0]}"
    write_graph(Graph.from_edges([], num_nodes), path)
    assert read_graph(path).num_nodes == num_nodes
    assert read_graph(path).num_edges == 0


def write_text(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


EXAMPLES = {
    "a.clq": "c made by hand\np edge 3 2\nn 2 5\ne 1 2 7\ne 3 2 8.5\n",
    "a.col": "p col 3 2\r\nn 2 5\r\ne\t1 2 7\r\n e 3 2 8.5\r\n",
    "a.graph": "% comment\n3 2 011\n1 2 7\n% inside\n5 1 7 3 8.5\n1 2 8.5\n",
    "b.graph": "3 2 111 1\n9 1 2 7\n9 5 1 7 3 8.5\n9 1 2 8.5\n\n\n",
    "a.graphml": """<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
      <key id="d0" for="edge" attr.name="weight" attr.type="double"><default>7</default></key>
      <key id="d1" for="node" attr.name="weight" attr.type="double"/><key id="d2" for="node" attr.name="colour"/>
      <graph edgedefault="directed"><edge source="1" target="2"/><node id="1"><data key="d2">red</data></node>
      <node id="2"><data key="d1"> 5 </data></node><node id="3"/>
      <edge source="3" target="2"><data key="d0">8.5</data></edge></graph></graphml>""",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_weights_of_nodes_and_edges_are_read(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)
        graph = read_graph(write_text(tmp_path, name, EXAMPLES[name]))
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.edge_weights.tolist() == [7, 8.5]
    assert graph.node_weights.tolist() == [1, 5, 1]
    assert list(graph.labels) == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "text", "labels", "edges", "edge_weights"),
    [
        ("a.gr", "c x\np td 3 1\n1 3\n", [1, 2, 3], [(0, 2)], None),
        ("a.mc", "3 2\n1 3 -1\n2 3 1\n", [1, 2, 3], [(0, 2), (1, 2)], [-1, 1]),
        ("a.rud", "3 2\n1 3 1\n2 3 1\n", [1, 2, 3], [(0, 2), (1, 2)], None),
        ("a.graph", "3 1\n2\n1\n\n", [1, 2, 3], [(0, 1)], None),
        ("a.edges", "% sym\n7 -3\n\n5\n", [-3, 5, 7], [(0, 2)], None),
        ("a.edgelist", "bob,amy,2\namy cat 3", ["bob", "amy", "cat"], [(0, 1), (1, 2)], [2, 3]),
        ("a.el", "9007199254740993 9007199254740992", [2**53, 2**53 + 1], [(0, 1)], None),
        ("a.txt", "Zoë Nan\ninf Zoë", ["Zoë", "Nan", "inf"], [(0, 1), (0, 2)], None),
        ("a.csv", 'Source,Target,Weight\n"Smith, J","Doe ""A""",2\n', ["Smith, J", 'Doe "A"'], [(0, 1)], [2]),
        ("a.edges", "\ufeff4 5\n", [4, 5], [(0, 1)], None),
        ("a.csv", "from,to\n4, 5\n9\n", [4, 5, 9], [(0, 1)], None),
        ("a.csv", "a,b\nsource,target\n", ["a", "b", "source", "target"], [(0, 1), (2, 3)], None),
        ("a.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n3 1\n", [1, 2, 3], [(0, 2)], None),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 4\n1 2 4\n", [1, 2], [(0, 1)], [4]),
        ("a.graphml", "<graphml><graph><node id='x'/></graph></graphml>", ["x"], [], None),
    ],
)
def test_one_file_of_every_format(name, text, labels, edges, edge_weights, tmp_path):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    graph = read_graph(path)
    assert list(graph.labels) == labels
    assert [tuple(edge) for edge in graph.edges.tolist()] == edges
    assert (None if graph.edge_weights is None else graph.edge_weights.tolist()) == edge_weights


def test_a_weight_may_follow_any_blank(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\t\x1c2\n")  # a blank to Python's strings, but not to its numbers
    assert read_graph(tmp_path / "a.tsv").edge_weights.tolist() == [2]


@pytest.mark.parametrize(
    ("name", "text", "labels"),
    [
        ("a.csv", "Person1,Person2\nAnn,Bob\nBob,Cid\n", ["Ann", "Bob", "Cid"]),
        ("a.csv", "Friend A;Friend B\nAnn;Bob\nBob;Cid\n", ["Ann", "Bob", "Cid"]),
        ("a.txt", "u v\nAnn Bob\nBob Cid\n", ["Ann", "Bob", "Cid"]),
        ("a.edges", "# comment\nsource target\nAnn Bob\nBob Cid\n", ["Ann", "Bob", "Cid"]),
        ("a.txt", "protein1 protein2 score\nP1 P2 1\nP2 P3 1\n", ["P1", "P2", "P3"]),
        ("a.csv", "Haus,Nachbar,Zahl\nAnn,Bob,1\nBob,Cid,1\n", ["Ann", "Bob", "Cid"]),
        ("a.txt", "Haus Nachbar\n7 8\n8 9\n", [7, 8, 9]),
        ("a.csv", "Haus,Nachbar\n7,8\n8,9\n", [7, 8, 9]),
        ("a.csv", ",source,target\n0,Ann,Bob\n1,Bob,Cid\n", ["Ann", "Bob", "Cid"]),
        ("a.csv", ",0,1\n0,7,8\n1,8,9\n", [7, 8, 9]),
        ("a.csv", "Id,Source,Target,Type,Weight\n0,Ann,Bob,x,1\n1,Bob,Cid,x,1\n", ["Ann", "Bob", "Cid"]),
    ],
)
def test_column_names_are_no_edge_and_a_warning_names_them(name, text, labels, tmp_path):
    with pytest.warns(GraphWarning, match=r": line [12], '.*', is read as column names; move it down") as told:
        graph = read_graph(write_text(tmp_path, name, text))
    assert (list(graph.labels), graph.edges.tolist(), len(told)) == (labels, [[0, 1], [1, 2]], 1)


@pytest.mark.parametrize(
    ("text", "num_nodes"),
    [("u v\nv w\n", 3), ("node1 node2\nnode3 node4\n", 4), ("Ann Bob\nBob 3\n", 3), ("Ann Bob\n", 2)],
)
@pytest.mark.parametrize("separator", [" ", ","])
def test_first_edges_that_look_like_the_others_are_no_column_names(text, num_nodes, separator, tmp_path):
    name = "a.edges" if separator == " " else "a.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_graph(write_text(tmp_path, name, text.replace(" ", separator))).num_nodes == num_nodes


def test_labels_that_look_like_column_names_survive(tmp_path):
    graph = Graph.from_edges([(0, 1), (2, 3)], labels=["from", "to", 5, 6])
    write_graph(graph, tmp_path / "a.edges")
    with pytest.warns(GraphWarning, match="'source,target', is read as column names"):
        assert list(read_graph(tmp_path / "a.edges").labels) == ["from", "to", "5", "6"]
    write_graph(graph, tmp_path / "a.csv")
    assert list(read_graph(tmp_path / "a.csv").labels) == ["from", "to", "5", "6"]
    write_graph(replace(graph, edge_weights=np.array([2.0, 3.0])), tmp_path / "b.edges")
    with pytest.warns(GraphWarning, match="'source,target,weight', is read as column names"):
        assert read_graph(tmp_path / "b.edges").edge_weights.tolist() == [2, 3]


def weighted_friends():
    source = networkx.Graph()
    source.add_node("Ann", weight=4)
    source.add_edge("Ann", "Bob", weight=2.5)
    source.add_edge("Bob", "Cid")
    source.add_node("Dan")
    return source


@pytest.mark.parametrize(
    ("name", "write", "keeps_weights", "keeps_nodes"),
    [
        ("a.edgelist", networkx.write_edgelist, True, False),
        ("a.txt", lambda graph, path: networkx.write_edgelist(graph, path, data=False), False, False),
        ("a.adjlist", networkx.write_adjlist, False, True),
        ("a.gml", networkx.write_gml, True, True),
        ("a.gexf", networkx.write_gexf, True, True),
        ("a.gml.gz", networkx.write_gml, True, True),
        ("a.json", lambda g, path: path.write_text(json.dumps(networkx.node_link_data(g))), True, True),
        ("b.json", lambda g, path: path.write_text(json.dumps(networkx.node_link_data(g, edges="links"))), True, True),
    ],
)
def test_files_of_networkx_are_read(name, write, keeps_weights, keeps_nodes, tmp_path):
    write(weighted_friends(), tmp_path / name)
    graph = read_graph(tmp_path / name)
    assert list(graph.labels) == ["Ann", "Bob", "Cid", *["Dan"] * keeps_nodes]
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert (graph.edge_weights is not None and graph.edge_weights.tolist() == [2.5, 1]) == keeps_weights
    assert (graph.node_weights is not None and graph.node_weights.tolist() == [4, 1, 1, 1]) == (
        keeps_weights and keeps_nodes
    )


@pytest.mark.parametrize(("suffix", "write"), [("g6", networkx.write_graph6), ("s6", networkx.write_sparse6)])
def test_files_of_nauty_may_hold_many_graphs(suffix, write, tmp_path):
    path, many = tmp_path / f"a.{suffix}", tmp_path / f"many.{suffix}"
    write(networkx.petersen_graph(), path)
    assert repr(read_graph(path)) == "Graph(name='a', num_nodes=10, num_edges=15)"
    many.write_bytes(path.read_bytes() * 2)
    assert [graph.name for graph in read_graphs(many)] == ["many[0]", "many[1]"]


def test_ids_name_the_nodes_where_labels_are_not_distinct(tmp_path):
    text = 'graph [ directed 1 node [ id 7 label "x" ] node [ id 8 label "x" ] edge [ source 8 target 7 ] ]'
    assert list(read_graph(write_text(tmp_path, "a.gml", text)).labels) == [7, 8]


def test_biq_mac_coefficients_count_twice_and_qbsolv_ones_once(tmp_path):
    sparse = read_graph(write_text(tmp_path, "a.sparse", "3 3\n1 1 -4\n1 2 5\n3 2 6\n"))
    qbsolv = read_graph(write_text(tmp_path, "a.qubo", "c x\np qubo 0 3 1 2\n0 0 -4\n0 1 10\nc between\n1 2 12\n"))
    for graph in (sparse, qbsolv):
        assert graph.node_weights.tolist() == [-4, 0, 0]
        assert graph.edge_weights.tolist() == [10, 12]
    assert (list(sparse.labels), list(qbsolv.labels)) == ([1, 2, 3], [0, 1, 2])


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_scipy_matrices_are_read_from_npz(layout, tmp_path):
    matrix = scipy.sparse.csr_array(np.array([[0, 2.5, 0], [2.5, 0, 0], [0, 0, 0]]))
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix.asformat(layout))
    graph = read_graph(tmp_path / "a.npz")
    assert (graph.num_nodes, graph.edges.tolist(), graph.edge_weights.tolist()) == (3, [[0, 1]], [2.5])


def test_collections_give_named_graphs(tmp_path):
    write_text(tmp_path, "X_A.txt", "1, 2\n2, 1\n3, 3\n5, 3\n")
    with gzip.open(tmp_path / "X_graph_indicator.txt.gz", "wt") as indicator:
        indicator.write("1\n1\n2\n2\n2\n")
    with pytest.warns(GraphWarning, match=r"X_A\.txt: dropped 1 self-loop$"):
        tu = read_graphs(tmp_path / "X_A.txt")
    assert [(graph.name, graph.num_nodes, graph.edges.tolist()) for graph in tu] == [
        ("X[0]", 2, [[0, 1]]),
        ("X[1]", 3, [[0, 2]]),
    ]
    dgcnn = read_graphs(write_text(tmp_path, "Y.dgcnn.txt", "2\n1 0\n-1 0\n2 1\n0 1 1 0.25\n0 1 0 0.5\n"))
    assert [(graph.name, graph.num_edges) for graph in dgcnn] == [("Y.dgcnn[0]", 0), ("Y.dgcnn[1]", 1)]
    with pytest.raises(InputError, match="2 graphs; give a file with one"):
        read_graph(tmp_path / "Y.dgcnn.txt")


def test_adjacency_file_without_indicator_is_an_edge_list(tmp_path):
    assert read_graph(write_text(tmp_path, "X_A.txt", "1, 2\n2, 3\n")).num_edges == 2


@pytest.mark.parametrize(
    ("text", "is_rudy"),
    [
        ("3 2 \n1 2 1\n2 3 1\n", True),
        ("4 5\n1 2\n1 3\n1 4\n2 3\n2 4\n", True),
        ("0 1\n0 2\n", False),
        ("3 2\n1 2\n1 4\n", False),
        ("# comment\n3 1\n1 2\n", False),
        ("5 0\n", False),
        ("a b\n1 2 3\n", False),
    ],
)
def test_txt_is_gset_only_with_a_true_header(text, is_rudy, tmp_path):
    path = write_text(tmp_path, "a.txt", text)
    try:
        graph = read_graph(path)
    except InputError:
        assert text.startswith("a b")
        return
    expected = read_graph(path, format="rudy" if is_rudy else "edge-list")
    assert graph.digest == expected.digest
    assert graph.labels == expected.labels


def test_txt_that_could_be_either_is_read_as_gset_with_a_warning(tmp_path):
    path = write_text(tmp_path, "a.txt", "3 2\n1 2\n2 3\n")
    with pytest.warns(GraphWarning, match="pass --format edge-list"):
        assert read_graph(path).num_edges == 2
    with pytest.warns(GraphWarning, match=r"a\.txt: dropped 1 repeated edge$"):
        assert read_graph(path, format="edge-list").num_edges == 2


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_standard_input_may_be_compressed(pack, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(b"p edge 2 1\ne 1 2\n"))))
    assert repr(read_graph("-", format="dimacs")) == "Graph(name='stdin', num_nodes=2, num_edges=1)"


@pytest.mark.parametrize("format", ["edge-list", "npz"])
def test_standard_output_and_input_are_paths(format, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    write_graph(Graph.from_edges([(0, 1), (1, 2)]), "-", format=format)
    out.buffer.seek(0)
    monkeypatch.setattr(sys, "stdin", out)
    assert read_graph("-", format=format).num_edges == 2


def test_named_pipes_are_read(tmp_path):
    path = tmp_path / "pipe.gr"
    os.mkfifo(path)
    if os.fork() == 0:
        path.write_text("p td 2 1\n1 2\n")
        os._exit(0)
    assert read_graph(path).num_edges == 1
    os.wait()


def test_failed_writing_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.edges"
    path.write_text("keep me")
    with pytest.raises(InputError, match=r"a\.edges: the node label 'x y' cannot be written.*; write \.csv"):
        write_graph(Graph.from_edges([(0, 1)], labels=["x y", "z"]), path)
    assert path.read_text() == "keep me"
    assert os.listdir(tmp_path) == ["a.edges"]


def test_parts_a_format_cannot_hold_are_left_out_with_a_warning(tmp_path):
    graph = Graph.from_edges([(0, 1)], edge_weights=[2], node_weights=[1, 3], labels=["a", "b"])
    with pytest.warns(GraphWarning, match="cannot hold edge weights and node weights and labels"):
        write_graph(graph, tmp_path / "a.gr")
    with pytest.raises(InputError, match="node weight -3; this format allows none below 0"):
        write_graph(replace(graph, node_weights=np.array([1.0, -3.0]), labels=range(2)), tmp_path / "a.clq")


def test_self_loops_and_repeats_are_dropped_with_a_warning_that_names_the_file(tmp_path):
    path = write_text(tmp_path, "a.clq", "p edge 3 4\ne 1 2\ne 2 1\ne 3 3\ne 2 3\n")
    with pytest.warns(GraphWarning, match=r"a\.clq: dropped 1 self-loop and 1 repeated edge$"):
        assert read_graph(path).num_edges == 2


def test_reading_in_many_blocks_gives_the_same_graph(tmp_path, monkeypatch):
    edges = "".join(f"e {u} {u + 1} {u / 8}\n" for u in range(1, 200))
    path = write_text(tmp_path, "a.clq", "c \n" + "p edge 200 199\n" + edges)
    whole = read_graph(path)
    monkeypatch.setattr("diffuco.graphs.formats.source.CHUNK_BYTES", 7)
    assert whole.digest == read_graph(path).digest


def reference_sizes():
    sizes = {}
    for table in DATA.glob("*/best_known.csv"):
        with table.open() as lines:
            for row in csv.DictReader(lines):
                key = (table.parent.name, row["instance"])
                sizes[key] = (int(row["nodes"]), int(row.get("edges_in_file") or row["edges"]), row["problem"])
    return sizes


UNLISTED = {("realworld", "word-ladder"): (89_476, 186_388, "none")}
"""Graphs without best known values, with the sizes that their sources tell."""


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the reference data is not at {DATA}")
@pytest.mark.filterwarnings("ignore::diffuco.foundation.errors.GraphWarning")
@pytest.mark.parametrize("folder", ["dimacs_clique", "gset", "realworld", "biqmac"])
def test_reference_data_has_the_listed_sizes(folder):
    sizes = reference_sizes() | UNLISTED
    paths = [path for path in sorted((DATA / folder).rglob("*.gz")) if "cuts" not in path.parts]
    assert paths
    for path in paths[:: 3 if len(paths) > 100 else 1]:
        graph = read_graph(path)
        num_nodes, num_edges, problem = sizes[folder, graph.name]
        num_diagonals = np.count_nonzero(graph.node_weights) if problem == "qubo_min" else 0
        assert (graph.num_nodes, graph.num_edges + num_diagonals) == (num_nodes, num_edges), path


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the reference data is not at {DATA}")
@pytest.mark.parametrize(("name", "num_graphs"), [("MUTAG_raw/MUTAG_A", 188), ("IMDB-BINARY.dgcnn", 1000)])
def test_reference_collections_are_complete(name, num_graphs):
    assert len(read_graphs(DATA / "tu" / f"{name}.txt.gz")) == num_graphs


@pytest.mark.parametrize("text", ["source,target,weight\n0,0,3\n", "source,target,weight\n0,0,3\n0,1,1\n"])
def test_weights_that_go_with_their_self_loops_leave_no_trace(tmp_path, text):
    (tmp_path / "loop.csv").write_text(text)
    with pytest.warns(GraphWarning, match="dropped 1 self-loop"):
        graph = read_graph(tmp_path / "loop.csv")
    assert graph.edge_weights is None
    write_graph(graph, tmp_path / "again.npz")
    assert read_graph(tmp_path / "again.npz").digest == graph.digest


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("01234,56789\n1234,99999\n", ["01234", "56789", "1234", "99999"]),
        ("007,008\n", ["007", "008"]),
        ("7,+5\n5,9\n", ["7", "+5", "5", "9"]),
        ("1e3,1000\n", ["1e3", "1000"]),
        ("1.0,1\n", ["1.0", "1"]),
        ("0,-0\n", ["0", "-0"]),
        ("1_000,1000\n", ["1_000", "1000"]),
        ("٣,3\n", ["٣", "3"]),
        ("3,\uff13\n", ["3", "\uff13"]),
        ("5,1\n07\n", ["5", "1", "07"]),
        ("10,-2\n0,3\n", [-2, 0, 3, 10]),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "b.csv", "a.tsv", "a.edges", "a.txt", "a.adjlist"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.filterwarnings("ignore::diffuco.foundation.errors.GraphWarning")
def test_labels_are_numbers_only_if_they_are_written_as_such(name, text, labels, compiled, tmp_path, monkeypatch):
    if compiled:
        monkeypatch.setattr("diffuco.graphs.formats.numbers.COMPILED_BYTES", 0)
    text = ("source,target\n" if name == "b.csv" else "") + text
    graph = read_graph(write_text(tmp_path, name, text.replace(",", {"a.csv": ",", "b.csv": ","}.get(name, "\t"))))
    assert list(graph.labels) == labels


@pytest.mark.parametrize("compiled", [False, True])
def test_weights_may_be_written_in_any_way(compiled, tmp_path, monkeypatch):
    monkeypatch.setattr("diffuco.graphs.formats.numbers.COMPILED_BYTES", 0 if compiled else 2**20)
    graph = read_graph(write_text(tmp_path, "a.edges", "1 2 007\n2 3 +.5\n3 4 -0\n"))
    assert (graph.labels, graph.edge_weights.tolist()) == ([1, 2, 3, 4], [7, 0.5, 0])


@pytest.mark.parametrize("text", ["1.0,2\n1,3\n", "1.0,\x1e2\n1,3\n"])
def test_labels_that_are_one_number_in_two_spellings_are_two_nodes_with_a_warning(text, tmp_path):
    path = write_text(tmp_path, "a.csv", text)
    with pytest.warns(GraphWarning, match=r"labels '1.0' and '1' are two nodes; write them alike if they are one"):
        assert read_graph(path).num_nodes == 4


@pytest.mark.parametrize("name", ["a.gml", "a.json", "a.graphml", "a.gexf"])
def test_labels_with_leading_zeros_stay_text_in_every_format(name, tmp_path):
    write = {"a.gml": networkx.write_gml, "a.graphml": networkx.write_graphml, "a.gexf": networkx.write_gexf}
    graph = networkx.Graph([("007", "008")])
    if name in write:
        write[name](graph, tmp_path / name)
    else:
        write_text(tmp_path, name, json.dumps(networkx.node_link_data(graph)))
    assert list(read_graph(tmp_path / name).labels) == ["007", "008"]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("source,target\n#a,b\nb,#c\n", ["#a", "b", "#c"]),
        ("source,target\n%a,b\n", ["%a", "b"]),
        ("#a,b\n#c,d\n", ["#a", "b", "#c", "d"]),
        ("# 2 rows\nsource,target\n#a,b\n", ["#a", "b"]),
        ("# 2 rows\n1,2\n2,3\n", [1, 2, 3]),
        ("1,2\n#2,3\n", ["1", "2", "#2", "3"]),
        ("a,b\n#c\n", ["a", "b", "#c"]),
    ],
)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_row_of_a_table_may_begin_with_a_comment_sign(text, labels, separator, tmp_path):
    path = write_text(tmp_path, "a.tsv" if separator == "\t" else "a.csv", text.replace(",", separator))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(read_graph(path).labels) == labels


def test_a_comment_with_columns_above_a_table_is_named(tmp_path):
    path = write_text(tmp_path, "a.csv", "\n#a,b\nb,c\n")
    with pytest.warns(GraphWarning, match=r"line 2, '#a,b', is read as a comment; put source,target above it if it is"):
        assert read_graph(path).num_edges == 1


def test_tables_keep_labels_that_begin_with_a_comment_sign(tmp_path):
    graph = Graph.from_edges([(0, 1)], labels=["#a", "%b", "#c"])
    write_graph(graph, tmp_path / "a.csv")
    assert list(read_graph(tmp_path / "a.csv").labels) == ["#a", "%b", "#c"]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a;b;c,d\n", None),
        ("Smith, J;Doe, A\nDoe, A;Roe, B\n", ["Smith, J", "Doe, A", "Roe, B"]),
        ("Smith, J;Doe\nDoe;Roe\nDan\n", ["Smith, J", "Doe", "Roe", "Dan"]),
        ("x;y,b\nb,c\n", ["x;y", "b", "c"]),
        ('"x;y",b\nb,c\n', ["x;y", "b", "c"]),
    ],
)
@pytest.mark.filterwarnings("ignore::diffuco.foundation.errors.GraphWarning")
def test_of_commas_and_semicolons_those_count_that_fit_all_rows(text, labels, tmp_path):
    path = write_text(tmp_path, "a.csv", text)
    if labels is None:
        with pytest.raises(InputError, match="weight 'c,d' is not a number"):
            read_graph(path)
        return
    assert list(read_graph(path).labels) == labels


def test_a_choice_between_commas_and_semicolons_is_told(tmp_path):
    with pytest.warns(GraphWarning, match="columns end at ';', though ',' would fit as well; put quotes around"):
        assert read_graph(write_text(tmp_path, "a.csv", "Smith, J;Doe, A\n")).num_nodes == 2


@pytest.mark.parametrize(("name", "text"), [("a.edges", "Ann|Bob\nBob|Cid\n"), ("a.csv", "\nA->B\nB->C\n")])
def test_a_file_without_edges_is_told_with_its_first_line(name, text, tmp_path):
    first = text.split()[0]
    line = 1 + text.index(first)
    with pytest.warns(GraphWarning, match=rf"no edges: line {line}, '.*', is read as a node alone; put ',' between"):
        assert read_graph(write_text(tmp_path, name, text)).num_nodes == 2


def test_a_node_alone_is_no_reason_for_a_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("a.edges", "a.csv", "a.adjlist"):
            text = "Ann,Bob\nNew-York\n".replace(",", "," if name == "a.csv" else " ")
            assert read_graph(write_text(tmp_path, name, text)).num_nodes == 3


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [("a.edges", "A B 2\nB B 1\nB B 4\nB A 3\n", 4), ("a.clq", "p edge 2 2\ne 1 2 7\ne 2 1 8\n", 3)],
)
def test_repeated_edges_with_other_weights_are_named(name, text, line, tmp_path):
    with pytest.warns(
        GraphWarning, match=rf"line {line} gives the edge of '\w' and '\w' another weight; the first one counts$"
    ):
        assert read_graph(write_text(tmp_path, name, text)).edge_weights.tolist() == [2 if line == 4 else 7]


def test_repeated_edges_with_equal_weights_are_only_counted(tmp_path):
    with pytest.warns(GraphWarning, match="dropped 1 self-loop and 1 repeated edge$"):
        read_graph(write_text(tmp_path, "a.edges", "A B 2\nB A 2\nA A 5\n"))
