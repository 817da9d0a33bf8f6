"""The paper's tables and figures on tiny graphs: rows, records, pages, figures and what is missing."""

import itertools
import json
import re
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import experiments.reproduce
from diffuco.foundation.errors import InputError
from diffuco.graphs.datasets import Dataset, get_dataset
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import rb_graph
from diffuco.inference.solver import Solver
from diffuco.model import Gnn, GnnConfig, save_checkpoint
from diffuco.pretrained import load_model
from diffuco.problems import get_problem
from diffuco.training.recipes import RECIPES
from experiments.paper import ablations, curves, gset, rendering, workspace
from experiments.paper.ablations import AblationRun
from experiments.paper.benchmarks import TABLE_1, TABLE_3, TABLE_6, Benchmark, departures, table_tasks
from experiments.paper.items import ITEMS
from experiments.paper.measurement import Measurement, measure_model, summary
from experiments.paper.n_query import query_tasks
from experiments.paper.records import Row, Task, read_rows, run_tasks
from experiments.paper.reported import CE, N_QUERY, RAW, Reported
from experiments.paper.reproduction import measure, show, unfinished_runs
from experiments.paper.workspace import Options, Workspace
from experiments.reproduce import main

TINY = Benchmark(
    name="MIS tiny",
    problem="mis",
    dataset="rb-tiny",
    recipe="mis-tiny",
    reported=(
        Reported("Gurobi", "OR", 5.0, time="8:20"),
        Reported("Elsewhere", "SL", 4.5),
        Reported(CE, "UL", 4.8, 0.1),
    ),
    quick_count=3,
    methods=("greedy",),
)


@pytest.fixture
def run(run_program):
    """Run `python -m experiments.reproduce ARGUMENTS...` in this process."""
    return partial(run_program, main)


@pytest.fixture
def runs(tmp_path) -> Path:
    """A folder with two seeds of an untrained model of `mis-tiny` and other models that must not be taken for it."""
    for seed, name in enumerate(("mis-tiny", "mis-tiny-seed1", "mis-tiny-egn", "mis-tiny-old")):
        save_untrained(tmp_path / "runs" / name / "best.safetensors", "mis", seed)
    return tmp_path / "runs"


def save_untrained(path: Path, problem: str, seed: int = 0) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Gnn(GnnConfig(num_steps=2, num_layers=2, num_hidden=8))
    save_checkpoint(path, model, problem=problem, card={"minutes": 2.0})


def quick(runs: Path, **changes) -> Workspace:
    return Workspace(replace(Options(quick=True, models=runs, device="cpu"), **changes))


def measured(tasks: list[Task]) -> dict[str, dict]:
    *_, (_, rows) = run_tasks(tasks, [], wanted=lambda task, row: True, command="test", device="cpu")
    return {row["key"]: row for row in rows}


# Measurement


def test_samples_of_a_model_are_measured_one_after_the_other(runs):
    solver = Solver("mis", runs / "mis-tiny/best.safetensors", device="cpu")
    graphs = get_dataset("rb-tiny").graphs("test", 3)
    run = measure_model(solver, graphs, samples=3)
    again = measure_model(solver, graphs, samples=2)
    assert run.energies.shape == (3, 3)
    assert np.array_equal(run.energies[:, :2], again.energies)
    assert run.seconds > 0
    drawn = measure_model(solver, graphs, samples=3, token_size=0)
    assert drawn.energies.mean() > run.energies.mean()  # not decoded


def test_errors_are_over_seeds_where_there_are_several_and_gaps_only_where_references_are():
    problem, graphs = get_problem("mis"), get_dataset("rb-tiny").graphs("test", 2)
    known = Workspace(Options()).references("mis", "rb-tiny", 2)
    best = known[0].objective
    runs = [Measurement(np.array([[-best, 1 - best], [-3.0, -3.0]]), 4.0), Measurement(np.full((2, 2), -best), 2.0)]
    one = summary(problem, graphs, [known[0], None], runs[:1])
    assert one["gap"] == pytest.approx(0.5 / best)
    assert (one["gap_of_best"], one["referenced"], one["error_over"]) == (0.0, 1, "graphs")
    both = summary(problem, graphs, [known[0], None], runs)
    assert both["gap"] == pytest.approx(0.25 / best)
    assert (both["error_over"], both["seeds"], both["seconds_per_graph"]) == ("seeds", 2, 1.5)
    assert "gap" not in summary(problem, graphs, [None, None], runs)
    unproven = known[0]._replace(objective=best - 1, proven=False)
    beaten = summary(problem, graphs, [unproven, None], runs[1:])
    assert beaten["gap"] == pytest.approx(-1 / (best - 1))
    assert beaten["proven"] == 0


# Tables


def test_table_has_our_rows_and_the_reported_ones(runs):
    rows = measured(table_tasks((TINY,))(quick(runs)))
    ours = rows["MIS tiny | DiffUCO: CE"]["ours"]
    assert ours["models"] == ["mis-tiny", "mis-tiny-seed1"]
    assert (ours["seeds"], ours["graphs"], ours["samples"], ours["steps"]) == (2, 3, 2, 6)
    assert rows["MIS tiny | DiffUCO: CE"]["paper"]["gap"] == pytest.approx(0.04)
    assert rows["MIS tiny | Gurobi"]["paper"]["seconds_per_graph"] == 1.0
    assert rows["MIS tiny | Reference"]["ours"]["proven"] == 3
    assert rows["MIS tiny | Greedy"]["ours"]["gap"] >= 0
    assert "CPU" in rows["MIS tiny | Greedy"]["origin"]["hardware"]
    assert rows["MIS tiny | Reference"]["origin"]["hardware"] == "stored references"
    assert rows["MIS tiny | EGN: CE"]["ours"]["steps"] == 2  # one time the steps, where DiffUCO takes three
    assert "no recipe" in rows["MIS tiny | EGN-Anneal: CE"]["missing"]
    assert "ours" not in rows["MIS tiny | Elsewhere"]
    text = rendering.benchmark_table(list(rows.values()))
    assert "| Elsewhere (r) | SL | 4.50 | 10.00 % |" in text
    assert "| Gurobi (r) |" in text
    assert "| DiffUCO: CE | UL | 4.80 ± 0.10 | 4.00 % |" in text
    assert "- a: " in text


def test_missing_models_name_the_recipe_that_trains_them(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace, "list_models", list)
    rows = measured([task for task in table_tasks(TABLE_1)(quick(tmp_path)) if task.key == f"MIS RB-large | {RAW}"])
    assert "diffuco train mis-rb-large" in rows[f"MIS RB-large | {RAW}"]["missing"]


def test_given_runs_come_before_shipped_models_and_those_before_other_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mis-rb-small", "mis-rb-small-seed1"):
        save_untrained(tmp_path / "runs" / name / "best.safetensors", "mis")
    seed = Path("runs/mis-rb-small-seed1/best.safetensors")
    assert Workspace(Options()).model_paths("mis-rb-small") == ["mis-rb-small", seed]
    given = Workspace(Options(models=Path("runs")))
    assert given.model_paths("mis-rb-small") == [Path("runs/mis-rb-small/best.safetensors"), seed]


def test_every_benchmark_has_its_recipes_and_the_papers_row():
    for benchmark in (*TABLE_1, *TABLE_3, *TABLE_6):
        assert benchmark.recipe in RECIPES
        assert RECIPES[benchmark.recipe]().problem == benchmark.problem
        assert get_dataset(benchmark.dataset)
        assert {line.method for line in benchmark.reported} >= set(benchmark.variants)
    for benchmark in (*TABLE_1, *TABLE_3):
        assert {f"{benchmark.recipe}-egn", f"{benchmark.recipe}-egn-anneal"} <= RECIPES.keys()
        assert RECIPES[benchmark.recipe]().dataset == benchmark.dataset
        assert benchmark.name in N_QUERY
        for label, other in benchmark.others:
            config = RECIPES[other]()
            dataset = "ba-small" if label.endswith("from BA-small") else benchmark.dataset
            assert (config.problem, config.dataset) == (benchmark.problem, dataset)
            assert not label.endswith("steps") or label == f"{config.num_steps} steps"
    assert {recipe for recipe, _ in curves.RATIO_MODELS.values()} | set(gset.MODELS.values()) <= RECIPES.keys()


def test_a_row_names_what_departs_from_its_recipe():
    faithful = asdict(RECIPES["mis-rb-small-paper"]())
    assert departures("mis-rb-small-paper", {"training": faithful | {"seed": 2}}) == {}
    changed = departures("mis-rb-small-paper", {"training": faithful | {"anneal_epochs": 200}})
    assert changed == {"anneal_epochs": 200}
    ours = {"mean": 19.0, "error": 0.1, "graphs": 500, "samples": 8, "seeds": 1, "models": ["m"], "changed": changed}
    row = {"benchmark": "MIS", "method": "DiffUCO, the paper's recipe", "kind": "UL", "ours": ours}
    assert "| 500 x 8, 1, anneal_epochs = 200 |" in rendering.benchmark_table([row])


def test_a_row_of_weights_that_ship_no_longer_says_so():
    origin = {"hardware": "h", "torch": "t", "date": "d", "commit": "c", "command": "diffuco"}
    now = load_model("mis-rb-small").digest
    for weights, is_said in (([now], False), (["0" * 64], True), ([now, "0" * 64], False)):
        models = ["mis-rb-small", "mis-rb-small-seed1"][: len(weights)]
        row = {"benchmark": "b", "paper": {}, "ours": {"models": models, "weights": weights, "training_minutes": 1}}
        text = rendering.query_table([row | {"origin": origin}])
        assert ("ship with other weights" in text) == is_said


def test_methods_are_those_asked_for_that_solve_the_problem(runs):
    tasks = table_tasks((TINY,))(quick(runs, methods=("sdp", "rlsa")))
    assert [task.about["method"] for task in tasks if task.about["kind"] == "H"] == ["rlsa"]


def test_queries_need_the_time_of_training(runs):
    row = measured(query_tasks(quick(runs), (TINY,)))["MIS tiny"]
    assert row["ours"]["training_minutes"] == 2.0
    assert row["ours"]["n_query_gurobi"] > 60  # less than a second is saved with a graph, training took 120
    assert "| MIS tiny |" in rendering.query_table([row])


# Figures


def test_ratios_by_tightness(runs, monkeypatch):
    tiny = Dataset(
        "rb-by-p",
        "as rb-200, smaller",
        rb_graph,
        {"num_cliques": (5, 6), "clique_size": (4, 4), "tightness": (0.3, 1.0)},
        divided_by="tightness",
        test_parts={"p = 0.25": 0.25, "p = 0.5": 0.5},
        sizes={"train": 1, "validation": 1, "test": 10},
    )
    graphs, tightness = curves.graphs_by_tightness(tiny, 2)
    assert [graph.name for graph in graphs] == [f"rb-by-p/test/{place}" for place in (0, 1, 5, 6)]
    assert tightness == [0.25, 0.25, 0.5, 0.5]
    save_untrained(runs / "mvc-rb-200" / "best.safetensors", "mvc")
    rows = measured(curves.ratio_tasks(quick(runs, count=1)))
    assert [point["x"] for point in rows["DB-Greedy"]["ours"]["points"]] == pytest.approx(np.linspace(0.25, 1, 10))
    assert all(point["y"] >= 1 for point in rows["DiffUCO"]["ours"]["points"])
    text = rendering.ratio_table(list(rows.values()))
    assert "| VAG-CO (r) | 1.0104 |" in text


@pytest.mark.parametrize(
    ("tasks", "name", "count"), [(curves.step_tasks, "step_factor", 6), (curves.token_tasks, "token_size", 3)]
)
def test_sweeps_have_a_row_per_setting(runs, tasks, name, count):
    rows = list(measured(tasks(quick(runs), TINY)).values())
    assert [row["ours"][name] for row in rows] == [row[name] for row in rows]
    assert len(rows) == count
    assert rendering.sweep_table(name, "setting")(rows).count("\n| ") == count + 1


def test_the_steps_of_rounds_count(runs):
    once, *_, rounds = measured(curves.step_tasks(quick(runs), TINY)).values()
    steps = once["ours"]["training_steps"]
    assert once["ours"]["steps"] == steps
    assert rounds["ours"]["rounds"] == 3
    assert steps < rounds["ours"]["steps"] <= 4 * steps
    assert rounds["ours"]["gap"] <= once["ours"]["gap"]
    assert "| 1, 3 rounds |" in rendering.sweep_table("step_factor", "setting")([rounds])


def test_ablation_runs_differ_in_what_they_are_named_for():
    configs = {run.name: run.config for run in (*ablations.step_runs(False), *ablations.likelihood_runs(False))}
    assert len(configs) == 62
    zero, constant = configs["categorical-zero-4-seed1"], configs["annealed-constant-5-seed0"]
    assert (zero.noise, zero.start_temperature, zero.num_steps, zero.seed) == ("categorical", 0.0, 4, 1)
    assert constant.start_temperature == constant.end_temperature > 0
    assert configs["annealed-falling-1-seed0"].end_temperature == 0


def test_ablations_are_trained_once_in_shares_and_measured(tmp_path, monkeypatch):
    def two_runs(quick: bool) -> list[AblationRun]:
        return [AblationRun("annealed", "falling", steps, 0, quick) for steps in (1, 2)]

    monkeypatch.setattr(ablations, "step_runs", two_runs)
    space = quick(tmp_path, count=2)
    assert "--train" in measured(ablations.step_tasks(space))["annealed-falling-1-seed0"]["missing"]
    shares = [list(ablations.train_missing(quick(tmp_path, share=(part, 2)), two_runs(True))) for part in (1, 2)]
    assert shares == [["annealed-falling-1-seed0"], ["annealed-falling-2-seed0"]]
    assert not list(ablations.train_missing(space, two_runs(True)))
    rows = list(measured(ablations.step_tasks(space)).values())
    assert all(row["ours"]["undecoded"]["gap"] >= 0 for row in rows)
    assert "(1 seed, a)" in rendering.ablation_table(rows)


def seed_row(seed: int, gap: float | None) -> Row:
    """A row of Fig. 2 middle as a record holds it."""
    run = AblationRun("annealed", "falling", 3, seed, quick=False)
    about = {"key": run.name, "noise": run.noise, "temperature": run.temperature, "num_steps": run.num_steps}
    if gap is None:
        return about | {"missing": "not measured yet"}
    ours = {"gap": gap, "gap_error": 0.5, "graphs": 2, "referenced": 2, "proven": 2}
    place = {"hardware": f"machine {seed}", "torch": "2", "date": "today", "commit": "c", "command": "diffuco"}
    return about | {"ours": ours, "origin": place}


def test_seeds_of_an_ablation_are_averaged_wherever_they_were_measured():
    (row,) = ablations.over_seeds([seed_row(0, 0.04), seed_row(1, 0.06), seed_row(2, None)])
    assert row["ours"]["gap"] == pytest.approx(0.05)
    assert row["ours"]["gap_error"] == pytest.approx(0.01)
    text = rendering.ablation_table([seed_row(0, 0.04), seed_row(1, 0.06), seed_row(2, None)])
    assert "| 3 | 5.00 % ± 1.00 % (2 seeds, a, b) |" in text
    (alone,) = ablations.over_seeds([seed_row(0, 0.04)])
    assert (alone["ours"]["gap"], alone["ours"]["gap_error"]) == (0.04, 0.5)
    (missing,) = ablations.over_seeds([seed_row(0, None)])
    assert missing["missing"] == "not measured yet"


def test_training_takes_the_runs_asked_for(tmp_path):
    items = [ITEMS["fig-2-middle"], ITEMS["fig-3-right"]]
    chosen = unfinished_runs(items, Options(models=tmp_path), only="falling-4-seed2")
    assert chosen == ["categorical-falling-4-seed2", "annealed-falling-4-seed2"]
    with pytest.raises(InputError, match="no run's name holds"):
        unfinished_runs(items, Options(models=tmp_path), only="seed7")


def test_training_stops_in_time_and_continues(tmp_path):
    runs = [AblationRun("annealed", "falling", 1, 0, quick=True)]
    assert list(ablations.train_missing(quick(tmp_path, max_minutes=1e-9), runs)) in ([], [runs[0].name])
    assert not runs[0].is_finished(quick(tmp_path))
    assert list(ablations.train_missing(quick(tmp_path), runs)) == [runs[0].name]
    assert runs[0].is_finished(quick(tmp_path))


def test_likelihood_is_read_from_the_log_and_later_lines_count(tmp_path):
    space = quick(tmp_path)
    run = ablations.likelihood_runs(True)[0]
    list(ablations.train_missing(space, [run]))
    log = run.folder(space) / "log.jsonl"
    with log.open("a") as file:
        file.write(json.dumps({"kind": "train", "step": 100, "forward_log_likelihood": -7.5}) + "\n")
    rows = measured(ablations.likelihood_tasks(space))
    points = rows["categorical noise"]["ours"]["points"]
    assert [point["x"] for point in points] == [1, 50, 100]
    assert points[-1]["y"] == -7.5
    assert points[1]["y"] > points[0]["y"]
    assert "missing" in rows["annealed noise"]


# Gset


@pytest.fixture
def gset_folder(tmp_path) -> Path:
    folder = tmp_path / "gset"
    folder.mkdir()
    for place, name in enumerate(("G1", "G14")):
        write_graph(get_dataset("ba-tiny").graph("test", place), folder / f"{name}.txt", "rudy")
    return folder


def test_gset_deviations_are_means_over_the_graphs_of_a_group(runs, gset_folder, monkeypatch):
    save_untrained(runs / "max-cut-er" / "best.safetensors", "max-cut")
    save_untrained(runs / "max-cut-gset" / "best.safetensors", "max-cut")
    groups = {"800": {"G1": 1000, "G14": 500}}
    space = quick(runs, graphs=gset_folder, count=2)
    rows = measured(gset.gset_tasks(space, groups))
    ours = rows["DiffUCO: CE-ST8 | 800"]["ours"]
    (of_model,) = ours["by_model"]
    assert ours["deviation"] == of_model["deviation"] == 750 - np.mean(list(of_model["cuts"].values()))
    assert of_model["samples"] == [2, 2]
    assert rows["Greedy | 800"]["paper"]["deviation"] == 411.44
    ticks = itertools.count()
    monkeypatch.setattr(gset, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))  # a second a round
    longer = measured(gset.gset_tasks(quick(runs, graphs=gset_folder, count=2, time_limit_s=2.5, methods=()), groups))
    assert longer["DiffUCO: CE-ST8 | 800"]["ours"]["by_model"][0]["samples"] == [6, 6]
    assert longer["DiffUCO: CE-ST8 | 800"]["ours"]["deviation"] <= ours["deviation"]
    text = rendering.gset_table(list(rows.values()))
    assert "| ANYCSP (r) | 1.22 |" in text
    assert "| DiffUCO: CE-ST8, ours |" in text
    assert "| DiffUCO: CE-ST8, mixed graphs, ours |" in text


def test_gset_deviations_are_means_over_the_models_of_a_recipe(runs, gset_folder):
    for name in ("max-cut-gset", "max-cut-gset-seed1"):
        save_untrained(runs / name / "best.safetensors", "max-cut", seed=len(name))
    task = next(
        task for task in gset.gset_tasks(quick(runs, graphs=gset_folder), {"800": {"G1": 1000}}) if "mixed" in task.key
    )
    row = measured([task])[task.key]
    first, second = (found["deviation"] for found in row["ours"]["by_model"])
    assert row["ours"]["deviation"] == (first + second) / 2
    assert row["ours"]["error"] == pytest.approx(abs(first - second) / 2)
    assert f"± {row['ours']['error']:.2f} (1 graph, 2 seeds" in rendering.gset_table([row])


def test_gset_says_what_is_not_there(runs, gset_folder):
    save_untrained(runs / "max-cut-er" / "best.safetensors", "max-cut")
    rows = measured(gset.gset_tasks(quick(runs), {"800": {"G1": 1000}}))
    assert "--graphs" in rows["Greedy | 800"]["missing"]
    rows = measured(gset.gset_tasks(quick(runs, graphs=gset_folder), {"800": {"G2": 1000}}))
    assert "no file G2.txt" in rows["DiffUCO: CE-ST8 | 800"]["missing"]


def test_groups_of_gset_are_the_papers():
    assert [len(group) for group in gset.BEST_KNOWN.values()] == [9, 9, 9, 8]


# Records and pages


def test_rows_measured_before_stay_where_nothing_can_be_measured():
    def fails() -> dict:
        raise InputError("needs a GPU")

    measured_row = {"ours": {"mean": 1.0}, "origin": {"date": "then"}}
    old = [{"key": "a", "method": "old"} | measured_row, {"key": "other method"} | measured_row, {"key": "gone"}]
    old.append({"key": "c"} | measured_row)  # by a method that is not asked for now
    tasks = [Task("a", {"method": "new"}, fails), Task("b", {}, fails), Task("c"), Task("d", {}, lambda: {"x": 1})]
    steps = list(run_tasks(tasks, old, wanted=lambda task, row: task.key != "d", command="test", device="cpu"))
    assert [task and task.key for task, _ in steps] == [None, "a", "b"]
    assert steps[-1][1] == [
        {"key": "a", "method": "new"} | measured_row,
        {"key": "other method"} | measured_row,
        {"key": "b", "missing": "needs a GPU"},
        {"key": "c"} | measured_row,
        {"key": "d", "missing": "not measured yet"},
    ]


def test_items_are_reproduced_from_start_to_end(runs, tmp_path):
    item = replace(ITEMS["fig-2-right"], tasks=lambda space: curves.step_tasks(space, TINY))
    options = Options(quick=True, models=runs, device="cpu")
    out = tmp_path / "out"
    for folder in ("results", "figures"):
        (out / folder).mkdir(parents=True)
    (out / "README.md").write_text("# Ours\n\nbefore\n")
    done = list(measure(item, options, out, command="the command", only="FACTOR 2"))
    assert done == ["step factor 2"]
    show(item, out)
    assert (out / "figures/fig-2-right.png").stat().st_size > 10_000
    rows = read_rows(out / "results/reproduce-fig-2-right.json")
    assert [("ours" in row, row.get("missing")) for row in rows][:2] == [(False, "not measured yet"), (True, None)]
    assert rows[1]["origin"].keys() == {"hardware", "torch", "commit", "date", "command"}
    done = list(measure(item, options, out, command="again", unmeasured=True))
    assert done == ["step factor 1", "step factor 3", "rounds 1", "rounds 2", "rounds 3"]
    show(item, out)
    page = (out / "README.md").read_text()
    assert page.startswith("# Ours\n\nbefore\n")
    assert page.count("<!-- fig-2-right -->") == 1
    assert "`the command`" in page
    assert "figures/fig-2-right.png" in page


# The command


def test_command_trains_the_runs_of_an_ablation(run, tmp_path, monkeypatch):
    one_run = [AblationRun("annealed", "constant", 1, 0, quick=True)]
    monkeypatch.setitem(ITEMS, "fig-3-right", replace(ITEMS["fig-3-right"], runs=lambda quick: one_run))
    options = ["--train", "--quick", "--models", tmp_path / "runs", "--out", tmp_path / "out", "--device", "cpu"]
    stopped = run("fig-3-right", *options, "--max-minutes", 1e-9)
    assert "1 runs are left to train, annealed-constant-1-seed0 is the first" in stopped.err
    assert "all runs are finished" in run("fig-3-right", *options).err
    assert not list((tmp_path / "out/results").iterdir())


def test_make_knows_every_item():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    assert re.search(r"^PAPER := (.*)$", makefile, re.MULTILINE)[1].split() == list(ITEMS)


def test_output_goes_to_the_checkout_wherever_the_command_runs(run, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments.reproduce, "OUT", tmp_path / "checkout")
    monkeypatch.chdir(tmp_path)
    assert "no record yet" in run("table-1", "--show").errors[0]
    assert (tmp_path / "checkout/results").is_dir()
    run("table-1", "--quick", "--show")
    assert (tmp_path / "runs/reproduce-quick/results").is_dir()


def test_command_lists_the_items(run):
    out = run("--list").out
    assert all(name in out for name in ITEMS)


@pytest.mark.parametrize("item", ["table-1", "table-3", "ood", "n-query", "fig-2-left", "fig-3-left"])
def test_command_measures_a_row_of_every_item_quickly(run, tmp_path, item):
    only = {"table-1": "RB-small | Greedy", "table-3": "BA-small | Greedy", "ood": "MDS BA-small | DiffUCO"}
    only |= {"n-query": "MDS BA-small", "fig-2-left": "DB-Greedy", "fig-3-left": "size 2"}
    options = ["--quick", "--count", 1, "--only", only[item], "--out", tmp_path, "--device", "cpu", "--json"]
    result = run(item, *options)
    assert result.code == 0, result.err
    rows = json.loads(result.out)[item]
    assert sum("ours" in row for row in rows) == 1
    assert f"<!-- {item} -->" in (tmp_path / "README.md").read_text()
    assert run("all", "--show", "--out", tmp_path).code == 0


def test_records_tell_the_command_without_folders(run, tmp_path):
    options = ["--quick", "--count", 1, "--only", "RB-small | Greedy", "--models", tmp_path, "--out", tmp_path]
    rows = json.loads(run("table-1", *options, "--device", "cpu", "--json").out)["table-1"]
    (command,) = (row["origin"]["command"] for row in rows if "ours" in row)
    assert (
        command
        == "python -m experiments.reproduce table-1 --quick --models FOLDER --count 1 --only 'RB-small | Greedy'"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["table-9"], "choose one of table-1"),
        (["table-1", "--share", "3/2"], "1/4"),
        (["table-1", "--methods", "gredy"], "greedy"),
        (["table-1", "--count", "0"], "1 or more"),
        (["gset", "--time-limit", "0"], "above 0"),
        (["table-1", "--train"], "diffuco train RECIPE"),
        (["table-1", "--show"], "no record yet"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, options, message):
    result = run(*options, "--out", tmp_path)
    assert result.code == 2
    assert len(result.errors) == 1
    assert message in result.errors[0]


def test_damaged_record_is_refused(run, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/reproduce-table-1.json").write_text("{}")
    result = run("table-1", "--show", "--out", tmp_path)
    assert result.code == 2
    assert "not a record" in result.errors[0]
