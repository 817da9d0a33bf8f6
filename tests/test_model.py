import json
import time

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

import diffuco
import oracle
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import DenseBatch, SparseBatch
from diffuco.graphs.graph import Graph
from diffuco.inference.solver import complement
from diffuco.model import Gnn, GnnConfig, load_checkpoint, read_card, save_checkpoint
from diffuco.model.checkpoint import write_safetensors
from diffuco.model.engine.acceleration import MixedPrecisionDenoiser
from diffuco.model.gnn import GraphNorm
from diffuco.pretrained import load_model, save_model

CONFIG = GnnConfig(num_steps=3, num_layers=3, num_hidden=16, num_random_features=2)
WEIGHTED = GnnConfig(num_steps=3, num_layers=3, num_hidden=16, num_random_features=2, weighted=True)
NODE_WEIGHTED = GnnConfig(num_steps=3, num_layers=3, num_hidden=16, num_random_features=2, node_weighted=True)
SINGLE = {"rtol": 1e-5, "atol": 1e-6}
"""Weights are kept, and their scale is summed, in single precision: a network that reads them agrees to that alone."""
for_all_networks = pytest.mark.parametrize(
    "config", [CONFIG, WEIGHTED, NODE_WEIGHTED], ids=["plain", "weighted", "node-weighted"]
)
for_both_batches = pytest.mark.parametrize("batch_kind", [SparseBatch, DenseBatch])


def network(config: GnnConfig) -> Gnn:
    torch.manual_seed(0)
    model = Gnn(config).double()
    for parameter in model.parameters():  # norms start as the identity: make every parameter matter
        parameter.data += 0.1 * torch.randn(parameter.shape, dtype=torch.float64)
    return model


def inputs(num_rows: int, samples: int = 3, seed: int = 0):
    generator = oracle.seeded(seed)
    x = (torch.rand(num_rows, samples, generator=generator) < 0.5).double()
    features = torch.randn(num_rows, samples, 2, generator=generator).double()
    return x, torch.arange(1, samples + 1), features


@for_all_networks
@for_both_batches
def test_relabelling_nodes_relabels_logits(config, batch_kind):
    graph = oracle.small_graphs()[-1]
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    relabelled = Graph.from_edges(
        np.argsort(order)[graph.edges], edge_weights=graph.edge_weights, node_weights=graph.node_weights[order]
    )
    model = network(config)
    x, step, features = inputs(graph.num_nodes)
    before = model(batch_kind.from_graphs([graph]), x, step, features)
    after = model(batch_kind.from_graphs([relabelled]), x[order], step, features[order])
    assert_close(after, before[order], **(SINGLE if config.weighted else {}))


@for_all_networks
@for_both_batches
def test_logits_do_not_depend_on_padding_or_the_other_graphs(config, batch_kind):
    graphs = oracle.small_graphs()
    model = network(config)
    batch = batch_kind.from_graphs(graphs)
    x, step, features = inputs(batch.num_rows)
    together = batch.split(model(batch, x, step, features))
    for graph, rows, logits in zip(graphs, batch.split(torch.cat([x[..., None], features], 2)), together, strict=True):
        alone = model(batch_kind.from_graphs([graph]), rows[..., 0], step, rows[..., 1:])
        assert_close(logits, alone, **({} if config == CONFIG else SINGLE))


@for_all_networks
def test_dense_and_sparse_batches_give_the_same_logits_and_gradients(config):
    graphs = oracle.small_graphs()
    model = network(config)
    sparse, dense = SparseBatch.from_graphs(graphs), DenseBatch.from_graphs(graphs, pad_to=11)
    x, step, features = inputs(dense.num_rows)
    rows = torch.cat([torch.arange(s, s + n) for s, n in zip(dense.row_starts, dense.sizes, strict=True)])
    results = []
    for logits in (model(dense, x, step, features)[rows], model(sparse, x[rows], step, features[rows])):
        gradients = torch.autograd.grad(logits.square().sum(), tuple(model.parameters()))
        results.append((logits, *gradients))
    for one, other in zip(*results, strict=True):
        # A gradient is a sum over nodes and samples.
        assert_close(one, other, **(SINGLE | {"atol": 1e-5} if config.weighted else {}))


def test_graph_norm_normalises_each_graph_and_sample_alone():
    graphs = [graph for graph in oracle.small_graphs() if graph.num_nodes > 3]
    batch = SparseBatch.from_graphs(graphs)
    values = torch.randn(batch.num_rows, 2, 4, generator=oracle.seeded(0), dtype=torch.float64)
    normed = GraphNorm(4).double()(batch, values)
    for rows in batch.split(normed):
        assert_close(rows.mean(0), torch.zeros(2, 4, dtype=torch.float64))
        assert_close(rows.var(0, unbiased=False), torch.ones(2, 4, dtype=torch.float64), atol=1e-3, rtol=0)


def test_the_network_sees_state_step_and_random_features():
    batch = SparseBatch.from_graphs(oracle.small_graphs())
    model = network(CONFIG)
    x, step, features = inputs(batch.num_rows)
    logits = model(batch, x, step, features)
    for changed in ((1 - x, step, features), (x, step.flip(0), features), (x, step, features + 1)):
        assert (model(batch, *changed) - logits).abs().max() > 1e-3


def test_scaling_all_weights_leaves_a_weighted_network_unchanged():
    graph = oracle.small_graphs()[-1]
    scaled = Graph.from_edges(graph.edges, edge_weights=100 * graph.edge_weights, node_weights=100 * graph.node_weights)
    model = network(WEIGHTED)
    arguments = inputs(graph.num_nodes)
    one, other = (model(SparseBatch.from_graphs([g]), *arguments) for g in (graph, scaled))
    assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_network_for_sets_sees_relative_node_weights_and_nothing_of_edges():
    path = [(0, 1), (1, 2)]
    model, arguments = network(NODE_WEIGHTED), inputs(3)

    def logits(*graphs):
        batch = SparseBatch.from_graphs(graphs)
        return model(batch, *(inputs(batch.num_rows) if len(graphs) > 1 else arguments))

    plain = logits(Graph.from_edges(path))
    weighted = logits(Graph.from_edges(path, node_weights=[1, 2, 4]))
    assert (plain - weighted).abs().max() > 1e-3
    assert torch.equal(weighted, logits(Graph.from_edges(path, node_weights=[8, 16, 32], edge_weights=[5, -5])))
    # Nodes of graphs without weights weigh 1 like all others, next to weighted graphs too.
    assert torch.equal(plain, logits(Graph.from_edges(path, node_weights=[3, 3, 3])))
    mixed = logits(Graph.from_edges(path), Graph.from_edges(path, node_weights=[3, 1, 3]))
    ones = logits(Graph.from_edges(path, node_weights=[1, 1, 1]), Graph.from_edges(path, node_weights=[3, 1, 3]))
    assert torch.equal(mixed, ones)


def test_bfloat16_network_stays_close_to_the_reference():
    batch = DenseBatch.from_graphs(oracle.small_graphs()[3:])
    x, step, features = (value.float() if value.is_floating_point() else value for value in inputs(batch.num_rows))
    model = network(CONFIG).float()
    with torch.no_grad():
        expected = model(batch, x, step, features)
        fast = MixedPrecisionDenoiser(model, "cpu")
        got = fast(batch, x, step, features)
    assert got.dtype == torch.float32
    assert (got - expected).norm() / expected.norm() < 0.06


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, Gnn(CONFIG), problem="mis", card={"dataset": "rb-tiny"})
    return path


def test_checkpoint_round_trip(tmp_path, checkpoint):
    loaded = load_checkpoint(checkpoint)
    assert loaded.problem == "mis"
    assert loaded.model.config == CONFIG
    assert read_card(checkpoint)["dataset"] == "rb-tiny"
    again = tmp_path / "again.safetensors"
    save_checkpoint(again, loaded.model, problem="mis", card=loaded.card)
    assert again.read_bytes() == checkpoint.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".unfinished")] == []


def damage(path, kind):
    content = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(content[:-100])
    elif kind == "flipped byte":
        path.write_bytes(content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])
    elif kind == "random bytes":
        path.write_bytes(np.random.default_rng(0).bytes(500))
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "foreign":
        save_file(load_file(path), path)
    elif kind == "pickle":
        torch.save({"a": torch.ones(2)}, path)
    elif kind == "other shape":
        header = {"format": 1, "problem": "mis", "model": {"num_steps": 9}, "digest": "", "card": {}}
        save_file(load_file(path), path, metadata={"diffuco": json.dumps(header)})


@pytest.mark.parametrize(
    "kind", ["truncated", "flipped byte", "random bytes", "empty", "foreign", "pickle", "other shape"]
)
def test_damaged_checkpoints_are_refused(checkpoint, kind):
    damage(checkpoint, kind)
    with pytest.raises(InputError, match=r"model\.safetensors"):
        load_checkpoint(checkpoint)


HOSTILE = {
    "wide": {"model": {"num_steps": 3, "num_hidden": 10**9}},
    "rather wide": {"model": {"num_steps": 3, "num_hidden": 2**16}},
    "deep": {"model": {"num_steps": 3, "num_layers": 10**9}},
    "long": {"model": {"num_steps": 10**12}},
    "text for a number": {"model": {"num_steps": 3, "num_hidden": "x"}},
    "no steps": {"model": {}},
    "no model": {"model": None},
    "no card": {"card": None},
    "odd training": {"card": {"training": None}},
    "odd minutes": {"card": {"minutes": "x"}},
    "odd network": {"network": ["gnn"]},
    "odd problem": {"problem": 5},
    "odd digest": {"digest": 5},
    "odd format": {"format": [1]},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_headers_are_refused_before_they_are_believed(checkpoint, change):
    with safe_open(checkpoint, framework="pt") as file:
        header = json.loads(file.metadata()["diffuco"])
    save_file(load_file(checkpoint), checkpoint, metadata={"diffuco": json.dumps(header | change)})
    started = time.process_time()
    with pytest.raises(InputError, match=r"model\.safetensors: (not a diffuco checkpoint|the parameters do not fit)"):
        load_checkpoint(checkpoint)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("text", ["[" * 100_000, f'{{"format": {"1" * 5000}}}', "null", '"x"'], ids=range(4))
def test_headers_that_json_cannot_hold_are_refused(checkpoint, text):
    save_file(load_file(checkpoint), checkpoint, metadata={"diffuco": text})
    for read in (load_checkpoint, read_card):
        with pytest.raises(InputError, match=r"model\.safetensors: not a diffuco checkpoint"):
            read(checkpoint)


def test_a_model_for_an_unknown_problem_is_named(tmp_path):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, Gnn(CONFIG), problem="crowding", card={})
    with pytest.raises(InputError, match=r"model\.safetensors: the model is for 'crowding', which is no problem"):
        diffuco.evaluate([Graph.from_edges([(0, 1)])], model=path)


@for_all_networks
def test_the_complement_of_a_network_chooses_what_it_leaves_out(config):
    model = network(config).float()
    graph = Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], edge_weights=[1, 2, 3, 4], node_weights=[1, 2, 3, 4])
    batch = SparseBatch.from_graphs([graph])
    x, features = torch.randint(2, (4, 3)).float(), torch.randn(4, 3, model.num_random_features)
    with torch.no_grad():
        logits = model(batch, x, torch.tensor([1, 2, 3]), features)
        others = complement(model)(batch, 1 - x, torch.tensor([1, 2, 3]), features)
    assert_close(others, -logits, rtol=0, atol=1e-6)
    assert logits.std() > 0.01


def test_a_folder_holds_the_same_model(tmp_path, checkpoint):
    loaded = load_checkpoint(checkpoint)
    save_model(loaded, tmp_path / "shared" / "mine")
    assert sorted(path.name for path in (tmp_path / "shared/mine").iterdir()) == ["config.json", "model.safetensors"]
    again = load_model(tmp_path / "shared" / "mine")
    assert (again.problem, again.card, again.model.config) == (loaded.problem, loaded.card, loaded.model.config)
    assert again.name == str(tmp_path / "shared" / "mine")
    for name, value in loaded.model.state_dict().items():
        assert_close(again.model.state_dict()[name], value, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, "no readable config.json in this folder"),
        ("config.json", b"{", "not a diffuco checkpoint"),
        ("config.json", b"\xff\xfe{", "not a diffuco checkpoint"),
        ("config.json", b"[]", "not a diffuco checkpoint"),
        ("config.json", b'{"format": 99}', "has format 99, but"),
        ("model.safetensors", None, "no such file"),
        ("model.safetensors", b"other", "not a readable safetensors file"),
    ],
)
def test_damaged_folders_are_refused(tmp_path, checkpoint, file, content, message):
    save_model(load_checkpoint(checkpoint), tmp_path / "mine")
    if content is None:
        (tmp_path / "mine" / file).unlink()
    else:
        (tmp_path / "mine" / file).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "mine")


def test_a_folder_with_the_weights_of_another_model_is_refused(tmp_path, checkpoint):
    loaded = load_checkpoint(checkpoint)
    save_model(loaded, tmp_path / "mine")
    loaded.model.head[-1].bias.data += 1
    save_model(loaded, tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").replace(tmp_path / "mine" / "model.safetensors")
    with pytest.raises(InputError, match="do not match their digest"):
        load_model(tmp_path / "mine")


def test_missing_checkpoint_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load_checkpoint(tmp_path / "none.safetensors")


def test_a_run_folder_and_what_resumes_it_point_to_the_best_model(tmp_path, models):
    run_folder = tmp_path / "run"
    run_folder.mkdir()
    best = run_folder / "best.safetensors"
    best.write_bytes(models["mis"].read_bytes())
    write_safetensors(run_folder / "resume.safetensors", {}, {"diffuco-resume": "{}"})
    for given in (run_folder, run_folder / "resume.safetensors"):
        with pytest.raises(InputError, match=f"give {best}"):
            load_model(given)
    (run_folder / "config.json").write_text("{}")
    with pytest.raises(InputError, match=f"give {best}"):
        load_model(run_folder)
    best.write_bytes(b"")
    with pytest.raises(InputError, match="not a readable safetensors file"):
        load_model(best)


@pytest.mark.parametrize("path", ["runs/mine/best.safetensors", "mine.safetensors", "runs/mine"])
def test_a_path_where_nothing_is_is_not_taken_for_a_name(path):
    with pytest.raises(InputError, match=f"^{path}: no such file or folder; check the path$"):
        load_model(path)
