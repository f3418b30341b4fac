// One program as it is drawn: the columns of the data, and what is looked up in them.
const NODE = { width: 150, height: 34 };
const STATES = ["kept", "changed", "new", "removed"];

class Graph {
  constructor(data) {
    Object.assign(this, data.nodes);
    this.data = data;
    this.size = (this.op || []).length;
    this.byClass = new Map();
    this.users = Array.from({ length: this.size }, () => []);
    this.operands = Array.from({ length: this.size }, () => []);
    this.edges = data.edges.map((edge) => this.edge(edge));
    for (let node = 0; node < this.size; node++) {
      if (!this.byClass.has(this.class[node])) this.byClass.set(this.class[node], []);
      this.byClass.get(this.class[node]).push(node);
    }
    this.dearest = Math.max(1e-12, ...(this.size ? [this.seconds.reduce((a, b) => Math.max(a, b), 0)] : []));
    this.texts = Array.from({ length: this.size }, (_, node) => this.text(node));
  }

  edge([source, target, ...lanes]) {
    this.users[source].push(target);
    this.operands[target].push(source);
    const far = lanes.length === 1 && lanes[0] === -1;
    const points = [[this.x[source] + NODE.width / 2, this.y[source] + NODE.height]];
    if (!far) {
      const step = lanes.length ? (this.y[target] - this.y[source]) / (lanes.length + 1) : 0;
      lanes.forEach((x, place) => points.push([x, this.y[source] + step * (place + 1) + NODE.height / 2]));
    }
    points.push([this.x[target] + NODE.width / 2, this.y[target]]);
    const xs = points.map((point) => point[0]), ys = points.map((point) => point[1]);
    return { source, target, far, points, box: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)] };
  }

  opOf(node) { return this.data.ops[this.op[node]]; }
  kindOf(node) { return this.data.kinds[this.kind[node]]; } // what the file calls the op, where that is another name
  titleOf(node) { return this.kindOf(node) || short(this.opOf(node)); }
  typeOf(node) { return this.data.types[this.type[node]]; }
  rulesOf(node) { return this.rules[node].map((rule) => this.data.rules[rule]); }

  text(node) { // what a search looks at
    return [this.opOf(node), this.kindOf(node), this.name[node], ...this.outputs[node], ...this.rulesOf(node)].join("\n").toLowerCase();
  }

  at(x, y) {
    for (let node = 0; node < this.size; node++) {
      if (x >= this.x[node] && x <= this.x[node] + NODE.width && y >= this.y[node] && y <= this.y[node] + NODE.height) return node;
    }
    return -1;
  }

  nearest(x, y, accepts) {
    let best = -1, least = Infinity;
    for (let node = 0; node < this.size; node++) {
      const far = (this.x[node] + NODE.width / 2 - x) ** 2 + (this.y[node] + NODE.height / 2 - y) ** 2;
      if (far < least && accepts(node)) { least = far; best = node; }
    }
    return best;
  }

  counts() {
    const found = {};
    for (const state of this.state) found[state] = (found[state] || 0) + 1;
    return found;
  }
}
