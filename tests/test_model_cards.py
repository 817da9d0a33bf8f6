"""The cards of shipped models: what people are told of them, the page made from them, and how a model is shipped."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diffuco import pretrained
from diffuco.foundation.errors import InputError
from diffuco.graphs.generate import ba_graph, er_graph
from diffuco.graphs.graph import Graph
from diffuco.methods import check_method, get_method
from diffuco.model import load_checkpoint, read_card
from diffuco.pretrained.cards import measured, trained_on, when_to_choose
from diffuco.pretrained.choice import choose_model, default_model, full_models, is_narrow, narrow_model
from diffuco.problems import get_problem
from diffuco.training.loop import train
from experiments import model_cards, ship_model
from experiments.paper.benchmarks import departures
from test_training import SHORT

ROOT = Path(__file__).parents[1]

RECORD = {
    "dataset": "rb-tiny", "split": "test", "model": "mis-short", "problem": "mis", "graphs": 5, "mean_edges": 90.0,
    "samples": 8, "steps": 6, "decode": "ce", "mean": 5.0, "best": 5.5, "hardware": "CPU", "commit": "abc",
    "reference": {"gap": 0.04, "gap_standard_error": 0.01, "gap_of_best": 0.02, "solver": "cp-sat", "proven": 5},
}  # fmt: skip


def test_page_of_models_is_up_to_date():
    page = model_cards.page(pretrained.list_models())
    assert page == model_cards.PAGE.read_text(), "run `python -m experiments.model_cards`"


def test_results_of_the_readme_are_up_to_date():
    (shown,) = model_cards.RESULTS.findall(model_cards.README.read_text())
    assert shown == model_cards.results(pretrained.list_models()), "run `python -m experiments.model_cards`"


def test_shipped_models_fit_into_the_package():
    sizes = [path.stat().st_size for path in pretrained.FOLDER.glob("*.safetensors")]
    assert sum(sizes) <= ship_model.BUDGET_BYTES


def test_a_fast_and_a_good_model_for_the_same_graphs_are_in_the_package():
    cards = pretrained.list_models()
    surpassed = {card["faster"] for card in cards}
    for card in cards:
        is_between = card["faster"] and card["name"] in surpassed
        folder = pretrained.FURTHER if card["baseline"] or is_between else pretrained.FOLDER
        assert pretrained.model_files()[card["name"]].parent == folder


def test_further_models_are_found_in_a_folder_that_is_named(finished_run, tmp_path, monkeypatch):
    monkeypatch.setenv("DIFFUCO_MODELS", str(tmp_path))
    with pytest.raises(InputError, match=r"'egn' needs its models; set DIFFUCO_MODELS to the folder `models`"):
        check_method(get_method("egn"), get_problem("mis"), None)
    with pytest.raises(InputError, match=r"unknown model 'mis-rb-small-egn'; did you mean 'mis-rb-small'\?$"):
        pretrained.load_model("mis-rb-small-egn")
    with monkeypatch.context() as patch:
        patch.delenv("DIFFUCO_MODELS")
        patch.setattr(pretrained, "FURTHER", tmp_path / "none")
        with pytest.raises(
            InputError,
            match=r"mis-rb-small'\?; for baselines and models of middle sizes, set DIFFUCO_MODELS to the folder",
        ):
            pretrained.load_model("mis-rb-small-egn")
    (tmp_path / "mine.safetensors").write_bytes((finished_run / "best.safetensors").read_bytes())
    assert pretrained.load_model("mine").problem == "mis"
    assert {"mine", "mis-rb-small"} <= {card["name"] for card in pretrained.list_models()}


def test_a_model_that_is_replaced_is_read_again(finished_run, monkeypatch, tmp_path):
    monkeypatch.setenv("DIFFUCO_MODELS", str(tmp_path))
    steps = []
    for name in ("best", "last"):
        (tmp_path / "mine.safetensors").write_bytes((finished_run / f"{name}.safetensors").read_bytes())
        steps += [card["step"] for card in pretrained.list_models() if card["name"] == "mine"]
    assert steps == [pretrained.read_card(finished_run / f"{name}.safetensors")["step"] for name in ("best", "last")]
    assert steps[0] != steps[1]


def test_a_model_that_is_not_there_is_told_in_one_line(run, monkeypatch, tmp_path):
    monkeypatch.setenv("DIFFUCO_MODELS", str(tmp_path))
    (tmp_path / "gone.safetensors").symlink_to(tmp_path / "nowhere")
    outcome = run("models")
    assert (outcome.code, len(outcome.errors)) == (2, 1)
    assert "gone.safetensors: no such file" in outcome.err


@pytest.mark.parametrize("card", pretrained.list_models(), ids=lambda card: card["name"])
def test_evaluations_in_cards_are_those_in_the_repository(card):
    for kept in card.get("evaluations", []):
        record = json.loads((ROOT / kept["file"]).read_text())
        assert (kept["mean"], kept["graphs"]) == (record["mean"], record["graphs"])
        assert kept.get("gap") == record.get("reference", {}).get("gap")


@pytest.mark.parametrize("run", sorted((ROOT / "experiments" / "seeds").iterdir()), ids=lambda run: run.name)
def test_kept_seeds_are_those_that_were_measured(run):
    recipe, _, seed = run.name.rpartition("-seed")
    kept = load_checkpoint(run / "best.safetensors")
    record = json.loads((ROOT / "experiments" / "results" / f"evaluate-{run.name}.json").read_text())
    assert record["weights"] == kept.digest
    assert kept.card["training"]["seed"] == int(seed)
    assert departures(recipe, kept.card) == {}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "mis-short"
    train(SHORT, folder, progress=False)
    return folder


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Path:
    """An empty folder of shipped models, and records that may lie anywhere."""
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    monkeypatch.setattr(pretrained, "FURTHER", tmp_path / "further")
    monkeypatch.setattr(model_cards, "PAGE", tmp_path / "models.md")
    monkeypatch.setattr(model_cards, "README", tmp_path / "README.md")
    (tmp_path / "README.md").touch()
    monkeypatch.setattr(ship_model, "ROOT", tmp_path)
    return tmp_path


def write_record(path: Path, **changes: object) -> Path:
    path.write_text(json.dumps(RECORD | changes))
    return path


def test_a_finished_run_is_shipped_with_curve_and_gap(finished_run, shop, capsys):
    digest = load_checkpoint(finished_run / "best.safetensors").digest
    record = write_record(shop / "scores.json", weights=digest)
    ship_model.main([str(finished_run), "--evaluation", str(record), "--round-percent", "40"])
    assert "1 models there, 0.0 of 20 MB" in capsys.readouterr().out
    (card,) = pretrained.list_models()
    assert pretrained.load_model("mis-short").digest == digest
    assert [step for step, _ in card["curve"]] == [2, 4, 6, 8, 9]
    assert card["graphs"]["count"] == SHORT.num_train_graphs
    assert card["evaluations"][0]["file"] == "scores.json"
    assert card["round_percent"] == 40
    page = (shop / "models.md").read_text()
    assert "| 4.00 % ± 1.00 % | 2.00 % |" in page
    assert "best at step" in page


def test_gaps_of_several_seeds_are_averaged(finished_run, shop):
    records = [
        write_record(shop / f"{seed}.json", reference=RECORD["reference"] | {"gap": gap})
        for seed, gap in enumerate((0.02, 0.03, 0.04))
    ]
    found = measured(read_card(ship_model.ship(finished_run, "mis-short", records)))
    assert found is not None
    assert (found.num_seeds, found.value, found.error) == (3, pytest.approx(0.03), pytest.approx(0.01 / 3**0.5))


def test_seeds_are_measured_alike(finished_run, shop):
    records = [write_record(shop / "one.json"), write_record(shop / "two.json", dataset="rb-small")]
    with pytest.raises(InputError, match="another dataset"):
        ship_model.ship(finished_run, "mis-short", records)


def test_a_shipped_file_gets_a_new_evaluation_and_keeps_the_rest(finished_run, shop):
    path = ship_model.ship(finished_run, "mis-short", [])
    before = read_card(path)
    assert measured(before) is None
    after = read_card(ship_model.ship(path, "mis-short", [write_record(shop / "later.json")]))
    assert {name: after[name] for name in before} == before
    assert measured(after) is not None


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"problem": "mvc"}, "measured on mvc"),
        ({"weights": "0" * 64}, "other weights"),
        ({"sweeps": 30}, "measured with refinement"),
        ({"model": "another"}, "other weights"),
    ],
)
def test_records_of_something_else_are_refused(finished_run, shop, changes, complaint):
    record = write_record(shop / "wrong.json", **changes)
    with pytest.raises(SystemExit, match=complaint):
        ship_model.main([str(finished_run), "--evaluation", str(record)])
    assert not pretrained.list_models()


def test_records_outside_of_the_repository_and_missing_ones_are_refused(finished_run, shop, monkeypatch):
    record = write_record(shop / "scores.json")
    with pytest.raises(SystemExit, match=r"none\.json"):
        ship_model.main([str(finished_run), "--evaluation", str(shop / "none.json")])
    monkeypatch.setattr(ship_model, "ROOT", shop / "repository")
    with pytest.raises(SystemExit, match="not in the repository"):
        ship_model.main([str(finished_run), "--evaluation", str(record)])


def test_models_that_outgrow_the_package_are_refused(finished_run, shop, monkeypatch):
    monkeypatch.setattr(ship_model, "BUDGET_BYTES", 1000)
    with pytest.raises(SystemExit, match="MB"):
        ship_model.main([str(finished_run)])


def test_a_configuration_of_another_run_is_refused(finished_run, shop, tmp_path):
    other = tmp_path / "mixed"
    other.mkdir()
    for name in ("best.safetensors", "last.safetensors", "log.jsonl"):
        (other / name).write_bytes((finished_run / name).read_bytes())
    (other / "config.json").write_text(json.dumps(replace(SHORT, seed=7).__dict__))
    with pytest.raises(SystemExit, match=r"config\.json"):
        ship_model.main([str(other)])


def test_cards_say_when_to_choose_a_model():
    graphs = {"count": 9, "nodes": [20, 30.0, 42], "density": [0.1, 0.2, 0.3], "mean_degree": 5.0}
    shape = {"num_steps": 4, "weighted": False}
    card = {"problem": "mis", "dataset": "rb-tiny", "graphs": graphs, "model": shape}
    card |= {"baseline": None, "faster": None}
    assert when_to_choose(card) == "about 20 to 42 nodes, density 0.1 to 0.3"
    assert when_to_choose(card | {"model": shape | {"weighted": True}}).endswith("with weights")
    assert "baseline" in when_to_choose(card | {"baseline": "egn"})
    grown = when_to_choose(card | {"faster": "small"})
    assert grown.startswith("the graphs of small, where better samples are worth the time of 4 steps")
    assert trained_on(card).startswith("RB graphs of 20 to 42 nodes")
    assert trained_on(card | {"dataset": "proteins"}) == "proteins: 9 graphs"


def test_cuts_without_reference_are_told_as_a_share_of_the_edges():
    record = {"mean": 60.0, "best": 66.0, "mean_edges": 100.0}
    assert str(measured({"problem": "max-cut", "evaluations": [record]})) == "cuts 0.6000 of the edges"
    assert measured({"problem": "mis", "evaluations": [record]}) is None


def test_sparkline_is_as_short_as_asked():
    assert len(model_cards.sparkline([float(value) for value in range(500)], 30)) == 30
    assert model_cards.sparkline([1.0]) == "▁"


def card_of(name: str, nodes: list[float], density: list[float], num_steps: int = 4) -> dict:
    graphs = {"count": 9, "nodes": nodes, "density": density, "mean_degree": 5.0}
    return {"name": name, "problem": "max-cut", "graphs": graphs, "model": {"num_steps": num_steps, "weighted": False}}


def ship(monkeypatch, cards: list[dict]) -> None:
    """Let these be the cards of all models there are."""
    monkeypatch.setattr(pretrained, "model_files", lambda: {card["name"]: card["name"] for card in cards})
    monkeypatch.setattr(pretrained, "_card", {card["name"]: card for card in cards}.get)


def test_cards_tell_baselines_and_the_next_faster_model(monkeypatch):
    def shipped(name: str, num_steps: int, dataset: str = "ba-small", **training) -> dict:
        card = card_of(name, [200, 250, 300], [0.02, 0.03, 0.04], num_steps)
        return card | {"dataset": dataset, "training": training}

    cards = [
        shipped("small-16", 16),
        shipped("small", 4, start_temperature=1.0),
        shipped("small-8", 8),
        shipped("other", 8, "ba-large"),
        shipped("one", 1, start_temperature=0.0),
        shipped("one-annealed", 1, start_temperature=1.0),
        card_of("unknown", [200, 250, 300], [0.02, 0.03, 0.04]),
    ]
    ship(monkeypatch, cards)
    told = {card["name"]: (card["baseline"], card["faster"]) for card in pretrained.list_models()}
    assert told == {
        "small-16": (None, "small-8"),
        "small": (None, None),
        "small-8": (None, "small"),
        "other": (None, None),
        "one": ("egn", None),
        "one-annealed": ("egn-anneal", None),
        "unknown": (None, None),
    }
    assert choose_model("max-cut", baseline="egn").name == "one"
    assert choose_model("max-cut", baseline="egn-anneal").name == "one-annealed"


def test_the_model_of_the_most_similar_graphs_is_chosen(monkeypatch):
    cards = [
        card_of("small-8", [200, 250, 300], [0.02, 0.03, 0.04], num_steps=8) | {"dataset": "ba-small"},
        card_of("large", [800, 1000, 1200], [0.006, 0.008, 0.01]),
        card_of("random", [200, 350, 500], [0.05, 0.15, 0.3]),
        card_of("small", [200, 250, 300], [0.02, 0.03, 0.04]) | {"dataset": "ba-small"},
        card_of("baseline", [200, 250, 300], [0.02, 0.03, 0.04], num_steps=1),
    ]
    ship(monkeypatch, cards)
    rng = np.random.default_rng(0)
    assert choose_model("max-cut", [ba_graph(260, 4, rng)]).name == "small"
    assert choose_model("max-cut", [ba_graph(5000, 4, rng)]).name == "large"
    assert choose_model("max-cut", [er_graph(800, 0.06, rng)]).name == "random"
    assert choose_model("max-cut").name == default_model("max-cut") == "small"
    assert "260 nodes" in choose_model("max-cut", [ba_graph(260, 4, rng)]).reason
    assert choose_model("max-cut", [Graph.from_edges([], 3)]).name == "small"
    with pytest.raises(InputError, match="no shipped model solves 'mis'"):
        choose_model("mis")


def test_a_model_for_weights_is_chosen_for_weights_only():
    plain = ba_graph(150, 2, np.random.default_rng(0))
    weighted = Graph.from_edges(plain.edges, 150, edge_weights=np.arange(plain.num_edges) - 100.0)
    assert choose_model("max-cut", [plain]).name == "max-cut-sparse"
    assert choose_model("max-cut", [weighted]).name == "max-cut-sparse-weighted"
    assert choose_model("max-cut", [plain, weighted]).name == "max-cut-sparse-weighted"
    assert full_models("max-cut", plain) == ["max-cut-sparse-48", "max-cut-ba-small-48"]
    assert full_models("max-cut", weighted) == ["max-cut-sparse-weighted-24"]


def test_narrow_models_are_chosen_on_a_cpu_only():
    hubs, none = ba_graph(3000, 4, np.random.default_rng(0)), er_graph(3000, 8 / 3000, np.random.default_rng(0))
    cards = {card["name"]: card for card in pretrained.list_models()}
    narrow = [name for name, card in cards.items() if is_narrow(card)]
    assert narrow == ["max-cut-hubs", "max-cut-hubs-24"]
    assert {when_to_choose(cards[name]) for name in narrow} == {"large graphs like those, on a CPU"}
    assert not set(full_models("max-cut", hubs)) & set(narrow)
    assert choose_model("max-cut", [hubs]).name not in narrow
    chosen = [narrow_model("max-cut", graph) for graph in (hubs, none, ba_graph(3000, 6, np.random.default_rng(0)))]
    assert chosen == ["max-cut-hubs-24", None, None]


def test_models_of_a_large_graph_are_tried_in_order_of_promise():
    hubs, none = ba_graph(3000, 4, np.random.default_rng(0)), er_graph(3000, 8 / 3000, np.random.default_rng(0))
    assert full_models("max-cut", hubs)[0] == "max-cut-ba-small-48"
    assert full_models("max-cut", none)[0] == "max-cut-sparse-48"
    for graph in (hubs, none):
        assert full_models("mds", graph)[0] == "mds-sparse-48"  # where a model that fails would cost most
        assert full_models("mis", graph)[0] == "mis-sparse-48"  # the others have seen denser graphs only


def test_a_large_graph_is_not_given_to_a_model_whose_graphs_are_unknown(monkeypatch):
    known, unknown = (card_of(name, [200, 250, 300], [0.02, 0.03, 0.04]) for name in ("known", "unknown"))
    del unknown["graphs"]
    ship(monkeypatch, [unknown, known])
    assert full_models("max-cut", ba_graph(3000, 3, np.random.default_rng(0))) == ["known"]
