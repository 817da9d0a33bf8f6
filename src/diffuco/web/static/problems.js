// What each problem means in the picture: names, colours, which edges and nodes to highlight, and a kind of graph that
// suits its shipped model.

const inside = (a, b) => a && b;
const outside = (a, b) => !a && !b;
const between = (a, b) => a !== b;

export const PROBLEMS = {
  mis: {
    short: "Independent set",
    text: "The largest or heaviest set of nodes no two of which are joined by an edge.",
    on: "in the set", wrong: "edge inside the set", marks: inside, suits: "rb", unit: "node",
  },
  mvc: {
    short: "Vertex cover",
    text: "The smallest or lightest set of nodes that touches every edge.",
    on: "in the cover", wrong: "edge not covered", marks: outside, suits: "rb", unit: "node",
  },
  "max-clique": {
    short: "Clique",
    text: "The largest or heaviest set of nodes all of which are joined to each other.",
    on: "in the clique", good: "edge inside the clique", marks: inside, suits: "rb", unit: "node",
  },
  "max-cut": {
    short: "Cut",
    text: "Two sides such that as many edges as possible, or the heaviest, run between them.",
    on: "one side", off: "other side", good: "edge that is cut", marks: between, suits: "ba", unit: "cut",
  },
  mds: {
    short: "Dominating set",
    text: "The smallest or lightest set of nodes such that every node is in it or next to it.",
    on: "in the set", wrong: "node not dominated", dominates: true, suits: "ba", unit: "node",
  },
  qubo: {
    short: "QUBO",
    text: "Zeros and ones that make a quadratic function as small as possible.",
    on: "one", good: "coefficient below zero that counts", wrong: "above zero", marks: inside, bySign: true, suits: "random-qubo", unit: "value",
  },
};

/** Edges and nodes to point out for the states `on` (0 or 1 per node), and how many constraints they break. */
export function pointedOut(problem, graph, on) {
  const good = [], wrong = [], lonely = [];
  const { marks, bySign, dominates } = PROBLEMS[problem];
  const { edges, edgeWeights, numNodes } = graph;
  if (dominates) {
    const reached = Uint8Array.from(on);
    for (let e = 0; e < edges.length; e += 2) {
      if (on[edges[e]]) reached[edges[e + 1]] = 1;
      if (on[edges[e + 1]]) reached[edges[e]] = 1;
    }
    for (let i = 0; i < numNodes; i++) if (!reached[i]) lonely.push(i);
    return { good, wrong, lonely, broken: lonely.length };
  }
  for (let e = 0; e < edges.length; e += 2) {
    if (!marks(on[edges[e]], on[edges[e + 1]])) continue;
    const isWrong = bySign ? (edgeWeights?.[e / 2] ?? 1) > 0 : Boolean(PROBLEMS[problem].wrong);
    (isWrong ? wrong : good).push(e);
  }
  let broken = bySign ? 0 : wrong.length;
  if (problem === "max-clique") {
    const size = on.reduce((sum, value) => sum + value, 0);
    broken = (size * (size - 1)) / 2 - good.length;
  }
  return { good, wrong, lonely, broken };
}
