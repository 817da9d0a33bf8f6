// A worker that places the nodes of a graph: springs along edges, repulsion between all nodes (Barnes-Hut), a pull to
// the centre. Positions are posted as they settle. Of a graph that is too large, it places groups of nodes.

const THETA = 0.81; // square of the opening angle below which a cell counts as one body
const REPULSION = 34;
const SPRING = 26;
const PULL = 0.035;
const FRICTION = 0.62;
const SMALL = 60; // most nodes that start on a circle
const LINES_PER_GROUP = 6; // the strongest links of a group, which are drawn

/** Place the nodes; or with `mostDots`, gather them in at most that many groups, tell these, and place them. */
onmessage = ({ data: { id, numNodes, edges, mostDots } }) => {
  if (!mostDots) return settle(id, numNodes, edges);
  const coarse = gather(numNodes, edges, mostDots);
  postMessage({ id, coarse });
  settle(id, coarse.numNodes, coarse.edges);
};

function settle(id, numNodes, edges) {
  const x = new Float64Array(numNodes), y = new Float64Array(numNodes);
  const vx = new Float64Array(numNodes), vy = new Float64Array(numNodes);
  const order = numNodes <= SMALL ? walk(numNodes, edges) : null;
  for (let i = 0; i < numNodes; i++) {
    // A sunflower: even, without two nodes at one place. Few nodes lie on a circle, so that a cycle stays one.
    const radius = order ? 5 * numNodes + 10 : 11 * Math.sqrt(i + 0.5);
    const angle = order ? (2 * Math.PI * order[i]) / numNodes : i * 2.399963229728653;
    x[i] = radius * Math.cos(angle);
    y[i] = radius * Math.sin(angle);
  }
  const degree = new Float64Array(numNodes);
  for (const node of edges) degree[node] += 1;
  const rounds = numNodes > 3000 ? 120 : numNodes > 800 ? 200 : 300;
  const decay = 1 - Math.pow(0.004, 1 / rounds);
  let last = 0;
  for (let round = 0, heat = 1; round < rounds; round++, heat *= 1 - decay) {
    pullAlongEdges(edges, degree, x, y, vx, vy, heat);
    repel(x, y, vx, vy, heat);
    for (let i = 0; i < numNodes; i++) {
      vx[i] = (vx[i] - x[i] * PULL * heat) * FRICTION;
      vy[i] = (vy[i] - y[i] * PULL * heat) * FRICTION;
      x[i] += vx[i];
      y[i] += vy[i];
    }
    const now = performance.now();
    if (now - last > 45 || round === rounds - 1) {
      last = now;
      const positions = new Float32Array(2 * numNodes);
      for (let i = 0; i < numNodes; i++) {
        positions[2 * i] = x[i];
        positions[2 * i + 1] = y[i];
      }
      postMessage({ id, positions, isFinal: round === rounds - 1 }, [positions.buffer]);
    }
  }
  if (numNodes === 0) postMessage({ id, positions: new Float32Array(0), isFinal: true });
}

/** Groups of nodes that lie together, by joining pairs, then pairs of pairs and so on, and the links between them. */
function gather(numNodes, edges, mostDots) {
  const groups = Int32Array.from({ length: numNodes }, (_, i) => i);
  let count = numNodes, links = edges;
  while (count > mostDots) {
    const paired = pairUp(count, links);
    count = paired.count;
    for (let i = 0; i < numNodes; i++) groups[i] = paired.place[groups[i]];
    links = linksBetween(groups, edges);
  }
  const sizes = new Int32Array(count);
  for (const group of groups) sizes[group]++;
  return { groups, sizes, numNodes: count, edges: strongest(count, links) };
}

/** Pair every node with a free neighbour, else with another neighbour's neighbour; nodes without any pair up at random. */
function pairUp(numNodes, links) {
  const neighbours = neighboursOf(numNodes, links);
  const place = new Int32Array(numNodes).fill(-1);
  let count = 0;
  const isFree = (node) => place[node] < 0;
  const pairOff = (nodes) => {
    const free = nodes.filter(isFree);
    for (let i = 0; i + 1 < free.length; i += 2) place[free[i]] = place[free[i + 1]] = count++;
  };
  const nodes = Array.from(neighbours.keys()).sort((a, b) => neighbours[a].length - neighbours[b].length);
  for (const node of nodes) {
    const mate = isFree(node) ? neighbours[node].find(isFree) : undefined;
    if (mate !== undefined) place[node] = place[mate] = count++;
  }
  neighbours.forEach(pairOff);
  pairOff(nodes.filter((node) => !neighbours[node].length));
  for (const node of nodes) if (isFree(node)) place[node] = count++;
  return { place, count };
}

/** Pairs of groups with edges between them, those with the most edges first. */
function linksBetween(groups, edges) {
  const counts = new Map();
  for (let e = 0; e < edges.length; e += 2) {
    const u = groups[edges[e]], v = groups[edges[e + 1]];
    const pair = Math.min(u, v) * groups.length + Math.max(u, v);
    if (u !== v) counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  return Int32Array.from(sorted.flatMap(([pair]) => [Math.floor(pair / groups.length), pair % groups.length]));
}

/** The links that are among the first of one of their ends. */
function strongest(count, links) {
  const kept = [], seen = new Int32Array(count);
  for (let e = 0; e < links.length; e += 2) {
    const [u, v] = [links[e], links[e + 1]];
    if (Math.min(seen[u]++, seen[v]++) < LINES_PER_GROUP) kept.push(u, v);
  }
  return Int32Array.from(kept);
}

function neighboursOf(numNodes, edges) {
  const neighbours = Array.from({ length: numNodes }, () => []);
  for (let e = 0; e < edges.length; e += 2) {
    neighbours[edges[e]].push(edges[e + 1]);
    neighbours[edges[e + 1]].push(edges[e]);
  }
  return neighbours;
}

/** The place of every node on a walk that goes from neighbour to neighbour where it can. */
function walk(numNodes, edges) {
  const neighbours = neighboursOf(numNodes, edges);
  const place = new Int32Array(numNodes).fill(-1);
  let next = 0;
  for (let first = 0; first < numNodes; first++) {
    const stack = [first];
    while (stack.length) {
      const node = stack.pop();
      if (place[node] >= 0) continue;
      place[node] = next++;
      stack.push(...neighbours[node]);
    }
  }
  return place;
}

function pullAlongEdges(edges, degree, x, y, vx, vy, heat) {
  for (let e = 0; e < edges.length; e += 2) {
    const u = edges[e], v = edges[e + 1];
    const dx = x[v] + vx[v] - x[u] - vx[u] || 1e-6, dy = y[v] + vy[v] - y[u] - vy[u] || 1e-6;
    const distance = Math.sqrt(dx * dx + dy * dy);
    const force = ((distance - SPRING) / distance) * heat / Math.min(degree[u], degree[v]);
    const share = degree[u] / (degree[u] + degree[v]);
    vx[v] -= dx * force * share;
    vy[v] -= dy * force * share;
    vx[u] += dx * force * (1 - share);
    vy[u] += dy * force * (1 - share);
  }
}

function repel(x, y, vx, vy, heat) {
  const tree = quadtree(x, y);
  const stack = new Int32Array(512);
  for (let i = 0; i < x.length; i++) {
    let top = 0;
    stack[top++] = 0;
    while (top > 0) {
      const cell = stack[--top];
      if (tree.mass[cell] === 0 || tree.body[cell] === i) continue;
      const dx = tree.x[cell] / tree.mass[cell] - x[i], dy = tree.y[cell] / tree.mass[cell] - y[i];
      const squared = Math.max(dx * dx + dy * dy, 4);
      const isLeaf = tree.body[cell] >= 0 || tree.child[4 * cell] === -1;
      if (isLeaf || tree.size[cell] * tree.size[cell] < THETA * squared) {
        const force = (REPULSION * tree.mass[cell] * heat) / squared;
        vx[i] -= dx * force;
        vy[i] -= dy * force;
      } else {
        for (let quarter = 0; quarter < 4; quarter++) stack[top++] = tree.child[4 * cell + quarter];
      }
    }
  }
}

/** Cells in flat arrays: sums of positions, number of bodies, the one body of a leaf, four children or -1. */
function quadtree(x, y) {
  let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
  for (let i = 0; i < x.length; i++) {
    left = Math.min(left, x[i]); right = Math.max(right, x[i]);
    top = Math.min(top, y[i]); bottom = Math.max(bottom, y[i]);
  }
  const tree = { x: [0], y: [0], mass: [0], body: [-1], child: [-1, -1, -1, -1] };
  tree.size = [Math.max(right - left, bottom - top, 1) * 1.01];
  tree.left = [left];
  tree.top = [top];
  for (let i = 0; i < x.length; i++) {
    let cell = 0, depth = 0;
    while (tree.mass[cell] > 0 && depth++ < 40) {
      if (tree.child[4 * cell] === -1) {
        split(tree, cell);
        const other = tree.body[cell];
        tree.body[cell] = -1;
        if (other >= 0) place(tree, quarterOf(tree, cell, x[other], y[other]), other, x[other], y[other]);
      }
      tree.mass[cell] += 1;
      tree.x[cell] += x[i];
      tree.y[cell] += y[i];
      cell = quarterOf(tree, cell, x[i], y[i]);
    }
    place(tree, cell, i, x[i], y[i]);
  }
  return tree;
}

function place(tree, cell, body, x, y) {
  tree.body[cell] = tree.mass[cell] === 0 ? body : -1;
  tree.mass[cell] += 1;
  tree.x[cell] += x;
  tree.y[cell] += y;
}

function split(tree, cell) {
  const half = tree.size[cell] / 2;
  for (let quarter = 0; quarter < 4; quarter++) {
    tree.child[4 * cell + quarter] = tree.mass.length;
    tree.x.push(0);
    tree.y.push(0);
    tree.mass.push(0);
    tree.body.push(-1);
    tree.child.push(-1, -1, -1, -1);
    tree.size.push(half);
    tree.left.push(tree.left[cell] + (quarter & 1) * half);
    tree.top.push(tree.top[cell] + (quarter >> 1) * half);
  }
}

function quarterOf(tree, cell, x, y) {
  const half = tree.size[cell] / 2;
  return tree.child[4 * cell + (x > tree.left[cell] + half ? 1 : 0) + (y > tree.top[cell] + half ? 2 : 0)];
}
