"""The files that outlive a training process: checkpoints with their cards, and the state to resume from."""

from dataclasses import asdict
from pathlib import Path

from diffuco.foundation.provenance import hardware, source_commit
from diffuco.graphs.statistics import GraphStatistics
from diffuco.model.checkpoint import save_checkpoint
from diffuco.training.parts import Parts
from diffuco.training.reporting import Reporter
from diffuco.training.resume import Progress, save_state
from diffuco.training.step import TrainStep
from diffuco.training.validation import Validation


class Keeper:
    """Validates the network at intervals and writes what has to outlive the process."""

    def __init__(
        self, out: Path, parts: Parts, take_step: TrainStep, validation: Validation, statistics: GraphStatistics
    ) -> None:
        self.out, self.parts, self.config = out, parts, parts.config
        self.engine, self.optimizer = take_step.engine, take_step.optimizer
        self.validation, self.statistics = validation, statistics

    def keep(self, state: Progress, report: Reporter, *, stops: bool) -> None:
        """After a step, validate and write the files that are due; when the sitting ends, all but `best`."""
        config = self.config
        ends = stops or state.step == config.total_steps
        scores: dict[str, float] = {}
        if state.step % config.validate_every == 0 or state.step == config.total_steps:
            scores = self.validation.run()
            report.validation(state.step, scores)
            if scores["energy"] < state.best_energy:
                state.best_energy = scores["energy"]
                self._save_model("best", state, scores)
        if scores or ends:
            self._save_model("last", state, scores)
        if state.step % config.checkpoint_every == 0 or ends:
            save_state(self.out, self.parts, self.optimizer, state)

    def _save_model(self, name: str, state: Progress, scores: dict[str, float]) -> None:
        card = {
            "dataset": self.config.dataset,
            "graphs": asdict(self.statistics),
            "training": asdict(self.config),
            "parts": self.parts.settings,
            "engine": self.engine,
            "step": state.step,
            "minutes": round(state.seconds / 60, 2),
            "validation": scores,
            "commit": source_commit(),
            "hardware": hardware(self.validation.device),
        }
        save_checkpoint(self.out / f"{name}.safetensors", self.parts.network, problem=self.config.problem, card=card)
