"""The compiled parser of plain numbers against the one that knows all lines."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.formats import numbers, parse_graph
from diffuco.graphs.formats.numbers import LineKinds
from diffuco.graphs.formats.source import Block, TextSource

KINDS = {
    "edge list": LineKinds(separators=b",;"),
    "tsv": LineKinds(separators=b"\t"),
    "dimacs": LineKinds(comments=b"c", headers=b"p", tags=b"en"),
    "metis": LineKinds(comments=b"%", keep_blank=True),
    "names": LineKinds(skipped_line=3),
}
PLAIN = b"# a comment\n1 2\n\n  30\t-4.25 \r\n5 , 600000,+.5;7.\n123456789012345 0.1\n"
words = st.one_of(
    st.integers(-(10**17), 10**17).map(str),
    st.decimals(-1000, 1000, allow_nan=False).map(str),
    st.text("0123456789-+., ;\t\r%#eEn", max_size=6),
)


@pytest.mark.parametrize("kinds", KINDS.values(), ids=KINDS.keys())
@given(lines=st.lists(st.lists(words, max_size=3).map(" ".join), max_size=4), tag=st.sampled_from(["", "e ", "p "]))
@example(lines=PLAIN.decode().split("\n"), tag="")
@example(lines=["1\t\t2"], tag="")
@example(lines=["0\t \r 0"], tag="")
@example(lines=["# a, b,", "1, 2"], tag="")
@settings(max_examples=150, deadline=None)
def test_plain_lines_are_what_the_other_parser_reads(kinds, lines, tag):
    text = "".join(f"{tag}{line}\n" for line in lines).encode()
    if not text:
        return
    found = numbers._parse_plain_block(Block(3, text.count(b"\n"), text), kinds)
    if found is None:
        return
    with TextSource("", "a.txt") as source:
        expected = numbers._parse_block(source, Block(3, text.count(b"\n"), text), kinds)
    for name in ("lines", "counts", "values"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    if kinds.tags:
        np.testing.assert_array_equal(found.tags, expected.tags)


def test_common_lines_are_plain():
    found = numbers._parse_plain_block(Block(1, PLAIN.count(b"\n"), PLAIN), KINDS["edge list"])
    assert found.lines.tolist() == [2, 4, 5, 6]
    assert found.counts.tolist() == [2, 2, 4, 2]
    assert found.values.tolist() == [1, 2, 30, -4.25, 5, 600000, 0.5, 7, 123456789012345, 0.1]


@pytest.mark.parametrize(
    "line", ["x 1", "1,,2", ",1", "1,", "1e3 2", "1-2", "- 1", ". 1", "1234567890123456 1", "nan 1"]
)
def test_other_lines_are_left_to_the_other_parser(line):
    assert numbers._parse_plain_block(Block(1, 2, f"1 2\n{line}\n".encode()), KINDS["edge list"]) is None


def test_the_first_error_of_a_file_counts_though_blocks_are_read_ahead(monkeypatch):
    chunks = [b"p edge 9 9\ne 1 2\n", b"e 3 4\ne 5 x\n", b"e 6 7\ne 7 8\n\0"]
    monkeypatch.setattr(TextSource, "chunks", lambda self: iter(chunks))
    monkeypatch.setattr(numbers, "COMPILED_BYTES", 0)
    with pytest.raises(InputError, match=r"^a.col:4: 'x' is not a number"):
        parse_graph("", "a.col")


def test_a_large_file_reads_as_its_edges():
    ends = np.random.default_rng(0).integers(5, 40_000, (120_000, 2))
    text = "# large\n" + "".join(f"{u} {v}\n" for u, v in ends.tolist())
    assert len(text) > numbers.COMPILED_BYTES
    with pytest.warns(GraphWarning, match=r"^a.txt: dropped .* self-loops and .* repeated edges"):
        graph = parse_graph(text, "a.txt")
    labels, nodes = np.unique(ends, return_inverse=True)
    expected = np.unique(np.sort(nodes.reshape(-1, 2), axis=1), axis=0)
    assert graph.labels == labels.tolist()
    assert np.array_equal(graph.edges, expected[expected[:, 0] != expected[:, 1]])
