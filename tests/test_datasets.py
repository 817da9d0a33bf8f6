"""Named datasets: fixed for ever, pure functions of their index."""

import numpy as np
import pytest

from diffuco.foundation.errors import InputError
from diffuco.graphs import datasets
from diffuco.graphs.datasets import DATASETS, get_dataset

GOLDEN = {
    "rb-tiny": "862cc647 a27c63e8 818df667 cc8c8ba1 915cea5a ad1ace98 6bddc7ef ce291a57 a3f66349",
    "rb-100": "1e24b721 33b3fb24 43cf7a9b b244c617 d3a58029 563dad04 31976458 df1798f9 c6df2232",
    "rb-200": "984d8672 29cabe51 011704f6 7b24de1b 434ad33d 651b0b0a 75e93a5a c51c7a3b 672e2520",
    "rb-small": "e17fc342 67f08d57 876568d1 3d94a02f f73d2fd5 7c8bbe67 19c460ee 529d916a fec7b4bf",
    "rb-large": "1a0a3cd8 25f54606 ea0ed658 7d08a8f4 fa8d5bb9 91bba9ca 6cbb1551 2e58ca98 0e7b0386",
    "ba-tiny": "6fdebfbd a964d84a e55fb883 8ef01cf8 892b06cb 17e3215c 2c73daa4 f9d15a97 2965d50d",
    "ba-small": "ee79de45 08a8d992 c46824d1 f5e7bcc1 f9e2f4bb 76f6730d d174ef30 ae2cb9bb 811024ec",
    "ba-large": "7a670615 21b75cc9 fa6a935c f5e25258 83a754f9 f67c5490 e93e8dd4 71ca6799 53bb2619",
    "ba-huge": "f1dd29ef 73b9c871 a2482e10 868bba64 30c9a300 c8391a87 d56dc41e 75f4cbdb abfef23c",
    "ba-giant": "b42ce5bc 27cf5871 0c14c790 503888f4 cddafe76 f2a80e79 3adc7598 2a0509fc f1a36662",
    "er-200-500": "2ba53483 b6b734f6 82e9c43a 8122c0e9 9b1a245a 26d300eb c2109ef8 6842089e 99e46cf4",
    "mixed-200-500": "0d70ec93 1b26209a 7cb0af33 dd8940d2 1b672d92 09b35484 3ab60241 c856f9ca 1db2b298",
    "sparse": "97317ea6 4df090b7 5ddc0886 a63ccf5e 410251b2 3755b1eb dcd3c38c 41f8bff5 2607bc0e",
    "hubs": "deca55b8 22585e63 9b3459bb ecd98aed 7457fbfb 0e303b55 8e5c1e93 8a10b698 b0b9cda2",
    "sparse-weighted": "a26a2664 7bf209d0 6b165617 2fd9a44f f8b31869 70c9c922 6d2c292d 9206b5d1 a838208c",
    "qubo-tiny": "247343d7 e23ff76b 439a0713 98c1a1b4 e8edfebd 7f2772ea 5da3b5c3 1ca92bee 44616a77",
    "qubo-50-150": "f76f1cd7 2f3bfffa 9764e1c2 7f181901 ff4c2d2c dff4926a febde71a 57f662a2 6d352dca",
}
"""Digests of the first three graphs of training, validation and test set."""

NODE_RANGES = {
    "rb-tiny": (20, 42),
    "rb-100": (72, 140),
    "rb-200": (180, 216),
    "rb-small": (200, 300),
    "rb-large": (800, 1200),
    "ba-tiny": (20, 40),
    "ba-small": (200, 300),
    "ba-large": (800, 1200),
    "ba-huge": (1200, 1800),
    "ba-giant": (2000, 3000),
    "er-200-500": (200, 500),
    "mixed-200-500": (200, 500),
    "sparse": (100, 1000),
    "hubs": (100, 1000),
    "sparse-weighted": (100, 1000),
    "qubo-tiny": (8, 20),
    "qubo-50-150": (50, 150),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DIFFUCO_CACHE", str(tmp_path))


@pytest.mark.parametrize("name", DATASETS)
def test_graphs_never_change(name):
    dataset = get_dataset(name)
    found = [dataset.graph(split, index).digest[:8] for split in dataset.sizes for index in range(3)]
    assert found == GOLDEN[name].split(), "if this change is intended, raise GENERATOR_VERSION with the digests"


@pytest.mark.parametrize("name", DATASETS)
def test_numbers_of_nodes_are_in_the_stated_range(name):
    low, high = NODE_RANGES[name]
    sizes = [graph.num_nodes for graph in get_dataset(name).generate("validation", 60)]
    assert low <= min(sizes) < max(sizes) <= high


@pytest.mark.parametrize("name", DATASETS)
def test_parameters_are_those_the_graph_was_made_with(name):
    dataset = get_dataset(name)
    parameters = dataset.parameters("train", 7)
    assert list(parameters) == list(dataset.ranges)
    for key, (low, high) in dataset.ranges.items():
        assert low <= parameters[key] <= high
        assert type(parameters[key]) is type(low)
    if "size" not in parameters:
        num_nodes = parameters.get("num_nodes") or parameters["num_cliques"] * parameters["clique_size"]
        assert dataset.graph("train", 7).num_nodes == num_nodes


def test_rb_200_test_set_has_100_graphs_for_each_of_ten_tightnesses():
    dataset = get_dataset("rb-200")
    assert dataset.sizes == {"train": 2000, "validation": 500, "test": 1000}
    tightness = [dataset.parameters("test", index)["tightness"] for index in range(1000)]
    assert tightness == np.repeat(np.linspace(0.25, 1, 10), 100).tolist()
    separate = dataset.graph("test", 950)
    assert separate.num_edges == separate.num_nodes * 8 // 2
    assert len({dataset.parameters("train", index)["tightness"] for index in range(50)}) == 50


@pytest.mark.parametrize("name", ["rb-tiny", "ba-tiny", "qubo-tiny", "rb-large"])
@pytest.mark.parametrize("workers", [None, 1, 3])
def test_a_graph_depends_on_its_index_alone(name, workers):
    dataset = get_dataset(name)
    graphs = list(dataset.generate("test", 40, workers=workers))
    assert [graph.name for graph in graphs] == [f"{name}/test/{index}" for index in range(40)]
    for index in (0, 5, 33, 39):
        assert dataset.graph("test", index).digest == graphs[index].digest


def test_splits_seeds_and_indices_give_different_graphs():
    dataset = get_dataset("ba-small")
    different = [
        dataset.graph(split, i, seed).digest for split in dataset.sizes for i in range(4) for seed in range(-1, 2)
    ]
    assert len(set(different)) == len(different)


def test_lookup_ignores_case_and_suggests_near_names():
    assert get_dataset("RB-Small") is DATASETS["rb-small"]
    with pytest.raises(InputError, match=r"did you mean rb-small.*The datasets are rb-tiny, rb-100"):
        get_dataset("rb-smal")
    with pytest.raises(InputError, match=r"no dataset 'x'\. The datasets are"):
        get_dataset("x")


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (
            lambda dataset: dataset.graphs("test", 501),
            "501 graphs requested from rb-tiny/test; it has 500, use another",
        ),
        (lambda dataset: dataset.graphs("test", -1), "-1 graphs"),
        (lambda dataset: dataset.graph("test", 500), "no graph 500 in rb-tiny/test; it has 500"),
        (lambda dataset: dataset.graph("test", -1), "no graph -1"),
        (lambda dataset: dataset.parameters("dev", 0), "no split 'dev' in rb-tiny; the splits are train, validation"),
    ],
)
def test_what_is_not_there_is_an_input_error(ask, complaint):
    with pytest.raises(InputError, match=complaint):
        ask(get_dataset("rb-tiny"))


def test_progress_is_a_bar_on_standard_error_only(capsys, monkeypatch):
    monkeypatch.setattr(datasets, "PROGRESS_AFTER_S", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    graphs = get_dataset("rb-tiny").graphs("test", 20, progress=True)
    output = capsys.readouterr()
    assert len(graphs) == 20
    assert output.out == ""
    assert "rb-tiny/test" in output.err


@pytest.mark.parametrize(("terminal", "after_s"), [("1", 60.0), ("", 0.0)])
def test_fast_sets_and_redirected_output_show_no_progress(terminal, after_s, capsys, monkeypatch):
    monkeypatch.setattr(datasets, "PROGRESS_AFTER_S", after_s)
    monkeypatch.setenv("FORCE_COLOR", terminal)
    monkeypatch.setenv("TERM", "xterm")
    get_dataset("rb-tiny").graphs("test", 20, progress=True)
    assert capsys.readouterr().err == ""


def maximum_independent_set_size(graph):
    cp_model = pytest.importorskip("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in range(graph.num_nodes)]
    for u, v in graph.edges.tolist():
        model.add_bool_or(~chosen[u], ~chosen[v])
    model.maximize(sum(chosen))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 8
    assert solver.solve(model) == cp_model.OPTIMAL
    return solver.objective_value


def minimum_dominating_set_size(graph):
    cp_model = pytest.importorskip("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in range(graph.num_nodes)]
    indptr, indices, _ = graph.csr
    for node in range(graph.num_nodes):
        neighbors = indices[indptr[node] : indptr[node + 1]].tolist()
        model.add_bool_or([chosen[i] for i in [node, *neighbors]])
    model.minimize(sum(chosen))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2
    assert solver.solve(model) == cp_model.OPTIMAL
    return solver.objective_value


def mean_and_error(values):
    return np.mean(values), np.std(values, ddof=1) / len(values) ** 0.5


def test_rb_small_independent_sets_are_about_as_large_as_the_benchmarks():
    mean, _ = mean_and_error([maximum_independent_set_size(g) for g in get_dataset("rb-small").generate("test", 12)])
    assert 18.5 < mean < 21.7


@pytest.mark.slow
def test_rb_small_mean_independent_set_is_the_benchmarks():
    mean, error = mean_and_error([maximum_independent_set_size(g) for g in get_dataset("rb-small").generate("test")])
    print(f"mean MIS of 500 RB-small test graphs: {mean:.3f} +- {error:.3f}")
    assert abs(mean - 20.10) < 3 * np.hypot(error, 0.07)


@pytest.mark.slow
def test_ba_small_mean_dominating_set_is_the_benchmarks():
    mean, error = mean_and_error([minimum_dominating_set_size(g) for g in get_dataset("ba-small").generate("test", 50)])
    print(f"mean MDS of 50 BA-small test graphs: {mean:.3f} +- {error:.3f}")
    assert abs(mean - 27.9) < 3 * error
