"""What the paper prints, as data: its tables, and the figures whose numbers are known.

Values are means over the paper's own test graphs, which are not ours: compare gaps, not means. Times are totals over a
test set on the hardware of those who reported them. Empty fields are not in the paper.
"""

from dataclasses import dataclass

PAPER_TEST_GRAPHS = 500


@dataclass(frozen=True)
class Reported:
    """A line of a table: a system on a benchmark."""

    method: str
    kind: str
    """OR (solver), H (heuristic), SL or UL (learned with or without solved examples)."""
    value: float | None
    """Mean objective."""
    error: float | None = None
    """Over training seeds."""
    time: str = ""
    """d:h:m:s."""
    limit_s: int | None = None
    """Seconds per graph that a solver was given."""

    @property
    def label(self) -> str:
        """The system and its time limit.

        >>> Reported("Gurobi", "OR", 730.87, limit_s=60).label
        'Gurobi, 60 s per graph'
        """
        return self.method if self.limit_s is None else f"{self.method}, {self.limit_s} s per graph"

    @property
    def seconds_per_graph(self) -> float | None:
        """The time as a number.

        >>> Reported("Gurobi", "OR", 730.87, time="8:20:00").seconds_per_graph
        60.0
        """
        if not self.time:
            return None
        parts = [int(part) for part in reversed(self.time.split(":"))]
        return sum(part * unit for part, unit in zip(parts, (1, 60, 3600, 86400), strict=False)) / PAPER_TEST_GRAPHS


CE, CE_ST, RAW = "DiffUCO: CE", "DiffUCO: CE-ST8", "DiffUCO"

MIS_RB_SMALL = (
    Reported("Gurobi", "OR", 19.98, time="47:34"),
    Reported("KaMIS", "OR", 20.10, time="1:24:12"),
    Reported("LwtD", "UL", 19.01, time="1:17"),
    Reported("INTEL", "SL", 18.47, time="13:04"),
    Reported("DGL", "SL", 17.36, time="12:47"),
    Reported("LTFT", "UL", 19.18, time="0:32"),
    Reported(RAW, "UL", 18.88, 0.06, "0:07"),
    Reported(CE, "UL", 19.24, 0.05, "0:54"),
    Reported(CE_ST, "UL", 19.24, 0.05, "0:13"),
)
MIS_RB_LARGE = (
    Reported("Gurobi", "OR", 40.90, time="2:10:26"),
    Reported("KaMIS", "OR", 43.15, time="2:03:36"),
    Reported("LwtD", "UL", 32.32, time="7:33"),
    Reported("INTEL", "SL", 34.47, time="20:17"),
    Reported("DGL", "SL", 34.50, time="23:54"),
    Reported("LTFT", "UL", 37.48, time="4:22"),
    Reported(RAW, "UL", 38.10, 0.13, "0:10"),
    Reported(CE, "UL", 38.87, 0.13, "4:57"),
    Reported(CE_ST, "UL", 38.87, 0.13, "1:05"),
)
MDS_BA_SMALL = (
    Reported("Gurobi", "OR", 27.89, time="1:47"),
    Reported("Greedy", "H", 37.39, time="2:13"),
    Reported("MFA", "H", 36.36, time="2:56"),
    Reported("EGN: CE", "UL", 30.68, time="1:00"),
    Reported("EGN-Anneal: CE", "UL", None),  # the paper prints two times in place of value and time
    Reported("LTFT", "UL", 28.61, time="2:20"),
    Reported(RAW, "UL", 28.30, 0.10, "0:05"),
    Reported(CE, "UL", 28.20, 0.09, "0:54"),
    Reported(CE_ST, "UL", 28.20, 0.09, "0:13"),
)
MDS_BA_LARGE = (
    Reported("Gurobi", "OR", 103.80, time="13:48"),
    Reported("Greedy", "H", 140.52, time="35:01"),
    Reported("MFA", "H", 126.56, time="36:31"),
    Reported("EGN: CE", "UL", 116.76, time="3:56"),
    Reported("EGN-Anneal: CE", "UL", 111.50, time="3:55"),
    Reported("LTFT", "UL", 110.28, time="32:12"),
    Reported(RAW, "UL", 107.01, 0.33, "0:05"),
    Reported(CE, "UL", 106.61, 0.30, "3:28"),
    Reported(CE_ST, "UL", 106.61, 0.31, "0:40"),
)
MAX_CLIQUE_RB_SMALL = (
    Reported("Gurobi", "OR", 19.05, time="1:55"),
    Reported("Greedy", "H", 13.53, time="0:25"),
    Reported("MFA", "H", 14.82, time="0:27"),
    Reported("EGN: CE", "UL", 12.02, time="0:41"),
    Reported("EGN-Anneal: CE", "UL", 14.10, time="2:16"),
    Reported("LTFT", "UL", 16.24, time="0:42"),
    Reported(RAW, "UL", 14.51, 0.39, "0:04"),
    Reported(CE, "UL", 16.22, 0.09, "1:00"),
    Reported(CE_ST, "UL", 16.30, 0.08, "0:13"),
)
MAX_CUT_BA_SMALL = (
    Reported("Gurobi", "OR", 730.87, 2.35, "8:30:00", limit_s=60),
    Reported("Greedy", "H", 688.31, time="0:13"),
    Reported("MFA", "H", 704.03, time="1:36"),
    Reported("EGN: CE", "UL", 693.45, time="0:46"),
    Reported("EGN-Anneal: CE", "UL", 696.73, time="0:45"),
    Reported("LTFT", "UL", 704.0, time="2:57"),
    Reported(RAW, "UL", 727.11, 2.31, "0:04"),
    Reported(CE, "UL", 727.32, 2.33, "1:00"),
    Reported(CE_ST, "UL", 727.33, 2.31, "0:13"),
)
MAX_CUT_BA_LARGE = (
    Reported("Gurobi", "OR", 2944.38, 0.86, "1:17:35:00", limit_s=300),
    Reported("Greedy", "H", 2786.00, time="3:07"),
    Reported("MFA", "H", 2833.86, time="7:16"),
    Reported("EGN: CE", "UL", 2870.34, time="2:49"),
    Reported("EGN-Anneal: CE", "UL", 2863.23, time="2:48"),
    Reported("LTFT", "UL", 2864.0, time="21:20"),
    Reported(RAW, "UL", 2947.27, 1.50, "0:04"),
    Reported(CE, "UL", 2947.53, 1.48, "3:47"),
    Reported(CE_ST, "UL", 2947.53, 1.49, "0:53"),
)

RATIOS_BY_TIGHTNESS: dict[str, tuple[float, ...]] = {
    "DiffUCO": (1.0065, 1.0050, 1.0049, 1.0044, 1.0026, 1.0033, 1.0029, 1.0022, 1.0012, 1.0),
    "VAG-CO": (1.0104, 1.0093, 1.0094, 1.0070, 1.0054, 1.0058, 1.0052, 1.0044, 1.0016, 1.0),
    "Gurobi, 0.5 s per graph": (1.0034, 1.0019, 1.0003, *(7 * (1.0,))),
    "EGN-Anneal": (1.0144,),
    "EGN": (1.0181,),
    "DB-Greedy": (1.0141,),
}
"""Fig. 2 (left): AR* of minimum vertex covers by p = 0.25 ... 1 in ten steps; some are known at p = 0.25 alone."""

RATIO_SECONDS = {"DiffUCO": 0.02, "VAG-CO": 0.20, "Gurobi, 0.5 s per graph": 0.5}
"""Seconds a graph in the same figure."""

N_QUERY = {
    "MaxCut BA-small": 482,
    "MaxCut BA-large": 197,
    "MIS RB-small": 8596,
    "MIS RB-large": 48216,
    "MDS BA-small": 348830,
    "MDS BA-large": 31525,
    "MaxCl RB-small": 1752059,
}
"""Table 4."""

GSET_GROUPS = ("800", "1K", "2K", ">=3K")

GSET_DEVIATIONS: dict[str, tuple[float | None, ...]] = {
    "Greedy": (411.44, 359.11, 737.00, 774.25),
    "SDP": (245.44, 229.22, None, None),
    "RUN-CSP": (185.89, 156.56, 357.33, 401.00),
    "ECO-DQN": (65.11, 54.67, 157.00, 428.25),
    "ECORD": (8.67, 8.78, 39.22, 187.75),
    "ANYCSP": (1.22, 2.44, 13.11, 51.63),
    "DiffUCO: CE-ST8": (4.11, 6.33, 31.67, 116.75),
}
"""Table 5: mean distance to the best known cut, by the number of nodes."""
