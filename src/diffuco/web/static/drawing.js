// A graph that is drawn by hand: places of nodes, pairs of them that are joined, and what came before every change.

export class Drawing {
  constructor() {
    this.before = [];
    this.places = [];
    this.edges = [];
    this.picked = -1; // the node that a click on another one joins
  }

  add(place) {
    this.change([...this.places, place], this.edges);
  }

  /** Join two nodes, or part them if they are joined. */
  join(u, v) {
    const others = this.edges.filter((edge) => !(edge.includes(u) && edge.includes(v)));
    this.change(this.places, others.length < this.edges.length ? others : [...this.edges, [u, v]]);
  }

  /** Remove the node that is picked; those after it move up by one. */
  remove() {
    const gone = this.picked;
    const kept = this.edges.filter((edge) => !edge.includes(gone));
    this.change(this.places.filter((_, i) => i !== gone), kept.map((edge) => edge.map((end) => end - (end > gone))));
  }

  clear() {
    this.change([], []);
  }

  undo() {
    Object.assign(this, this.before.pop(), { picked: -1 });
  }

  change(places, edges) {
    this.before.push({ places: this.places, edges: this.edges });
    Object.assign(this, { places, edges, picked: -1 });
  }
}
