"""The messages between clients and the server. The OpenAPI description is made from these classes."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from diffuco.problems import all_problems, get_problem

MAX_SEED = 2**53 - 1
"""Largest whole number that JavaScript holds exactly."""

NAMES = [problem.name for problem in all_problems()]


def _whole(text: str) -> str:
    """Refuse what JSON can write and Unicode does not have: half of a pair of surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"character {error.start} is half of a surrogate pair, which no text has") from None
    return text


Text = Annotated[str, AfterValidator(_whole)]
ProblemName = Annotated[
    Text, Field(json_schema_extra={"enum": [*NAMES]}), AfterValidator(lambda name: str(get_problem(name)))
]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Index = Annotated[int, Field(ge=0, le=2**31 - 2)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Message(BaseModel):
    """Refuses fields it does not know, so that a misspelt option is not silently ignored."""

    model_config = ConfigDict(extra="forbid")


class GraphText(Message):
    """The content of a graph file."""

    kind: Literal["text"]
    text: Text = Field(examples=["p edge 3 2\ne 1 2\ne 2 3\n"])
    name: str = Field(
        "graph.txt",
        max_length=200,
        description="The suffix decides the format unless `format` does.",
        examples=["path.clq"],
    )
    format: str | None = Field(None, max_length=40, description="A name from `formats` of /api/about.")


class GraphEdges(Message):
    """Edges as pairs of node numbers, counted from 0."""

    kind: Literal["edges"]
    edges: list[tuple[Index, Index]] = Field(examples=[[[0, 1], [1, 2]]])
    num_nodes: Index | None = Field(None, description="By default the largest node number plus one.")
    edge_weights: list[Finite] | None = None
    node_weights: list[Finite] | None = None


class RbGraph(Message):
    """Model RB: cliques with random edges between them."""

    kind: Literal["rb"]
    num_cliques: int = Field(12, ge=2, le=10_000)
    clique_size: int = Field(7, ge=2, le=10_000)
    tightness: Finite = Field(0.5, gt=0, le=1)
    seed: Seed = 0


class BaGraph(Message):
    """Barabási-Albert: every new node joins older ones, preferring those with many neighbours."""

    kind: Literal["ba"]
    num_nodes: int = Field(200, ge=2, le=1_000_000)
    attachments: int = Field(4, ge=1, le=1_000)
    seed: Seed = 0


class ErGraph(Message):
    """Erdős-Rényi: every pair of nodes is an edge with the same probability."""

    kind: Literal["er"]
    num_nodes: int = Field(100, ge=1, le=1_000_000)
    edge_probability: Finite = Field(0.05, ge=0, le=1)
    seed: Seed = 0


class RandomQubo(Message):
    """A QUBO with whole coefficients from -100 to 100."""

    kind: Literal["random-qubo"]
    num_nodes: int = Field(100, ge=1, le=1_000_000)
    density: Finite = Field(0.1, ge=0, le=1)
    seed: Seed = 0


GraphSource = Annotated[GraphText | GraphEdges | RbGraph | BaGraph | ErGraph | RandomQubo, Field(discriminator="kind")]


class GraphRequest(Message):
    """A graph to look at."""

    graph: GraphSource


class SolveRequest(GraphRequest):
    """A graph to solve."""

    problem: ProblemName
    method: str = Field(
        "auto",
        max_length=100,
        description="auto, or a name that `diffuco methods` lists. Options of models choose the method diffuco.",
    )
    time_limit_s: Finite | None = Field(None, gt=0, le=3600, description="Seconds; by default the method's own limit.")
    model: str | None = Field(
        None, max_length=200, description="A name from /api/models; by default the one that suits the graph."
    )
    samples: int | None = Field(None, ge=1, le=10_000, description="Solutions to draw, 8 by default; the best is kept.")
    step_factor: int | None = Field(
        None, ge=1, le=1_000, description="How often each diffusion step is taken; default 3."
    )
    refine: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="Annealing sweeps from every sample; 0 for none, by default as many as suit the graph.",
    )
    seed: Seed | None = Field(
        None,
        description="A request with a seed is solved alone, with the same answer every time; others may share a batch.",
    )


class GraphShown(Message):
    """A graph as the page draws it."""

    name: str
    nodes: int
    edges: list[int] = Field(description="Ends of all edges one after the other: u0, v0, u1, v1, ...")
    edge_weights: list[float] | None
    labels: list[int | str] | None = Field(description="Null if every node i is called i.")
    density: float
    notes: list[str] = Field(description="What was dropped or ignored.")


class Greedy(Message):
    """What a greedy heuristic finds on the same graph, for comparison."""

    objective: float
    feasible: bool
    comparison: Literal["better", "equal", "worse"] = Field(
        description="Whether the answer is better or worse than the greedy one."
    )


class Answer(Message):
    """The best solution found. An independent check computes objective and feasibility from the graph."""

    problem: ProblemName
    file: str
    nodes: int
    edges: int
    objective: float
    feasible: bool
    violations: int
    optimal: bool = Field(description="Whether it is proven optimal; a sample never is.")
    bound: float | None = Field(description="No solution is better than this; null if nothing is known.")
    gap: float | None = Field(description="By what share of the objective a solution could still be better.")
    solution: list[int | str] = Field(description="Labels of the chosen nodes; for a cut, one of its sides.")
    energies: list[float] = Field(description="Energy H of every sample after decoding and refinement.")
    objectives: list[float]
    sweeps: int
    seconds: dict[str, float]
    found_by: str = Field(description="The method that found it, or the name of the model.")
    reason: str = Field(description="Why it was chosen; empty if the request asked for it.")
    seed: int | None = Field(description="Asking with it gives the same answer; null if requests shared a batch.")
    solved_together: int = Field(description="Number of requests in the same batch.")
    greedy: Greedy
    notes: list[str]


class Event(Message):
    """One of the server-sent events of a stream."""

    event: Literal["start", "step", "solution", "error"]
    data: str = Field(description="JSON.")


class ModelCard(Message):
    """A model that requests may name."""

    name: str
    problem: ProblemName
    trained_on: str
    choose_it_for: str
    gap: str | None = Field(description="Mean gap of its samples to the best known solutions, as measured.")


class Models(Message):
    """All models of this server."""

    models: list[ModelCard]


class FormatShown(Message):
    """A format in which a graph may be sent as text."""

    suffixes: list[str] = Field(description="Suffixes of file names in this format.")
    description: str


class About(Message):
    """What this server can do."""

    version: str
    device: str
    limits: dict[str, float]
    problems: dict[ProblemName, str]
    senses: dict[ProblemName, Literal["min", "max"]]
    formats: dict[str, FormatShown] = Field(description="Text formats, by the names that requests may use.")


class Health(Message):
    """The state of the server."""

    status: Literal["ok"]
    waiting: int
    running: int = Field(description="Requests that are being solved, also for clients that left.")


class Refused(Message):
    """Why a request was not served, and what to do."""

    error: str


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Descriptions of the statuses with which an address may refuse."""
    reasons = {
        400: "The body is not JSON.",
        408: "The request took longer than the server allows.",
        413: "The body is too large.",
        422: "The graph or an option cannot be used.",
        429: "Too many requests are waiting; `Retry-After` says after how many seconds to try again.",
        503: "The server is being stopped.",
    }
    return {status: {"model": Refused, "description": reasons[status]} for status in statuses}
