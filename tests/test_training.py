import json
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from diffuco.cli import main
from diffuco.diffusion.loss import StepCost
from diffuco.diffusion.noise import make_noise
from diffuco.diffusion.randomness import RowRandom
from diffuco.diffusion.sampling import sample_steps
from diffuco.foundation.distributed import Group
from diffuco.foundation.errors import InputError
from diffuco.graphs.batch import SparseBatch, make_batch
from diffuco.graphs.collection import Collection
from diffuco.graphs.datasets import DATASETS, get_dataset
from diffuco.graphs.graph import Graph
from diffuco.inference.solver import Solver
from diffuco.model import Network, load_checkpoint, save_checkpoint
from diffuco.model.checkpoint import read_safetensors, write_safetensors
from diffuco.problems import get_problem
from diffuco.training.config import TrainConfig, with_settings
from diffuco.training.data import TrainingGraphs
from diffuco.training.loop import learning_rate_at, temperature_at, train
from diffuco.training.objectives.joint_bound import forward_log_likelihood
from diffuco.training.pace import SHARE_OF_TIME, Pace, measured_pace
from diffuco.training.parts import choose_parts
from diffuco.training.recipes import RECIPES, get_recipe
from diffuco.training.resume import _digest
from diffuco.training.step import TrainStep, step_seed
from processes import start

SHORT = replace(
    get_recipe("mis-tiny"),
    anneal_epochs=3,
    num_train_graphs=12,
    graphs_per_batch=4,
    samples_per_graph=3,
    num_layers=2,
    num_hidden=8,
    num_steps=2,
    num_validation_graphs=4,
    validate_every=2,
    checkpoint_every=2,
)


def initial_network(config: TrainConfig) -> Network:
    return choose_parts(config).network


def test_a_run_may_begin_with_the_parameters_of_another(tmp_path):
    train(SHORT, tmp_path / "first", progress=False)
    path = str(tmp_path / "first" / "last.safetensors")
    begun = initial_network(replace(SHORT, start_from=path, start_temperature=0.05))
    assert all(map(torch.equal, begun.parameters(), load_checkpoint(Path(path)).model.parameters()))
    for other in ({"num_layers": SHORT.num_layers + 1}, {"num_steps": 3 * SHORT.num_steps // 2}):
        with pytest.raises(InputError, match="same layers and features and as many steps or a multiple"):
            initial_network(replace(SHORT, start_from=path, **other))


def test_a_run_of_more_steps_begins_as_the_longer_evaluation_of_its_start(tmp_path):
    train(SHORT, tmp_path / "first", progress=False)
    path = str(tmp_path / "first" / "last.safetensors")
    start, longer = load_checkpoint(Path(path)).model, initial_network(replace(SHORT, start_from=path, num_steps=6))
    batch = SparseBatch.from_graphs([get_dataset("rb-tiny").graph("test", 0)])
    draws = [
        list(
            sample_steps(
                model, batch, num_steps=steps, step_factor=factor, num_samples=4,
                random=RowRandom(torch.Generator().manual_seed(0)),
            )
        )
        for model, steps, factor in ((start, 2, 3), (longer, 6, 1))
    ]  # fmt: skip
    for repeated, own in zip(*draws, strict=True):
        assert torch.equal(repeated.logits, own.logits)


@pytest.mark.parametrize("recipe", [name for name, make in RECIPES.items() if make().start_from])
def test_recipes_begin_with_models_that_fit_them(recipe):
    config = get_recipe(recipe)
    assert initial_network(config).config == initial_network(replace(config, start_from="")).config


@pytest.mark.parametrize(
    "recipe", [name for name in RECIPES if name.rpartition("-")[2] in ("12", "16", "24", "32", "48", "64")]
)
def test_recipes_that_grow_differ_from_their_start_in_steps_and_schedule_alone(recipe):
    config = get_recipe(recipe)
    start = get_recipe(config.start_from)
    assert config.num_steps == int(recipe.rpartition("-")[2])
    assert config.num_steps in (2 * start.num_steps, 4 * start.num_steps)
    free = ("num_steps", "start_from", "start_temperature", "anneal_epochs", "learning_rate", "num_train_graphs")
    assert replace(config, **{name: getattr(start, name) for name in free}) == start


def test_the_minutes_of_the_model_that_a_run_starts_from_count(tmp_path):
    path = tmp_path / "start.safetensors"
    save_checkpoint(path, initial_network(SHORT), problem="mis", card={"minutes": 7.0})
    config = replace(SHORT, start_from=str(path))
    summary = train(config, tmp_path / "run", progress=False, stop_after_minutes=0)
    assert 420 < summary["seconds"] < 480
    summary = train(config, tmp_path / "run", progress=False, resume=True)
    assert summary["finished"]
    assert 7 <= load_checkpoint(tmp_path / "run" / "last.safetensors").card["minutes"] < 8


def test_training_lowers_the_energy_of_samples(tmp_path):
    config = replace(SHORT, anneal_epochs=40, num_hidden=16, learning_rate=0.01, validate_every=10)
    summary = train(config, tmp_path, progress=False)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    energies = [line["energy"] for line in lines if line["kind"] == "validation"]
    assert summary["finished"]
    assert energies[-1] < energies[0] - 0.3
    best = load_checkpoint(tmp_path / "best.safetensors")
    assert best.problem == "mis"
    assert best.card["training"] == asdict(config)
    assert best.card["validation"]["energy"] == pytest.approx(summary["best_energy"])


@pytest.mark.parametrize("problem", ["mis", "mds"])
def test_training_on_node_weights_lowers_the_energy_of_samples(tmp_path, problem):
    rng = np.random.default_rng(0)
    plain = get_dataset("rb-tiny").graphs("train", 60)
    graphs = [replace(graph, node_weights=rng.integers(1, 20, graph.num_nodes).astype(float)) for graph in plain]
    config = replace(
        SHORT,
        problem=problem,
        weighted=True,
        start_temperature=1.0,
        anneal_epochs=25,
        num_train_graphs=24,
        num_hidden=16,
        learning_rate=0.01,
        validate_every=50,
    )
    train(config, tmp_path, graphs=Collection.of("mine", graphs), progress=False)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    energies = [line["energy"] for line in lines if line["kind"] == "validation"]
    # A network that does not see the weights stays where it begins.
    assert energies[-1] < energies[0] - 3
    best = load_checkpoint(tmp_path / "best.safetensors")
    assert (best.model.config.node_weighted, best.model.config.weighted) == (True, False)
    solution = Solver(problem, best, device="cpu").solve(graphs[:1], samples=2)[0]
    assert solution.feasible
    assert solution.objective == graphs[0].node_weights[solution.chosen].sum()


@pytest.mark.parametrize("recipe", [name for name in RECIPES if name.endswith("tiny")])
@pytest.mark.parametrize("noise", ["annealed", "categorical"])
def test_every_problem_trains(tmp_path, recipe, noise):
    settings = {name: getattr(SHORT, name) for name in ("anneal_epochs", "num_train_graphs", "graphs_per_batch",
                "num_layers", "num_hidden", "num_steps", "num_validation_graphs")}  # fmt: skip
    summary = train(replace(get_recipe(recipe), **settings, noise=noise), tmp_path, progress=False)
    assert summary["step"] == 9
    assert np.isfinite(summary["best_energy"])


def test_stopping_and_resuming_gives_the_same_weights_bit_for_bit(tmp_path):
    train(SHORT, tmp_path / "whole", progress=False)
    stopped = train(SHORT, tmp_path / "parts", stop_after_minutes=0.0, progress=False)
    assert not stopped["finished"]
    while not stopped["finished"]:
        stopped = train(SHORT, tmp_path / "parts", resume=True, stop_after_minutes=0.0, progress=False)
    assert_same_run(tmp_path / "whole", tmp_path / "parts")


def test_a_killed_process_resumes_to_the_same_weights_bit_for_bit(tmp_path):
    config = replace(SHORT, anneal_epochs=12)
    train(config, tmp_path / "whole", progress=False)
    settings = [f"--set={name}={value}" for name, value in asdict(config).items()]
    command = ["train", "mis-tiny", "--out", str(tmp_path / "killed"), *settings]
    state, output = tmp_path / "killed" / "resume.safetensors", tmp_path / "output.txt"
    for attempt in range(3):
        resume = ["--resume"] if state.exists() else []
        before = state.stat().st_mtime_ns if state.exists() else 0
        process = start(main, [*command, *resume], output=output)
        deadline = time.monotonic() + 60
        while process.is_alive() and time.monotonic() < deadline:
            if state.exists() and state.stat().st_mtime_ns > before:
                time.sleep(0.03 * attempt)  # a different moment after the checkpoint each time
                process.kill()
                break
            time.sleep(0.005)
        process.join()
    done = start(main, [*command, "--resume"], output=output)
    done.join()
    assert done.exitcode == 0, output.read_text()
    assert_same_run(tmp_path / "whole", tmp_path / "killed")


def assert_same_run(one, other):
    for name in ("last.safetensors", "best.safetensors", "resume.safetensors"):
        first, second = load_file(one / name), load_file(other / name)
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key], second[key]) for key in first), name


def test_a_run_is_not_overwritten_and_not_mixed(tmp_path):
    train(SHORT, tmp_path, stop_after_minutes=0.0, progress=False)
    with pytest.raises(InputError, match="--resume"):
        train(SHORT, tmp_path, progress=False)
    with pytest.raises(InputError, match="learning_rate"):
        train(replace(SHORT, learning_rate=0.5), tmp_path, resume=True, progress=False)


def test_a_run_from_before_a_field_existed_is_continued_with_its_default(tmp_path):
    train(SHORT, tmp_path, stop_after_minutes=0.0, progress=False)
    tensors, metadata = read_safetensors(tmp_path / "resume.safetensors")
    header = json.loads(metadata["diffuco-resume"])
    del header["config"]["end_temperature"]
    text = json.dumps(header)
    digest = _digest(tensors, text)
    write_safetensors(tmp_path / "resume.safetensors", tensors, {"diffuco-resume": text, "digest": digest})
    with pytest.raises(InputError, match="end_temperature"):
        train(replace(SHORT, end_temperature=0.1), tmp_path, resume=True, progress=False)
    assert train(SHORT, tmp_path, resume=True, progress=False)["finished"]


def test_forward_likelihood_of_flips_is_their_log_probability():
    batch = make_batch([Graph.from_edges([(0, 1)])])
    noise, temperature = make_noise("categorical", 3), 0.5
    x, kept = torch.tensor([[1.0], [0.0]]), torch.tensor([[1.0], [1.0]])  # the first node stays, the second flips
    step = torch.tensor([2])
    cost = noise.expected_cost(batch, x, kept, torch.zeros(1, 1), step, temperature)
    flip = noise.flip_probability(step.double()).item()
    terms = StepCost(entropy=torch.zeros(()), noise=cost.sum(), energy=torch.tensor(-1.0))
    expected = np.log(flip) + np.log(1 - flip) + 1.0 / temperature
    assert forward_log_likelihood(terms, temperature).item() == pytest.approx(expected, rel=1e-6)


@pytest.fixture(scope="module")
def resumable(tmp_path_factory):
    """The state of a run that was stopped early."""
    folder = tmp_path_factory.mktemp("stopped")
    train(SHORT, folder, stop_after_minutes=0.0, progress=False)
    return (folder / "resume.safetensors").read_bytes()


@pytest.mark.parametrize("place", [0.3, 0.5, 0.7, 0.9, 0.999])
def test_a_flipped_bit_in_the_resume_state_is_refused(tmp_path, resumable, place):
    content, start = bytearray(resumable), 8 + int.from_bytes(resumable[:8], "little")
    content[start + int(place * (len(content) - start))] ^= 1
    (tmp_path / "resume.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"resume\.safetensors: the state does not match its digest"):
        train(SHORT, tmp_path, resume=True, progress=False)


@pytest.mark.parametrize(
    "change", [{"step": -5}, {"step": 1.5}, {"step": "x"}, {"step": True}, {"seconds": "x"}, {"best_energy": None}]
)
def test_impossible_progress_is_refused(tmp_path, resumable, change):
    path = tmp_path / "resume.safetensors"
    path.write_bytes(resumable)
    tensors, metadata = read_safetensors(path)
    header = json.loads(metadata["diffuco-resume"])
    header["progress"] |= change
    write_safetensors(path, tensors, {"diffuco-resume": json.dumps(header)})
    with pytest.raises(InputError, match=r"resume\.safetensors: not a resumable state"):
        train(SHORT, tmp_path, resume=True, progress=False)


@pytest.mark.parametrize("content", [b"", b"garbage" * 20])
def test_damaged_resume_state_is_refused(tmp_path, content):
    (tmp_path / "resume.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="resume"):
        train(SHORT, tmp_path, resume=True, progress=False)


def test_resuming_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        train(SHORT, tmp_path / "none", resume=True, progress=False)


def test_schedules():
    config = replace(get_recipe("mis-rb-small"), anneal_epochs=10)
    total = config.total_steps
    assert temperature_at(0, config) == config.start_temperature
    assert temperature_at(total - 1, config) == 0
    constant = replace(config, end_temperature=config.start_temperature)
    assert temperature_at(total // 2, constant) == pytest.approx(config.start_temperature)
    rates = [learning_rate_at(step, config) for step in range(total)]
    assert max(rates) == pytest.approx(config.learning_rate)
    assert rates[0] < 0.1 * config.learning_rate
    assert rates[-1] == pytest.approx(0.1 * config.learning_rate, rel=1e-3)
    assert rates.index(max(rates)) == pytest.approx(0.025 * total, abs=2)
    paper = get_recipe("mis-rb-small-paper")
    assert {learning_rate_at(step, paper) for step in (0, 5, paper.total_steps - 1)} == {paper.learning_rate}


def test_every_epoch_visits_every_graph_once_in_another_order():
    graphs = DATASETS["rb-tiny"].graphs("train", 12)
    data = TrainingGraphs(graphs, 4, seed=3, group=Group(torch.device("cpu")))

    def sizes_of(step):
        return data.batch(*data.chosen(step)).sizes.tolist()

    sizes = [sorted(size for step in range(epoch * 3, epoch * 3 + 3) for size in sizes_of(step)) for epoch in range(2)]
    assert sizes[0] == sizes[1] == sorted(graph.num_nodes for graph in graphs)
    assert any(sizes_of(step) != sizes_of(step + 3) for step in range(3))


def test_one_step_baselines_keep_the_problem_and_the_graphs():
    base = get_recipe("mds-ba-small")
    plain, annealed = get_recipe("mds-ba-small-egn"), get_recipe("mds-ba-small-egn-anneal")
    assert {config.num_steps for config in (plain, annealed)} == {1}
    assert {(config.problem, config.dataset) for config in (plain, annealed)} == {(base.problem, base.dataset)}
    assert (plain.start_temperature, annealed.start_temperature) == (0.0, base.start_temperature)


def test_one_step_baseline_trains(tmp_path):
    small = replace(SHORT, num_steps=1, noise="annealed", start_temperature=0.0)
    summary = train(small, tmp_path, progress=False)
    assert summary["finished"]
    assert np.isfinite(summary["best_energy"])


def test_batches_hold_graphs_of_similar_size_so_that_little_is_padding():
    for name in ("rb-small", "ba-small"):
        graphs = DATASETS[name].graphs("train", 600)
        data = TrainingGraphs(graphs, 20, seed=0, group=Group(torch.device("cpu")))
        chosen = [data.chosen(step) for step in range(30)]
        assert {padded for _, padded in chosen} == set(data.ceilings)
        nodes = sum(data.sizes[indices].sum() for indices, _ in chosen)
        rows = sum(20 * padded for _, padded in chosen)
        assert all(data.sizes[indices].max() <= padded for indices, padded in chosen)
        assert 1 - nodes / rows < 0.15


def test_seeds_differ_by_step_and_run():
    assert len({step_seed(*key) for key in [(0, 0), (0, 1), (1, 0)]}) == 3


def test_initial_parameters_depend_on_the_seed_alone():
    state = torch.random.get_rng_state()
    first = initial_network(SHORT)
    assert torch.equal(state, torch.random.get_rng_state())
    torch.rand(3)
    same, other = initial_network(SHORT), initial_network(replace(SHORT, seed=1))
    assert torch.equal(first.encode_node.weight, same.encode_node.weight)
    assert not torch.equal(first.encode_node.weight, other.encode_node.weight)


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_name_real_problems_and_datasets(name):
    config = get_recipe(name)
    assert config.problem == get_problem(config.problem).name
    assert config.num_train_graphs <= DATASETS[config.dataset].sizes["train"]
    assert (RECIPES[name].__doc__ or "").strip()


def test_papers_table_of_hyperparameters():
    """App. C.5: learning rate, start temperature, layers, steps, epochs, noise, graphs, samples."""
    rows = {
        "mis-rb-large": (0.002, 0.3, 7, 4, 3000, "annealed", 18, 5),
        "mis-rb-small": (0.002, 0.4, 8, 6, 4000, "annealed", 30, 10),
        "max-clique-rb-small": (0.002, 0.5, 8, 5, 3000, "categorical", 20, 8),
        "max-cut-ba-large": (0.002, 0.2, 4, 6, 1000, "annealed", 20, 10),
        "max-cut-ba-small": (0.002, 0.2, 8, 4, 2000, "annealed", 20, 10),
        "mds-ba-large": (0.003, 0.3, 8, 3, 2000, "annealed", 20, 10),
        "mds-ba-small": (0.003, 0.3, 8, 5, 2000, "annealed", 20, 10),
        "mvc-rb-200": (0.001, 0.4, 8, 4, 4500, "annealed", 30, 10),
    }
    for name, row in rows.items():
        config = get_recipe(f"{name}-paper")
        assert row == (
            config.learning_rate, config.start_temperature, config.num_layers, config.num_steps,
            config.anneal_epochs, config.noise, config.graphs_per_batch, config.samples_per_graph,
        )  # fmt: skip
        assert f"{config.problem}-{config.dataset}" == name
        assert config.penalty == 1.01
        assert config.learning_rate_schedule == "constant"


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("nonsense", "key=value"),
        ("num_stepz=3", "did you mean 'num_steps'"),
        ("num_steps=three", "type int"),
        ("num_steps=0", "1 or more"),
        ("noise=loud", "annealed"),
        ("weighted=maybe", "true or false"),
        ("graphs_per_batch=9999", "too few for a batch of 9999"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting, complaint):
    with pytest.raises(InputError, match=complaint):
        with_settings(get_recipe("mis-tiny"), [setting])


def test_unknown_recipe_names_the_closest():
    with pytest.raises(InputError, match="did you mean 'mis-tiny'"):
        get_recipe("mis-tyny")


def test_config_defaults_are_the_papers():
    config = TrainConfig("mis", "rb-small", num_steps=1, start_temperature=0.1, anneal_epochs=1)
    assert (config.num_hidden, config.penalty, config.max_gradient_norm) == (64, 1.01, 1.0)


def test_max_minutes_shortens_the_schedules_instead_of_cutting_them_off(tmp_path, monkeypatch, caplog):
    long = replace(SHORT, anneal_epochs=1000)
    monkeypatch.setattr("diffuco.training.pace.measured_pace", lambda *_: Pace(step_s=1000.0, validation_s=0.0))
    seconds = 1000 * (5 * long.steps_per_epoch + 1) / SHARE_OF_TIME
    with caplog.at_level("INFO", logger="diffuco.training.pace"):
        done = train(long, tmp_path, max_minutes=seconds / 60, progress=False)
    assert (done["finished"], done["num_steps_total"]) == (True, 5 * long.steps_per_epoch)
    assert caplog.messages[0].startswith("5 of 1000 passes through the graphs fit: about ")
    assert load_checkpoint(tmp_path / "best.safetensors").card["training"]["anneal_epochs"] == 5
    short = train(SHORT, tmp_path / "short", max_minutes=1e6, stop_after_minutes=0.0, progress=False)
    assert short["num_steps_total"] == SHORT.total_steps  # never longer than the recipe
    again = train(long, tmp_path / "parts", max_minutes=seconds / 60, stop_after_minutes=0.0, progress=False)
    assert not again["finished"]
    resumed = train(long, tmp_path / "parts", max_minutes=seconds / 60, resume=True, progress=False)
    assert (resumed["finished"], resumed["num_steps_total"]) == (True, again["num_steps_total"])


def test_the_pace_is_that_of_the_run():
    parts, graphs = choose_parts(SHORT), get_dataset("rb-tiny").graphs("train", 12)
    pace = measured_pace(parts, graphs, graphs[:2], Group(torch.device("cpu")))
    assert min(pace) > 0
    config = replace(SHORT, anneal_epochs=10, validate_every=15)
    assert Pace(2.0, 5.0).seconds(config) == config.total_steps * 2.0 + (1 + config.total_steps // 15) * 5.0


def test_the_pace_leaves_out_steps_that_compile_or_record(monkeypatch):
    clock, sizes = SimpleNamespace(now=0.0), Counter()

    class RecordedStep(TrainStep):
        captured = True

        def __init__(self, parts, data):
            self.denoiser, self.data = parts.network, data

        def __call__(self, step, temperature, learning_rate):
            size = self.data.chosen(step)[1]
            clock.now += 1.0 if sizes[size] >= 2 else 100.0
            sizes[size] += 1

    monkeypatch.setattr("diffuco.training.pace.TrainStep", RecordedStep)
    monkeypatch.setattr("diffuco.training.pace.now", lambda device: clock.now)
    graphs = get_dataset("ba-small").graphs("train", 40)
    pace = measured_pace(choose_parts(SHORT), graphs, graphs[:1], Group(torch.device("cpu")))
    assert len(sizes) > 1
    assert pace.step_s == 1.0
