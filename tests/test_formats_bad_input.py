"""Bad input: one line that names the file, the line and the remedy, never another exception or a full memory."""

import bz2
import contextlib
import gzip
import io
import itertools
import lzma
import os
import re
import time
import warnings
import zipfile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.formats import FORMATS, read_graph, read_graphs, write_graph
from diffuco.graphs.graph import Graph

BANNER = "%%MatrixMarket matrix coordinate real symmetric\n"


def archive(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


VALID = {
    "a.clq": b"c comment\np edge 3 2\nn 2 5\ne 1 2 7\ne 3 2 8\n",
    "a.gr": b"c comment\np td 3 2\n1 2\n2 3\n",
    "a.graph": b"% comment\n3 2 011\n1 2 7\n5 1 7 3 8\n1 2 8\n",
    "a.mc": b"3 2\n1 2 7\n2 3 8\n",
    "a.edges": b"# comment\n1 2 7\n2 3 8\n",
    "a.txt": b"3 2\n1 2\n2 3\n",
    "a.adjlist": b"# comment\n1 2\n2 3\n",
    "a.tsv": b"source\ttarget\n1\t2\n2\t3\n",
    "a.gml": b'graph [\n node [ id 0 label "a" ]\n node [ id 1 label "b" ]\n edge [ source 0 target 1 ]\n]\n',
    "a.gexf": b'<gexf xmlns="http://www.gexf.net/1.2draft"><graph>\n<nodes><node id="1"/><node id="2"/></nodes>\n'
    b'<edges><edge source="1" target="2" weight="7"/></edges></graph></gexf>\n',
    "a.json": b'{"nodes": [{"id": 1}, {"id": 2}],\n"links": [{"source": 1, "target": 2}]}\n',
    "a.g6": b"BW\n",
    "a.csv": b'source,target,weight\na,"b, c",7\n"b, c",d,8\n',
    "a.mtx": BANNER.encode() + b"3 3 2\n2 1 7\n3 2 8\n",
    "a.graphml": b'<graphml><key id="w" for="edge" attr.name="weight"/><graph>\n<node id="1"/><node id="2"/>\n'
    b'<edge source="1" target="2"><data key="w">7</data></edge></graph></graphml>\n',
    "a.npz": archive(num_nodes=3, edges=[[0, 1], [1, 2]], edge_weights=[7.0, 8.0], labels=["a", "b", "c"]),
    "a.sparse": b"3 3\n1 1 4\n1 2 7\n2 3 8\n",
    "a.qubo": b"c comment\np qubo 0 3 1 2\n0 0 4\n0 1 7\n1 2 8\n",
    "a.dgcnn.txt": b"1\n3 0\n0 1 1\n0 2 0 2\n0 1 1\n",
    "X_A.txt": b"1, 2\n2, 1\n2, 3\n",
}
TEXTS = [name for name in VALID if name != "a.npz"]


def message_of(tmp_path, name, content):
    """The error for a file; it must be one line that begins with the path and ends with a remedy."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if name == "X_A.txt" and not (tmp_path / "X_graph_indicator.txt").exists():
        (tmp_path / "X_graph_indicator.txt").write_text("1\n1\n1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)
        with pytest.raises(InputError) as caught:
            read_graphs(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert "\n" not in message
    assert re.search(r"[;,] \w", message), message
    return message.removeprefix(f"{tmp_path}/")


def test_valid_files_are_valid(tmp_path):
    for name, content in VALID.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / "X_graph_indicator.txt").write_text("1\n1\n1\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphWarning)
            assert read_graphs(tmp_path / name)[0].num_edges in (1, 2)


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_empty_files_are_refused(name, content, tmp_path):
    assert "; " in message_of(tmp_path, name, content)


@pytest.mark.parametrize("name", VALID)
def test_missing_files_are_refused(name, tmp_path):
    with pytest.raises(InputError, match="no such file; check the path"):
        read_graph(tmp_path / name)


@pytest.mark.parametrize("name", VALID)
def test_folders_are_refused(name, tmp_path):
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="this is a folder; give one of the files"):
        read_graph(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_unreadable_files_are_refused(tmp_path):
    path = tmp_path / "a.gr"
    path.write_bytes(VALID["a.gr"])
    path.chmod(0)
    with pytest.raises(InputError, match="no permission"):
        read_graph(path)


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_cut_off_compressed_files_are_refused(name, suffix, pack, tmp_path):
    packed = pack(VALID[name] * 50)
    assert "damaged or cut off" in message_of(tmp_path, name + suffix, packed[: len(packed) - 12])


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("word", [b"1" * 300_000 + b"x", b"1 2" + b" {" * 100_000 + b"}", b" " * 300_000 + b"x"])
def test_long_words_and_gaps_take_no_longer_than_they_are(name, word, tmp_path):
    *before, last = VALID[name].rstrip().split(b"\n")
    (tmp_path / name).write_bytes(b"\n".join([*before, last + b" " + word, word, b""]))
    started = time.process_time()
    with contextlib.suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_graph(tmp_path / name)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "a.graphml"])
def test_binary_files_are_refused_with_the_line(name, tmp_path):
    assert re.match(rf"{name}:\d+: a zero byte", message_of(tmp_path, name, VALID[name] + b"\x00\x01\xff\x00"))


@pytest.mark.parametrize("name", TEXTS)
def test_bytes_that_are_not_utf8_are_refused_with_the_line(name, tmp_path):
    last = VALID[name].count(b"\n") + (0 if name == "a.graphml" else 1)
    content = VALID[name] + b"\xe9 \xff\n" if name != "a.graphml" else VALID[name].replace(b"7<", b"\xff<")
    assert message_of(tmp_path, name, content).startswith(f"{name}:{last}: ")


@pytest.mark.parametrize("name", ["a.clq", "a.gr", "a.graph", "a.mc", "a.mtx", "a.sparse", "a.qubo", "a.dgcnn.txt"])
def test_absurd_numbers_of_nodes_are_refused(name, tmp_path):
    header = {"a.dgcnn.txt": b"3 0\n", "a.mtx": b"3 3 2\n", "a.qubo": b"0 3 1"}.get(name, b"3 ")
    lie = header.replace(b"3", b"1000000000000")
    message = message_of(tmp_path, name, VALID[name].replace(header, lie, 1))
    assert re.match(rf"{name}:[12]: 1000000000000 nodes; at most 50000000 can be read", message)


LIES = [
    ("a.clq", "p edge 3 5\ne 1 2\n", "a.clq:1: 5 edges declared, 1 found"),
    ("a.clq", "p edge 2 3\ne 1 2\ne 2 1\n", "a.clq:1: 3 edges declared, 2 (1 distinct) found"),
    ("a.gr", "p td 3 0\n1 2\n", "a.gr:1: 0 edges declared, 1 found"),
    ("a.mc", "3 5\n1 2 1\n", "a.mc:1: 5 edges declared, 1 found"),
    ("a.graph", "3 5\n2\n1\n\n", "a.graph:1: 5 edges declared, 2 (1 distinct) found"),
    ("a.graph", "3 1\n2\n1\n", "a.graph:1: 3 nodes declared, 2 lines of neighbours found"),
    ("a.graph", "1 1\n2\n1\n", "a.graph:1: 1 node declared, 2 lines of neighbours found"),
    ("a.mtx", BANNER + "3 3 5\n2 1 1\n", "a.mtx:2: 5 edges declared, 1 found"),
    ("a.sparse", "3 5\n1 2 1\n", "a.sparse:1: 5 edges declared, 1 found"),
    ("a.qubo", "p qubo 0 2 1 1\n0 1 1\n", "a.qubo:1: diagonals and elements: 1 and 1 declared, 0 and 1 found"),
    ("a.dgcnn.txt", "2\n1 0\n0 0\n", "a.dgcnn.txt:1: 2 graphs declared, 1 found"),
    ("a.dgcnn.txt", "1\n1 0\n0 0\n1 0\n0 0\n", "a.dgcnn.txt:4: data after 1 graph;"),
    ("a.dgcnn.txt", "1\n3 0\n0 0\n", "a.dgcnn.txt:2: the file ends before 3 node lines"),
]
MISSING_HEADERS = [
    ("a.clq", "e 1 2\n", "a.clq: no problem line"),
    ("a.clq", "e 1 2\np edge 2 1\n", "a.clq:1: data before the problem line"),
    ("a.clq", "p edge 2 1\np edge 2 1\ne 1 2\n", "a.clq:2: a second problem line"),
    ("a.clq", "p edge 2\ne 1 2\n", "a.clq:1: the problem line has 3 words"),
    ("a.clq", "p sp 2 1\ne 1 2\n", "a.clq:1: the problem is of kind 'sp'"),
    ("a.gr", "1 2\n", "a.gr: no problem line"),
    ("a.gr", "p td x 1\n1 2\n", "a.gr:1: 'x' is not a number"),
    ("a.mc", "1 2 3\n", "a.mc:1: the header has 3 numbers"),
    ("a.mc", "# nothing\n", "a.mc: no header line"),
    ("a.graph", "1 2 0 1 5\n", "a.graph:1: the header has 5 numbers"),
    ("a.graph", "% nothing\n\n", "a.graph: no header line"),
    ("a.graph", "1 0 7\n\n", "a.graph:1: fmt 7"),
    ("a.graph", "1 0 10 2\n1 1\n", "a.graph:1: 2 weights per node"),
    ("a.mtx", "3 3 2\n", "a.mtx:1: '3 3 2' is not a Matrix Market banner"),
    ("a.mtx", BANNER, "a.mtx: no size line"),
    ("a.mtx", BANNER + "3 3\n", "a.mtx:2: the size line has 2 numbers"),
    ("a.mtx", BANNER + "3 4 0\n", "a.mtx:2: the matrix is 3 by 4"),
    ("a.mtx", BANNER.replace("coordinate", "array"), "a.mtx:1: a 'matrix array'"),
    ("a.mtx", BANNER.replace("real", "complex"), "a.mtx:1: the values are of kind 'complex'"),
    ("a.mtx", BANNER.replace("symmetric", "hermitian"), "a.mtx:1: the symmetry is 'hermitian'"),
    ("a.qubo", "p qubo 0 2\n", "a.qubo:1: not a qbsolv problem line"),
    ("a.dgcnn.txt", "1 2\n", "a.dgcnn.txt:1: no number of graphs"),
    ("a.graphml", "<a/>", "a.graphml: no <graph> element"),
]
BAD_NODES = [
    ("a.clq", "p edge 3 1\ne 1 4\n", "a.clq:2: 4 is not a node"),
    ("a.clq", "p edge 3 1\nn 0 4\ne 1 2\n", "a.clq:2: 0 is not a node"),
    ("a.gr", "p td 3 1\n0 1\n", "a.gr:2: 0 is not a node"),
    ("a.gr", "p td 3 1\n1.5 1\n", "a.gr:2: 1.5 is not a node"),
    ("a.gr", "p td 3 1\nnan 1\n", "a.gr:2: nan is not a node"),
    ("a.mc", "3 1\n1 99999999999999999999 1\n", "a.mc:2: 1e+20 is not a node"),
    ("a.graph", "2 1\n2\n3\n", "a.graph:3: 3 is not a node"),
    ("a.mtx", BANNER + "3 3 1\n4 1 1\n", "a.mtx:3: 4 is not a node"),
    ("a.sparse", "3 1\n0 1 1\n", "a.sparse:2: 0 is not a node"),
    ("a.qubo", "p qubo 0 2 0 1\n0 2 1\n", "a.qubo:2: 2 is not a node"),
    ("a.dgcnn.txt", "1\n1 0\n0 1 1\n", "a.dgcnn.txt:3: 1 is not a node"),
    ("X_A.txt", "1, 4\n", "X_A.txt:1: 4 is not a node"),
    ("a.graphml", '<graphml><graph>\n<edge source="a" target="b"/></graph></graphml>', "a.graphml:2: an edge to 'a'"),
]
BAD_NUMBERS = [
    ("a.clq", "p edge 2 1\ne 1 b\n", "a.clq:2: 'b' is not a number"),
    ("a.clq", "p edge 2 1\n\nx 1 2\n", "a.clq:3: the line begins with 'x'"),
    ("a.clq", "p edge 2 1\nedge 1 2\n", "a.clq:2: the line begins with 'edge'"),
    ("a.clq", "p edge 2 1\ne 1\n", "a.clq:2: 1 column;"),
    ("a.clq", "p edge 3 2\ne 1 2\ne 1 3 5\n", "a.clq:3: 3 columns, but the lines before have 2"),
    ("a.gr", "p td 2 1\n1 2 3\n", "a.gr:2: 3 columns"),
    ("a.gr", "p td 2 1\n1 0x2\n", "a.gr:2: '0x2' is not a number"),
    ("a.mc", "2 1\n1 2 1-2\n", "a.mc:2: '1-2' is not a number"),
    ("a.graph", "2 1\nb\n1\n", "a.graph:2: 'b' is not a number"),
    ("a.graph", "2 1 1\n2\n1 5\n", "a.graph:2: a neighbour without a weight"),
    ("a.graph", "2 1 10\n1 2\n\n", "a.graph:3: 1 number must come before the neighbours"),
    ("a.edges", "a b\nb c d\n", "a.edges:2: 3 columns, but the edges before have 2"),
    ("a.edges", "a b 1\nb c d\n", "a.edges:2: weight 'd' is not a number"),
    ("a.edges", "1 2 3 4\n", "a.edges:1: 4 columns"),
    ("a.edges", "1 2\n3 4 5\n", "a.edges:2: 3 columns, but the edges before have 2"),
    ("a.edges", "1,2\n3,,4\n", "a.edges:2: a column is empty"),
    ("a.csv", "a,b\nc,\n", "a.csv:2: a column is empty"),
    ("a.csv", 'a,b\n"c,d\n', "a.csv:2: not a CSV row"),
    ("a.csv", "a;b\nb;c;1,5\n", "a.csv:2: 3 columns, but the edges before have 2"),
    ("a.csv", "a,b,c,d\n", "a.csv:1: 4 columns; expected u v or u v weight"),
    ("a.csv", "a;b;1,5\nb;c;2\n", "a.csv:1: weight '1,5' is not a number; write a decimal point"),
    ("a.csv", "1;2;1,5\n", "a.csv:1: weight '1,5' is not a number; write a decimal point"),
    ("a.csv", "source;target;weight\na;b;1,5\n", "a.csv:2: weight '1,5' is not a number; write a decimal point"),
    ("a.csv", "a;b,c\nd;e;f\ng,h,i\n", "a.csv:1: neither commas nor semicolons fit all rows; put quotes"),
    ("a.csv", "source,target,weight\na,b,1,5\n", "a.csv:2: 4 columns under 3 names; name all columns"),
    ("a.csv", "source,target\n1,2,3\n", "a.csv:2: 3 columns under 2 names; name all columns"),
    ("a.edges", "source target weight\na b 1,5\n", "a.edges:2: 4 columns under 3 names; name all columns"),
    ("a.edgelist", "a b {'weight': 'x'}\n", "a.edgelist:1: weight 'x' is not a number"),
    ("a.edgelist", "a b {weight: 1}\n", "a.edgelist:1: '{weight: 1}' is not the data of an edge"),
    ("a.g6", "D~{\n\x1f\n", "a.g6:2: this is not graph6"),
    ("a.g6", "D~{~\n", "a.g6:1: not a readable graph6 graph (Expected 10 bits"),
    ("a.s6", ":~~~~~~~~\n", "a.s6:1: 68719476735 nodes; at most 50000000 can be read"),
    ("a.json", "[1, 2]", "a.json: no lists 'nodes' and 'links'"),
    ("a.json", '{"nodes": [{}],\n"links": [}', "a.json:2: this is not JSON"),
    ("a.json", '{"nodes": [], "links": [{"source": 1}]}', "a.json: not a readable JSON graph ('target')"),
    ("a.gml", "graph [\n node [ id 0 ", "a.gml: not a readable GML graph"),
    ("a.gexf", "<gexf>\n<graph>", "a.gexf:2: not well-formed XML"),
    ("a.gexf", "<gexf/>", "a.gexf: not a readable GEXF graph (No <graph> element"),
    ("a.mtx", BANNER + "2 2 1\n2 1 x\n", "a.mtx:3: 'x' is not a number"),
    ("a.mtx", BANNER + "2 2 1\n2 1\n", "a.mtx:3: 2 columns"),
    ("a.sparse", "2 1\n1 2\n", "a.sparse:2: 2 columns"),
    ("a.sparse", "2 2\n1 2 1\n2 1 1\n", "a.sparse:3: the coefficient of 2 and 1 is given twice"),
    ("a.dgcnn.txt", "1\n1 0\n0 5\n", "a.dgcnn.txt:3: degree 5 is followed by 0 numbers"),
    ("a.dgcnn.txt", "1\n1 0\n0\n", "a.dgcnn.txt:3: a node line with only one number"),
    ("a.graphml", "<graphml>\n<graph>", "a.graphml:2: not well-formed XML"),
    ("a.graphml", "<graphml><graph>\n<node/></graph></graphml>", "a.graphml:2: a <node> without id"),
    (
        "a.graphml",
        "<a><graph><node id='1'/>\n<node id='1'/></graph></a>",
        "a.graphml:2: node '1' appears a second time",
    ),
    ("a.graphml", "<a><graph>\n<graph/></graph></a>", "a.graphml:2: a graph inside a graph"),
    ("a.graphml", "<?xml version='1.0' encoding='x-mad'?><a/>", "a.graphml"),
]
BAD_WEIGHTS = [
    ("a.clq", "p edge 2 1\ne 1 2 nan\n", "a.clq:2: weight nan"),
    ("a.clq", "p edge 2 1\nn 1 inf\ne 1 2\n", "a.clq:2: weight inf"),
    ("a.clq", "p edge 2 1\nn 1 -3\ne 1 2\n", "a.clq:2: node weight -3"),
    ("a.graph", "2 1 10\n1 2\n-3 1\n", "a.graph:3: node weight -3"),
    ("a.graph", "2 1 1\n2 nan\n1 nan\n", "a.graph:2: weight nan"),
    ("a.graph", "2 1 1\n2 4\n1 5\n", "a.graph:3: the edge of nodes 2 and 1 has two different weights"),
    ("a.graph", "2 1\n2\n\n", "a.graph:2: the edge of nodes 1 and 2 is listed at one end only"),
    ("a.mc", "2 1\n1 2 -inf\n", "a.mc:2: weight -inf"),
    ("a.edges", "1 2 1e999\n", "a.edges:1: weight inf"),
    ("a.edges", "a b nan\n", "a.edges:1: weight nan"),
    ("a.csv", "a,b,inf\n", "a.csv:1: weight inf"),
    ("a.mtx", BANNER + "2 2 1\n2 1 nan\n", "a.mtx:3: weight nan"),
    (
        "a.mtx",
        BANNER.replace("symmetric", "general") + "2 2 2\n2 1 1\n1 2 3\n",
        "a.mtx:3: the edge of nodes 2 and 1 has two different weights",
    ),
    ("a.sparse", "2 1\n1 1 nan\n", "a.sparse:2: weight nan"),
    ("a.qubo", "p qubo 0 2 1 0\n1 1 inf\n", "a.qubo:2: weight inf"),
    ("a.graphml", VALID["a.graphml"].decode().replace(">7<", ">nan<"), "a.graphml:3: weight 'nan'"),
]


@pytest.mark.parametrize(
    ("name", "content", "expected"), LIES + MISSING_HEADERS + BAD_NODES + BAD_NUMBERS + BAD_WEIGHTS
)
def test_the_message_names_the_line_and_the_problem(name, content, expected, tmp_path):
    assert message_of(tmp_path, name, content).startswith(expected)


@pytest.mark.parametrize("count", ["-3", "2.5", "nan", "inf"])
def test_counts_that_are_no_counts_are_refused(count, tmp_path):
    assert message_of(tmp_path, "a.mc", f"{count} 1\n1 2 1\n").startswith(f"a.mc:1: {count} nodes; write the number")
    assert message_of(tmp_path, "a.gr", f"p td 2 {count}\n1 2\n").startswith(f"a.gr:1: {count} edges; write the number")


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"edges": [[0, 1]]}, "a.npz: the arrays are 'edges'; expected num_nodes and edges"),
        ({"num_nodes": 2, "edges": [[0, 2]]}, "a.npz: edge (0, 2) names a node outside"),
        ({"num_nodes": 2, "edges": [[0.0, 1.0]]}, "a.npz: edges has type float64"),
        ({"num_nodes": 10**12, "edges": [[0, 1]]}, "a.npz: 1000000000000 nodes; at most"),
        ({"num_nodes": [2, 3], "edges": [[0, 1]]}, "a.npz: num_nodes has 2 values"),
        ({"num_nodes": 2, "edges": [[0, 1]], "edge_weights": [np.nan]}, "a.npz: edge weight number 0 is nan"),
        ({"num_nodes": 2, "edges": [[0, 1]], "edge_weights": ["x"]}, "a.npz: edge_weights has type <U1"),
        ({"num_nodes": 2, "edges": 5}, "a.npz: edges has shape (); save one row of two nodes per edge"),
        ({"num_nodes": 2, "edges": [[[0, 1]]]}, "a.npz: edges has shape (1, 1, 2); save one row"),
        ({"num_nodes": 2, "edges": [[0, 1]], "edge_weights": 5}, "a.npz: edge_weights has shape (); save a list"),
        ({"num_nodes": 2, "edges": [[0, 1]], "node_weights": [[1, 2]]}, "a.npz: node_weights has shape (1, 2); save a"),
        ({"num_nodes": 2, "edges": [[0, 1]], "labels": 5}, "a.npz: labels are not a list"),
        ({"num_nodes": 2, "edges": [[0, 1]], "labels": [[1], [2]]}, "a.npz: labels are not a list"),
        ({"num_nodes": 2, "edges": [[0, 1]], "labels": ["x"]}, "a.npz: 1 label for 2 nodes"),
        ({"num_nodes": 2, "edges": [[0, 1]], "labels": ["x", "x"]}, "a.npz: a label appears twice"),
        ({"num_nodes": 2, "edges": np.array([{}])}, "a.npz: not a readable .npz archive (edges.npy holds Python"),
    ],
)
def test_archives_with_wrong_arrays_are_refused(arrays, expected, tmp_path):
    assert message_of(tmp_path, "a.npz", archive(**arrays)).startswith(expected)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"indptr": [0, 9, 2]}, "the row pointers do not fit"),
        ({"indices": [1, 5]}, "an index outside 0..1"),
        ({"shape": [2, 3]}, "the matrix has shape (2, 3)"),
        ({"format": np.array(b"dia")}, "the sparse matrix is stored as"),
        ({"data": [1.0, 2.0]}, "the edge of nodes 1 and 0 has two different weights"),
        ({"data": [np.inf, np.inf]}, "a value that is NaN or infinite"),
    ],
)
def test_sparse_archives_that_lie_are_refused(changes, expected, tmp_path):
    scipy.sparse.save_npz(tmp_path / "good.npz", scipy.sparse.csr_array([[0.0, 1.0], [1.0, 0.0]]))
    arrays = dict(np.load(tmp_path / "good.npz")) | changes
    assert message_of(tmp_path, "a.npz", archive(**arrays)).startswith(f"a.npz: {expected}")


ODD_ARRAYS = [
    5,
    [5],
    [[0, 1]],
    [[[0]]],
    0.5,
    [np.inf],
    "csr",
    b"\xff",
    [b"csr"],
    True,
    1j,
    [],
    [[]],
    2**63,
    -1,
    ["a", "b"],
]


@pytest.mark.parametrize("kind", ["own", "csr", "coo"])
def test_odd_members_of_an_npz_cost_one_line(tmp_path, kind):
    path = tmp_path / "a.npz"
    path.write_bytes(VALID["a.npz"])
    if kind != "own":
        scipy.sparse.save_npz(path, scipy.sparse.csr_array([[0.0, 1.0], [1.0, 0.0]]).asformat(kind))
    arrays = dict(np.load(path))
    for name, odd in itertools.product(arrays, ODD_ARRAYS):
        path.write_bytes(archive(**arrays | {name: odd}))
        with contextlib.suppress(InputError):
            read_graph(path)


def test_array_headers_that_lie_about_their_size_are_refused(tmp_path):
    lie = io.BytesIO()
    with zipfile.ZipFile(lie, "w") as members:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (10**13, 2)})
        members.writestr("edges.npy", header.getvalue())
    assert "declares 160000000000000 bytes but has fewer" in message_of(tmp_path, "a.npz", lie.getvalue())


def test_entity_bombs_are_refused_at_once(tmp_path):
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(12)
    )
    for name in ("graphml", "gexf"):
        assert "a <!DOCTYPE> declaration; remove it" in message_of(
            tmp_path, f"a.{name}", f"<?xml version='1.0'?>\n{bomb}]>\n<{name}>&m;</{name}>"
        )


@pytest.mark.parametrize("name", ["a.gml", "a.gexf", "a.json", "a.g6"])
def test_files_too_large_for_networkx_are_refused(name, tmp_path, monkeypatch):
    for limit in ("MAX_BYTES", "MAX_GRAPH6_BYTES"):
        monkeypatch.setattr(f"diffuco.graphs.formats.networkx_files.{limit}", 1)
    assert re.search(r": more than 0 MiB.*; write ", message_of(tmp_path, name, VALID[name]))


@pytest.mark.parametrize("name", VALID)
def test_decompression_bombs_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr("diffuco.graphs.formats.source.MAX_BYTES", 2**20)
    monkeypatch.setattr("diffuco.graphs.formats.source.CHUNK_BYTES", 2**16)
    start = VALID[name][:10] if name == "a.graphml" else b""
    assert "GiB of data; give a smaller file" in message_of(
        tmp_path, name + ".gz", gzip.compress(start + b"\n" * 2**22)
    )


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_small_files_that_unpack_to_much_are_refused(suffix, pack, tmp_path, monkeypatch):
    monkeypatch.setattr("diffuco.graphs.formats.source.FREE_BYTES", 2**20)
    bomb, message = pack(b"1 2\n" * 2**19), "a small file with more than 1 MiB of data; if you trust it, unpack it"
    assert message in message_of(tmp_path, f"a.edges{suffix}", bomb)
    monkeypatch.setattr("diffuco.graphs.formats.source.MAX_EXPANSION", 10**6)
    with pytest.warns(GraphWarning, match="repeated"):
        assert read_graph(tmp_path / f"a.edges{suffix}").num_edges == 1


def test_arrays_count_as_many_bytes_as_they_take_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("diffuco.graphs.formats.source.FREE_BYTES", 2**20)
    stream = io.BytesIO()
    np.savez_compressed(stream, num_nodes=2, edges=np.tile(np.array([0, 1], dtype=np.int8), (2**18, 1)))
    assert len(stream.getvalue()) < 2000
    message = "a small file with more than 1 MiB of data; if you trust it, unpack it"
    assert message in message_of(tmp_path, "a.npz", stream.getvalue())
    assert message in message_of(tmp_path, "b.npz.gz", gzip.compress(stream.getvalue()))


@pytest.mark.parametrize(
    ("limit", "message"),
    [("source.MAX_LINES", "more than 100 lines"), ("numbers.MAX_NUMBERS", "more than 100 numbers")],
)
def test_files_of_too_many_numbers_are_refused(limit, message, tmp_path, monkeypatch):
    monkeypatch.setattr(f"diffuco.graphs.formats.{limit}", 100)
    assert message in message_of(tmp_path, "a.edges", b"1 2\n" * 101)


def test_xml_of_too_many_bytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("diffuco.graphs.formats.xml_stream.MAX_XML_BYTES", -1)
    assert "write the graph in another format" in message_of(tmp_path, "a.graphml", VALID["a.graphml"])


def test_lines_without_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("diffuco.graphs.formats.source.MAX_LINE_BYTES", 2**20)
    monkeypatch.setattr("diffuco.graphs.formats.source.CHUNK_BYTES", 2**16)
    assert "a line of more than 1 MiB" in message_of(tmp_path, "a.edges", b"1 " * 2**20)


def test_unknown_suffixes_and_formats_list_the_known_ones(tmp_path):
    for suffix in ("a.xyz", "a", "a.gz"):
        with pytest.raises(InputError, match="there is no such file or folder; check the path"):
            read_graph(tmp_path / suffix)
        (tmp_path / suffix).touch()
        with pytest.raises(InputError, match=r"rename it to one of \.clq .* \.npz .*, or pass --format"):
            read_graph(tmp_path / suffix)
    with pytest.raises(InputError, match="no format 'xyz'; choose one of dimacs, pace"):
        read_graph(tmp_path / "a.clq", format="xyz")
    with pytest.raises(InputError, match="a pipe has no suffix; pass --format"):
        read_graph("-")
    with pytest.raises(InputError, match="dgcnn files can only be read; choose one of dimacs"):
        write_graph(Graph.from_edges([(0, 1)]), tmp_path / "a.dgcnn.txt")


@pytest.mark.parametrize("path", ["no/such/folder/a.gr", "folder.gr", "zero\0byte.gr"])
def test_paths_that_cannot_be_written_are_refused(path, tmp_path):
    (tmp_path / "folder.gr").mkdir()
    with pytest.raises(InputError, match="choose another path"):
        write_graph(Graph.from_edges([(0, 1)]), f"{tmp_path}/{path}")
    assert os.listdir(tmp_path) == ["folder.gr"]


def test_adjacency_without_indicator_is_refused_when_asked_for_a_collection(tmp_path):
    (tmp_path / "Y_A.txt").write_text("1, 2\n")
    with pytest.raises(InputError, match="no graph indicator in the same folder; put a file X_graph_indicator"):
        read_graphs(tmp_path / "Y_A.txt", format="tu")
    (tmp_path / "X_graph_indicator.txt").write_text("1\n2\n")
    assert message_of(tmp_path, "X_A.txt", "1, 2\n").startswith("X_A.txt:1: an edge between two graphs")


def read_anything(path, format=None):
    """Read; any exception but `InputError`, and any warning but ours, fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GraphWarning)
        try:
            graphs = read_graphs(path, format)
        except InputError:
            return
    for graph in graphs:
        assert len(graph.labels) == graph.num_nodes
        assert np.all(graph.edges[:, 0] < graph.edges[:, 1])
        assert not graph.num_edges or graph.edges.max() < graph.num_nodes


fuzz_settings = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
junk = st.one_of(st.binary(max_size=60), st.text("0123456789 -.,e\"'\n\tpn%#inf<>/=abc", max_size=60).map(str.encode))


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
@given(content=junk)
@fuzz_settings
def test_arbitrary_bytes_give_a_graph_or_an_input_error(known, content, tmp_path):
    (tmp_path / "X_graph_indicator.txt").write_text("1\n1\n1\n")
    path = tmp_path / "X_A.txt"
    path.write_bytes(content)
    read_anything(path, known.name)


@pytest.mark.parametrize("name", [*VALID, "a.clq.gz", "a.npz.xz", "a.mtx.bz2"])
@given(data=st.data())
@fuzz_settings
def test_damaged_files_give_a_graph_or_an_input_error(name, data, tmp_path):
    content = VALID.get(name) or VALID[name.rpartition(".")[0]]
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}.get(name[name.rfind(".") :], bytes)
    damaged = bytearray(pack(content))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(damaged)))
        end = min(len(damaged), start + data.draw(st.integers(0, 5)))
        damaged[start:end] = data.draw(junk.map(lambda text: text[:4]))
    (tmp_path / "X_graph_indicator.txt").write_text("1\n1\n1\n")
    (tmp_path / name).write_bytes(damaged)
    read_anything(tmp_path / name)
