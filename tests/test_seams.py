"""A problem, a network, a noise and an objective from outside the package: trained, resumed, loaded, drawn from."""

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import diffuco
from diffuco.diffusion import mean_field
from diffuco.diffusion.noise import NOISES, CategoricalNoise, make_noise
from diffuco.diffusion.reverse import reverse_process
from diffuco.foundation.errors import InputError
from diffuco.foundation.files import lock
from diffuco.graphs.collection import Collection
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.formats import FORMATS, Format, register_format, write_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.memory import requirement
from diffuco.inference.solver import Solver
from diffuco.model import (
    NETWORKS,
    Gnn,
    GnnConfig,
    Network,
    NetworkConfig,
    read_card,
    register_network,
    save_checkpoint,
)
from diffuco.model.engine.acceleration import pick_engine
from diffuco.pretrained import load_model, problem_of, save_model
from diffuco.pretrained.choice import choose_model
from diffuco.problems import MaximumIndependentSet, Problem, get_problem, register_problem
from diffuco.training.config import TrainConfig, with_settings
from diffuco.training.fitting import fit_recipe
from diffuco.training.loop import train
from diffuco.training.objectives import OBJECTIVES, JointBound, Objective
from diffuco.training.parts import choose_parts
from diffuco.training.recipes import get_recipe
from diffuco.web.limits import Limits
from diffuco.web.messages import SolveRequest
from diffuco.web.service import Service
from processes import start_group

CONFIG = replace(
    get_recipe("mis-tiny"),
    anneal_epochs=4,
    num_train_graphs=12,
    graphs_per_batch=4,
    samples_per_graph=3,
    num_steps=2,
    num_validation_graphs=4,
    validate_every=3,
    checkpoint_every=3,
)


class Crowding(Problem):
    """H(X) = -sum_i x_i + 0.5 sum_(i,j) x_i x_j: as many nodes as possible, but not too close together."""

    name, sense = "crowding", "max"

    def energy(self, batch, x):
        return batch.graph_sum(x * (0.25 * batch.neighbor_sum(x) - 1))


class Tiny(Network):
    """One linear layer over a node, the mean of its neighbours and the step; has a scalar parameter."""

    name = "tiny"

    @dataclass(frozen=True)
    class Config(NetworkConfig):
        width: int = 4

    def __init__(self, config):
        super().__init__(config)
        self.steps = nn.Embedding(config.num_steps + 1, config.width)
        self.mix = nn.Sequential(nn.Linear(2, config.width), nn.Tanh(), nn.Linear(config.width, 1))
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, batch, x, step, features):
        around = batch.neighbor_sum(x) / batch.degrees.clamp(min=1)[:, None]
        inputs = torch.stack([x, around], dim=-1)
        return self.scale * self.mix(inputs).squeeze(-1) + self.steps(step).sum(-1)


class Constant(CategoricalNoise):
    name = "constant"

    def flip_probability(self, step):
        return torch.full_like(step, 0.3)


@dataclass(frozen=True)
class MeanFieldEnergy(Objective):
    """E[H] under every reverse step, without a baseline."""

    name = "mean-field-energy"

    samples_per_graph: int = 2

    def backward(self, denoiser, problem, noise, batch, *, temperature, random, num_graphs):
        total = 0.0
        for step in reverse_process(denoiser, batch, range(noise.num_steps, 0, -1), self.samples_per_graph, random):
            free = problem.energy(batch, step.logits.sigmoid())
            free = free - temperature * batch.graph_sum(mean_field.entropy(step.logits))
            loss = free.sum() / (num_graphs * self.samples_per_graph)
            loss.backward()
            total = total + loss.detach()
        return {"free_energy": total, "undefined": total / 0.0}


OUTSIDE = {"problem": Crowding(), "network": Tiny, "noise": Constant(2), "objective": MeanFieldEnergy()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A run with nothing from the package but the loop."""
    folder = tmp_path_factory.mktemp("outside") / "run"
    summary = train(CONFIG, folder, **OUTSIDE, progress=False)
    assert summary["finished"]
    return folder


def parameters(folder: Path) -> torch.Tensor:
    model = load_model(folder / "last.safetensors", network=Tiny).model
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def test_all_four_parts_may_come_from_outside(finished):
    checkpoint = load_model(finished / "best.safetensors", network=Tiny)
    assert (type(checkpoint.model), checkpoint.model.config) == (Tiny, Tiny.Config(num_steps=2, width=4))
    assert checkpoint.problem == "crowding"
    named = checkpoint.card["training"]
    assert [named[part] for part in OUTSIDE] == ["crowding", "tiny", "constant", "mean-field-energy"]
    assert not torch.equal(parameters(finished), start_of_tiny())


def start_of_tiny() -> torch.Tensor:
    network = choose_parts(CONFIG, **OUTSIDE).network
    return nn.utils.parameters_to_vector(network.parameters()).detach()


def test_a_checkpoint_from_outside_draws_samples(finished):
    checkpoint = load_model(finished / "best.safetensors", network=Tiny)
    solver, graphs = Solver(Crowding(), checkpoint, device="cpu"), get_dataset("rb-tiny").graphs("test", 3)
    drawn, decoded = (solver.solve(graphs, samples=4, decode=decode, refine=0) for decode in ("none", "ce"))
    assert all(solution.chosen.shape == (graph.num_nodes,) for solution, graph in zip(drawn, graphs, strict=True))
    assert all(after.objective > before.objective for before, after in zip(drawn, decoded, strict=True))


def test_a_network_from_outside_solves_a_problem_of_ours(tmp_path):
    train(CONFIG, tmp_path, network=Tiny, progress=False)
    checkpoint = load_model(tmp_path / "best.safetensors", network=Tiny)
    solver, graphs = Solver("mis", checkpoint, device="cpu"), get_dataset("rb-tiny").graphs("test", 3)
    assert all(solution.feasible for solution in solver.solve(graphs, samples=2))
    # Nothing says how wide this network is, so memory is that of the paper's.
    assert solver.requirement(graphs[0]) == requirement(graphs[0], 8, num_hidden=64)


def test_resuming_a_run_with_outside_parts_is_exact(finished, tmp_path):
    done = train(CONFIG, tmp_path, **OUTSIDE, stop_after_minutes=0.0, progress=False)
    while not done["finished"]:
        done = train(CONFIG, tmp_path, **OUTSIDE, resume=True, stop_after_minutes=0.0, progress=False)
    assert torch.equal(parameters(tmp_path), parameters(finished))


def test_resuming_without_an_outside_part_is_refused(finished):
    for part in ("noise", "objective"):
        others = {name: value for name, value in OUTSIDE.items() if name != part}
        with pytest.raises(InputError, match=f"another {part}"):
            train(CONFIG, finished, **others, resume=True, progress=False)


@dataclass(frozen=True)
class Penalised(Crowding):
    """Crowding with a price of its own."""

    name = "penalised"

    penalty: float = 4.0

    def energy(self, batch, x):
        return batch.graph_sum(x * (self.penalty / 2 * batch.neighbor_sum(x) - 1))


@dataclass(frozen=True)
class Steady(CategoricalNoise):
    name = "steady"

    rate: float = 0.3
    labels: np.ndarray = field(default_factory=lambda: np.ones(2))

    def flip_probability(self, step):
        return torch.full_like(step, self.rate)


@dataclass(frozen=True)
class Weighed(MeanFieldEnergy):
    name = "weighed"

    weight: float = 1.0


SETTINGS = {"problem": Penalised(), "network": Tiny, "noise": Steady(2), "objective": Weighed()}


@pytest.fixture(scope="module")
def started(tmp_path_factory) -> Path:
    """A run of parts with settings, which stopped early."""
    folder = tmp_path_factory.mktemp("settings") / "run"
    train(CONFIG, folder, **SETTINGS, stop_after_minutes=0.0, progress=False)
    return folder


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"problem": Penalised(penalty=9.0)}, "penalty"),
        ({"noise": Steady(2, rate=0.1)}, "noise rate"),
        ({"objective": Weighed(weight=3.0)}, "objective weight"),
        ({"network": Tiny(Tiny.Config(2, width=8))}, "network width"),
    ],
)
def test_resuming_with_other_settings_of_a_part_is_refused(started, other, named):
    with pytest.raises(InputError, match=f"was started with another {named}; resume with the same settings"):
        train(CONFIG, started, **SETTINGS | other, resume=True, progress=False)


def test_settings_of_parts_are_kept_with_the_run(started):
    card = read_card(started / "last.safetensors")
    assert card["training"] == json.loads((started / "config.json").read_text())
    assert card["training"]["penalty"] == 4.0
    assert card["parts"] == {
        "problem": {"penalty": 4.0},
        "network": {"num_steps": 2, "width": 4},
        "noise": {"num_steps": 2, "rate": 0.3, "labels": "ndarray"},
        "objective": {"samples_per_graph": 2, "weight": 1.0},
    }


def test_a_class_is_as_good_as_an_object():
    parts = choose_parts(CONFIG, problem=Penalised, noise=Steady)
    assert (parts.problem, parts.config.penalty) == (Penalised(), 4.0)
    assert (parts.noise.num_steps, parts.noise.rate) == (2, 0.3)
    assert choose_parts(replace(CONFIG, penalty=1.5), problem=MaximumIndependentSet).problem.penalty == 1.5
    assert diffuco.solve([(0, 1), (1, 2)], Crowding).objective == diffuco.solve([(0, 1), (1, 2)], Crowding()).objective

    @dataclass(frozen=True)
    class Layered(Steady):
        name = "layered"

        num_layers: int = 0

    assert choose_parts(CONFIG, noise=Layered).noise.num_layers == CONFIG.num_layers


@dataclass(frozen=True)
class Demanding(Crowding):
    name = "demanding"

    price: float


@dataclass(frozen=True, kw_only=True)
class DemandingNoise(Steady):
    name = "demanding"

    level: float


class Impostor(Crowding):
    name = "mis"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"problem": Demanding}, "'price'; give an object instead of the class Demanding"),
        ({"problem": int}, "class int is no problem"),
        ({"noise": DemandingNoise}, "'level'; give an object instead of the class DemandingNoise"),
        ({"problem": Impostor()}, "there is a problem 'mis' already; give the class Impostor a name of its own"),
        ({"objective": "imitation"}, "noise 'annealed' does not start from a solution; take 'exponential'"),
        ({"objective": "forward-kl"}, "noise 'annealed' does not start from a solution; take 'exponential'"),
    ],
)
def test_parts_are_refused_before_there_is_a_folder(given, complaint, tmp_path):
    config = replace(CONFIG, noise="annealed", end_temperature=0.1)
    with pytest.raises(InputError, match=complaint) as refusal:
        train(config, tmp_path / "run", **given, progress=False)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "run").exists()


def test_an_imitation_before_the_objective_needs_such_a_noise_too():
    with pytest.raises(InputError, match="noise 'annealed' does not start from a solution"):
        choose_parts(replace(CONFIG, noise="annealed", imitation_epochs=1))


def test_an_objective_may_return_floats(tmp_path):
    class Counting(MeanFieldEnergy):
        name = "counting"

        def backward(self, *inputs, **named):
            return super().backward(*inputs, **named) | {"constant": 2.5}

    train(CONFIG, tmp_path, network=Tiny, objective=Counting, progress=False, stop_after_minutes=0.0)
    assert json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])["constant"] == 2.5


def test_the_log_holds_what_the_objective_returns(finished):
    lines = [json.loads(line) for line in (finished / "log.jsonl").read_text().splitlines()]
    first = next(line for line in lines if line["kind"] == "train")
    measured = {"temperature", "gradient_norm", "milliseconds_per_step"}
    assert set(first) == {"kind", "step", "free_energy", "undefined"} | measured
    assert np.isfinite(first["free_energy"])
    assert first["undefined"] is None


def test_the_log_of_the_joint_bound_keeps_its_names(tmp_path):
    train(replace(CONFIG, num_layers=1, num_hidden=8), tmp_path, progress=False, stop_after_minutes=0.0)
    first = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])
    terms = {"loss", "energy", "entropy_term", "noise_term", "forward_log_likelihood"}
    assert set(first) == {"kind", "step", "temperature", "gradient_norm", "milliseconds_per_step"} | terms
    assert first["loss"] == pytest.approx(first["energy"] + first["entropy_term"] + first["noise_term"], rel=1e-5)


@pytest.mark.parametrize("part", OUTSIDE)
def test_each_part_works_alone_among_ours(part, tmp_path):
    config = replace(CONFIG, num_layers=1, num_hidden=8, anneal_epochs=1)
    summary = train(config, tmp_path, **{part: OUTSIDE[part]}, progress=False)
    assert summary["finished"]
    assert np.isfinite(summary["best_energy"])


def test_a_network_object_is_trained_with_the_parameters_it_has(tmp_path):
    mine = Tiny(Tiny.Config(num_steps=2, width=7))
    begun = choose_parts(CONFIG, network=mine).network
    assert begun is mine
    nn.init.constant_(mine.mix[0].weight, 0.25)
    train(replace(CONFIG, learning_rate=0.0), tmp_path, network=mine, progress=False)
    loaded = load_model(tmp_path / "last.safetensors", network=Tiny).model
    assert loaded.config.width == 7
    assert torch.equal(loaded.mix[0].weight, torch.full((7, 2), 0.25))


def test_a_class_gets_what_the_configuration_knows_under_the_names_of_its_fields():
    parts = choose_parts(replace(CONFIG, samples_per_graph=5), objective=MeanFieldEnergy, noise=Constant)
    assert parts.objective == MeanFieldEnergy(samples_per_graph=5)
    assert parts.noise == Constant(num_steps=2)
    assert choose_parts(replace(CONFIG, steps_per_chunk=1)).objective == JointBound(3, steps_at_once=1)

    @dataclass(frozen=True, kw_only=True)
    class Demanding(MeanFieldEnergy):
        strength: float

    assert choose_parts(CONFIG, objective=Demanding(strength=2.0)).objective.strength == 2.0
    with pytest.raises(InputError, match="'strength'; give an object instead of the class Demanding"):
        choose_parts(CONFIG, objective=Demanding)


def test_a_run_starts_from_a_network_of_its_own_kind(finished, tmp_path):
    path = str(finished / "last.safetensors")
    start = choose_parts(replace(CONFIG, start_from=path), network=Tiny).network
    assert torch.equal(nn.utils.parameters_to_vector(start.parameters()), parameters(finished))
    with pytest.raises(InputError, match="'tiny', not 'gnn'"):
        choose_parts(replace(CONFIG, start_from=path))
    with pytest.raises(InputError, match="cannot change its number of steps"):
        choose_parts(replace(CONFIG, start_from=path, num_steps=4), network=Tiny)
    assert train(replace(CONFIG, start_from=path), tmp_path, **OUTSIDE, progress=False)["finished"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"noise": Constant(3)}, "the noise has 3 steps, the run has 2"),
        ({"noise": "loud"}, "unknown noise 'loud'; choose one of annealed"),
        ({"objective": "none"}, "unknown objective 'none'; choose one of joint-bound"),
        ({"network": "none"}, "unknown network 'none'; choose one of gnn"),
        ({"network": Tiny(Tiny.Config(num_steps=3))}, "a network of 3 steps for a run of 2"),
        ({"network": nn.Linear(1, 1)}, "network class Linear has no name"),
        ({"problem": "none"}, "unknown problem 'none'"),
    ],
)
def test_parts_that_do_not_fit_are_refused_in_one_line(given, complaint):
    with pytest.raises(InputError, match=complaint) as refusal:
        choose_parts(CONFIG, **given)
    assert "\n" not in str(refusal.value)


def test_a_class_that_inherits_the_name_of_ours_is_refused():
    class Quiet(CategoricalNoise):
        pass

    class Deeper(Gnn):
        pass

    for given in ({"noise": Quiet}, {"network": Deeper}):
        with pytest.raises(InputError, match=r"there is a (noise|network) '\w+' already"):
            choose_parts(CONFIG, **given)


def test_settings_know_the_lists():
    for name, known in (("noise", NOISES), ("network", NETWORKS), ("objective", OBJECTIVES)):
        assert getattr(with_settings(CONFIG, [f"{name}={next(iter(known))}"]), name) in known
        with pytest.raises(InputError, match=f"{name} is 'loud'; choose one of {', '.join(known)}"):
            with_settings(CONFIG, [f"{name}=loud"])


def test_a_problem_object_brings_its_name_and_keeps_its_penalty():
    parts = choose_parts(replace(CONFIG, problem="mvc", penalty=1.5), problem=MaximumIndependentSet(penalty=1.2))
    assert (parts.config.problem, parts.problem.penalty) == ("mis", 1.2)
    assert choose_parts(replace(CONFIG, penalty=1.5), problem="mvc").problem.penalty == 1.5


def test_a_recipe_is_fitted_for_a_problem_from_outside(tmp_path):
    graphs = Collection.of("mine", get_dataset("rb-tiny").graphs("train", 60))
    fitted = fit_recipe(Crowding(), graphs, torch.device("cpu")).config
    assert fitted.problem == "crowding"
    short = replace(fitted, num_layers=1, num_hidden=8, anneal_epochs=1)
    assert train(short, tmp_path, problem=Crowding(), graphs=graphs, progress=False)["finished"]


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr("diffuco.model.networks.NETWORKS", dict(NETWORKS))


@pytest.fixture
def problems_of_mine(monkeypatch):
    monkeypatch.setattr("diffuco.problems._registered", {})


def test_a_registered_problem_is_known_by_its_name(finished, tmp_path, run, house, problems_of_mine):
    assert "unknown problem 'crowding'" in run("solve", "crowding", house).err
    register_problem(Crowding())
    assert get_problem("crowding") == Crowding()
    path = tmp_path / "found.sol"
    record = json.loads(run("solve", "crowding", house, "--method", "anneal", "--json", "--output", path).out)
    assert (record["problem"], record["objective"]) == ("crowding", 2.5)
    assert run("check", "crowding", house, path).code == 0
    assert problem_of(load_model(finished / "best.safetensors", network=Tiny)) == Crowding()
    with pytest.raises(InputError, match="unknown problem 'crwding'; did you mean 'crowding'"):
        get_problem("crwding")
    with pytest.raises(InputError, match="crowding has no constraints and so no penalty"):
        get_problem("crowding", penalty=1.5)


def test_a_registered_problem_keeps_its_settings_and_takes_a_penalty(problems_of_mine):
    class Sparing(MaximumIndependentSet):
        name = "sparing"

    register_problem(Sparing(penalty=2.0))
    register_problem(Sparing(penalty=3.0))
    assert (get_problem("sparing").penalty, get_problem("sparing", penalty=1.5).penalty) == (3.0, 1.5)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (MaximumIndependentSet(), "there is a problem 'mis' already"),
        (Crowding, r"give an object, such as Crowding\(\)"),
        (type("Unnamed", (Crowding,), {"name": ""})(), "problem class Unnamed has no name"),
    ],
)
def test_what_is_no_problem_of_ones_own_is_not_registered(given, complaint, problems_of_mine):
    with pytest.raises(InputError, match=complaint):
        register_problem(given)


def read_dashes(source):
    lines = b"".join(source.chunks()).decode().split()
    return [Graph.from_edges([tuple(map(int, line.split("-"))) for line in lines], name=source.name)]


def write_dashes(graph, out):
    out.writelines(f"{u}-{v}\n".encode() for u, v in graph.edges)


DASHES = Format("dashes", (".dashes",), "lines 'u-v', nodes from 0", read_dashes, write_dashes)


def test_a_registered_format_is_known_by_its_suffix_and_its_name(tmp_path, run, monkeypatch):
    monkeypatch.setattr("diffuco.graphs.formats.FORMATS", list(FORMATS))
    path = tmp_path / "triangle.dashes.gz"
    with pytest.raises(InputError, match="no format has this suffix"):
        write_graph(Graph.from_edges([(0, 1)]), path)
    register_format(DASHES)
    write_graph(Graph.from_edges([(0, 1), (1, 2), (0, 2)]), path)
    assert diffuco.solve(path, "max-clique").objective == 3
    assert json.loads(run("solve", "max-clique", path, "--json").out)["objective"] == 3
    assert run("generate", "rb-tiny", "--out", tmp_path / "many", "--count", 2, "--format", "dashes").code == 0
    assert run("solve", "mis", tmp_path / "many", "--method", "greedy").code == 0
    for taken in (replace(DASHES, suffixes=(".other",)), replace(DASHES, name="other"), replace(DASHES, name="metis")):
        with pytest.raises(InputError, match=r"there is a format '(dashes|\.dashes|metis)' already; choose another"):
            register_format(taken)
    with pytest.raises(InputError, match=r"no format has this suffix; rename it to one of .* \.dashes, or pass"):
        write_graph(Graph.from_edges([(0, 1)]), tmp_path / "graph.unknown")


def test_an_unknown_network_is_one_line_that_says_what_to_do(finished, registry):
    path = finished / "best.safetensors"
    with pytest.raises(InputError, match=r"network 'tiny', .*load_model\(path, network=.*register_network") as refusal:
        load_model(path)
    assert "\n" not in str(refusal.value)
    register_network(Tiny)
    assert isinstance(load_model(path).model, Tiny)
    register_network(Tiny)

    class Other(Network):
        name = "tiny"

    with pytest.raises(InputError, match="there is a network 'tiny' already"):
        register_network(Other)


def test_a_folder_and_a_card_keep_the_network(finished, tmp_path):
    path = finished / "best.safetensors"
    save_model(load_model(path, network=Tiny), tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["network"] == "tiny"
    again = load_model(tmp_path, network=Tiny)
    assert again.digest == load_model(path, network=Tiny).digest
    assert read_card(path)["model"] == {"num_steps": 2, "width": 4}


def test_a_model_from_outside_is_found_by_its_name(finished, tmp_path, monkeypatch):
    class Weighted(Crowding):
        uses_node_weights = True

    (tmp_path / "mine.safetensors").write_bytes((finished / "best.safetensors").read_bytes())
    monkeypatch.setenv("DIFFUCO_MODELS", str(tmp_path))
    graph = get_dataset("rb-tiny").graph("train", 0)
    weighted = replace(graph, node_weights=np.ones(graph.num_nodes))
    choices = [choose_model(Crowding(), [graph]), choose_model(Weighted(), [weighted])]
    # Nothing says that this network sees weights.
    assert [(choice.name, choice.is_alike) for choice in choices] == [("mine", True), ("mine", False)]
    assert isinstance(load_model("mine", network=Tiny).model, Tiny)


def test_the_list_of_models_skips_one_of_an_unknown_network(finished, tmp_path, monkeypatch, run):
    path = tmp_path / "mine.safetensors"
    path.write_bytes((finished / "best.safetensors").read_bytes())
    monkeypatch.setenv("DIFFUCO_MODELS", str(tmp_path))
    outcome = run("models", "--json")
    names = [card["name"] for card in json.loads(outcome.out)]
    assert outcome.code == 0
    assert "mis-rb-small" in names
    assert "mine" not in names
    (warning,) = outcome.warnings
    assert warning.startswith(f"warning: skipped {path}: the checkpoint holds the network 'tiny', which is not known")


def test_a_network_from_outside_can_be_watched(finished, tmp_path, registry):
    register_network(Tiny)
    model = load_model(finished / "best.safetensors").model
    path = tmp_path / "mine.safetensors"
    save_checkpoint(path, model, problem="mis", card={})
    service = Service(Limits(), [str(path)], "cpu")
    graph = get_dataset("rb-tiny").graph("train", 0)
    request = SolveRequest(problem="mis", graph={"kind": "ba"}, model="mine")
    options = service.options(request, graph, is_watched=True)
    service.check_watchable(graph, options)
    assert service.watched(options).model == "mine"


def test_engines_serve_the_gnn_alone():
    class Odd(Gnn):
        name = "odd"

    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    for network in (Tiny(Tiny.Config(2)), Odd(GnnConfig(num_steps=2, num_layers=1))):
        assert [pick_engine(name, network, gpu) for name in ("auto", "reference")] == ["reference"] * 2
        for name in ("fused", "compiled"):
            with pytest.raises(InputError, match=f"engine '{name}' computes only the network 'gnn'"):
                pick_engine(name, network, gpu)
    assert pick_engine("auto", Gnn(GnnConfig(num_steps=2)), cpu) == "reference"


def test_every_noise_and_objective_can_be_made_by_its_name():
    assert {make_noise(name, 3).name for name in NOISES} == set(NOISES)
    for name in OBJECTIVES:
        assert choose_parts(replace(CONFIG, end_temperature=0.1), objective=name).objective.name == name


def test_a_flip_probability_may_be_made_like_the_steps_it_is_asked_for():
    change = Constant(2).change_probability(torch.tensor([0, 1, 2]))
    torch.testing.assert_close(change, torch.tensor([0.0, 0.3, 0.42]))


def test_two_trainings_do_not_share_a_folder(tmp_path, run):
    with lock(tmp_path):
        with pytest.raises(InputError, match="another run is writing to it"):
            train(CONFIG, tmp_path, progress=False)
        refused = run("train", "mis-tiny", "--out", tmp_path)
        assert (refused.code, len(refused.errors)) == (2, 1)
        assert not (tmp_path / "resume.safetensors").exists()
    short = replace(CONFIG, num_layers=1, num_hidden=8)
    assert not train(short, tmp_path, stop_after_minutes=0.0, progress=False)["finished"]
    with lock(tmp_path), pytest.raises(InputError, match="another run"):
        train(short, tmp_path, resume=True, progress=False)
    assert train(short, tmp_path, resume=True, progress=False)["finished"]


def test_a_refused_resume_makes_no_folder(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        train(CONFIG, tmp_path / "none", resume=True, progress=False)
    assert not (tmp_path / "none").exists()


def train_from_elsewhere(folder: Path) -> None:
    """Train with a network that begins elsewhere in every process."""
    torch.manual_seed(int(os.environ["RANK"]))
    network = Tiny(Tiny.Config(num_steps=2))
    train(CONFIG, folder, **OUTSIDE | {"network": network}, progress=False, device="cpu")


def test_processes_share_outside_parts_and_begin_with_the_leaders_network(tmp_path):
    start_group(2, train_from_elsewhere, tmp_path / "many", folder=tmp_path)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Tiny(Tiny.Config(num_steps=2))
    train(CONFIG, tmp_path / "one", **OUTSIDE | {"network": network}, progress=False, device="cpu")
    torch.testing.assert_close(parameters(tmp_path / "many"), parameters(tmp_path / "one"), rtol=1e-4, atol=1e-5)


def test_configurations_name_parts_of_ours_by_default():
    config = TrainConfig("mis", "rb-tiny", num_steps=2, start_temperature=0.1, anneal_epochs=1)
    assert choose_parts(config).config == config
