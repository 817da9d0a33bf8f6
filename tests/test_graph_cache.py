"""Cached graphs: equal to fresh ones, never trusted when damaged, whole whatever happens to their writer."""

import threading
import warnings

import numpy as np
import pytest

from diffuco.foundation.errors import GraphWarning
from diffuco.graphs import cache, datasets
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.graph import Graph


@pytest.fixture(autouse=True)
def cache_path(tmp_path, monkeypatch):
    """A cache of this test's own that keeps every set, however small."""
    monkeypatch.setenv("DIFFUCO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "CACHED_FROM_EDGES", 0)
    return tmp_path / "cache"


def digests(graphs):
    return [graph.digest for graph in graphs]


@pytest.mark.parametrize("name", ["rb-tiny", "qubo-tiny"])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_cache_hit_equals_fresh_graphs(name, count, cache_path, monkeypatch):
    dataset = get_dataset(name)
    fresh = dataset.graphs("train", count, seed=3)
    assert [path.name for path in cache_path.iterdir()] == [f"{name}-train-seed3-count{count}-v1.graphs"]
    monkeypatch.setattr(datasets.Dataset, "generate", None)
    cached = dataset.graphs("train", count, seed=3)
    assert digests(cached) == digests(fresh)
    assert [repr(graph) for graph in cached] == [repr(graph) for graph in fresh]
    for graph in cached:
        assert graph.edges.dtype == np.int64


def test_small_sets_are_not_cached(cache_path, monkeypatch):
    monkeypatch.setattr(datasets, "CACHED_FROM_EDGES", 10_000)
    get_dataset("rb-tiny").graphs("test", 5)
    assert not cache_path.exists()


def test_another_generator_version_does_not_read_old_files(monkeypatch, cache_path):
    get_dataset("rb-tiny").graphs("test", 5)
    monkeypatch.setattr(datasets, "GENERATOR_VERSION", 2)
    get_dataset("rb-tiny").graphs("test", 5)
    assert len(list(cache_path.iterdir())) == 2


DAMAGES = {
    "empty": lambda content: b"",
    "truncated header": lambda content: content[:20],
    "no payload": lambda content: content[:49],
    "truncated": lambda content: content[:-1],
    "extended": lambda content: content + b"0",
    "other format": lambda content: content.replace(b"graphs 1", b"graphs 0", 1),
    "first byte": lambda content: flipped(content, 0),
    "checksum byte": lambda content: flipped(content, 30),
    "middle byte": lambda content: flipped(content, len(content) // 2),
    "last byte": lambda content: flipped(content, len(content) - 1),
}


def flipped(content, position):
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_reported_and_generated_again(damage, cache_path):
    dataset = get_dataset("rb-tiny")
    fresh = dataset.graphs("test", 10)
    (path,) = cache_path.iterdir()
    intact = path.read_bytes()
    path.write_bytes(DAMAGES[damage](intact))
    with pytest.warns(GraphWarning, match="is damaged"):
        again = dataset.graphs("test", 10)
    assert digests(again) == digests(fresh)
    assert path.read_bytes() == intact


def test_an_unusable_cache_directory_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("DIFFUCO_CACHE", str(tmp_path / "file"))
    assert len(get_dataset("rb-tiny").graphs("test", 5)) == 5
    (tmp_path / "directory" / "rb-tiny-test-seed0-count5-v1.graphs").mkdir(parents=True)
    monkeypatch.setenv("DIFFUCO_CACHE", str(tmp_path / "directory"))
    assert len(get_dataset("rb-tiny").graphs("test", 5)) == 5
    assert len(list((tmp_path / "directory").iterdir())) == 1


def test_a_writer_that_dies_leaves_the_old_file_and_no_rubbish(cache_path, monkeypatch):
    path = cache_path / "x.graphs"
    cache.write_graphs(path, [Graph.from_edges([(0, 1)])])

    def die(payload):
        raise KeyboardInterrupt

    monkeypatch.setattr(cache.hashlib, "sha256", die)
    with pytest.raises(KeyboardInterrupt):
        cache.write_graphs(path, [Graph.from_edges([(0, 2)])])
    monkeypatch.undo()
    assert [found.name for found in cache_path.iterdir()] == ["x.graphs"]
    assert cache.read_graphs(path)[0].edges.tolist() == [[0, 1]]


def test_left_over_temporary_files_are_ignored(cache_path):
    cache_path.mkdir()
    name = "rb-tiny-test-seed0-count5-v1.graphs"
    (cache_path / f"{name}.killed.unfinished").write_bytes(b"half a file")
    dataset = get_dataset("rb-tiny")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert digests(dataset.graphs("test", 5)) == digests(dataset.graphs("test", 5))
    assert (cache_path / name).exists()


def test_concurrent_writers_and_readers_see_whole_files(cache_path):
    path = cache_path / "x.graphs"
    sets = [[Graph.from_edges([(0, i)]) for i in range(1, 200)], [Graph.from_edges([(1, 3)])] * 7]
    allowed = [digests(graphs) for graphs in sets]
    cache.write_graphs(path, sets[0])
    seen = []

    def work(number):
        for _ in range(20):
            cache.write_graphs(path, sets[number % 2])
            seen.append(digests(cache.read_graphs(path)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(seen) == 80
    assert all(found in allowed for found in seen)
    assert [found.name for found in cache_path.iterdir()] == ["x.graphs"]


def test_cached_files_hold_large_node_numbers(cache_path):
    graph = Graph.from_edges([(0, 69_999), (5, 65_536)], num_nodes=70_000)
    cache.write_graphs(cache_path / "x.graphs", [graph, graph])
    assert digests(cache.read_graphs(cache_path / "x.graphs")) == [graph.digest] * 2


def test_cache_directory_is_the_users_unless_chosen(monkeypatch, tmp_path):
    monkeypatch.delenv("DIFFUCO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_directory() == tmp_path / "diffuco"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_directory() == tmp_path / ".cache" / "diffuco"
