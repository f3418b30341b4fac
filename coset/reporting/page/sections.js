// What stands below the graphs: a section for each thing that the report says, left out where it says nothing.
const MOST_ROWS = 12;

function section(title, note, ...children) {
  return el("section", { "aria-label": title }, el("h2", {}, el("span", {}, title), note ? el("small", {}, note) : null), ...children);
}

function table(columns, rows) { // a column that starts with ">" holds numbers, with "-" text of any length
  const kind = columns.map((column) => ({ ">": "number", "-": "wide" })[column[0]]);
  const head = el("tr", {}, columns.map((column, place) => el("th", { class: kind[place] }, column.replace(/^[>-]/, ""))));
  return el("table", {}, el("thead", {}, head), el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, place) => el("td", { class: kind[place] }, cell))))));
}

function shortened(rows, build) { // the first rows, and a button for the others
  const box = el("div", {}, build(rows.slice(0, MOST_ROWS)));
  if (rows.length <= MOST_ROWS) return box;
  const more = el("button", { class: "more", onclick: () => box.replaceChildren(build(rows)) }, `Show ${rows.length - MOST_ROWS} more`);
  box.append(more);
  return box;
}

function bar(parts, most, height = 7) { // [value, color] one below the other
  const root = svg("svg", { viewBox: `0 0 100 ${parts.length * (height + 1)}`, preserveAspectRatio: "none", height: parts.length * (height + 1) });
  parts.forEach(([value, color], place) => {
    root.append(svg("rect", { x: 0, y: place * (height + 1), width: Math.max(0, (100 * value) / most), height, fill: `var(--${color})` }));
  });
  return root;
}

function costSection(costs, names) {
  if (!costs || !costs.length) return null;
  const most = Math.max(...costs.flatMap((each) => each.seconds)), totals = [0, 1].map((side) => sum(costs.map((each) => each.seconds[side])));
  const rows = (shown) => el("div", { class: "bars" }, shown.flatMap((each) => [
    el("span", { class: "label", title: each.op }, short(each.op)),
    bar([[each.seconds[0], "kept"], [each.seconds[1], "cost"]], most),
    el("span", { class: "value" }, `${seconds(each.seconds[0])} → ${seconds(each.seconds[1])}`, el("br"), el("span", { class: "muted" }, `${count(each.count[0])} → ${count(each.count[1])}`)),
  ]));
  return section("Cost by op", `predicted, ${seconds(totals[0])} → ${seconds(totals[1])}`,
    el("div", { class: "key" }, el("span", {}, swatch("kept"), names[0]), el("span", {}, swatch("cost"), names[1]), el("span", {}, "seconds, and number of ops")),
    shortened(costs, rows));
}

function rulesSection(rules, search) {
  if (!rules) return null;
  const rows = (shown) => table(["rule, with its promise and its assurance", ">uses"], shown.map((rule) => [
    [el("button", { class: "link", onclick: () => search(rule.name) }, rule.name), el("div", { class: "muted" }, `${rule.numerics} · ${rule.assurance}`)], count(rule.count)]));
  const sorted = [...rules].sort((a, b) => b.count - a.count);
  return section("Rules used", "an upper bound; a certificate may need fewer", rules.length ? shortened(sorted, rows) : el("p", { class: "muted" }, "None was needed."));
}

function growthSection(egraph) {
  if (!egraph) return null;
  const growth = egraph.growth || [];
  const note = `${count(egraph.enodes)} e-nodes, ${count(egraph.eclasses)} classes, stopped: ${egraph.stop}`;
  const words = el("p", { class: "muted" }, `${plural(egraph.iterations, "iteration")}; ${plural(egraph.regions, "region")} of the program at ${plural(egraph.places, "place")}.`);
  if (!growth.length) return section("The search", note, words);
  const totals = new Map();
  for (const step of growth) for (const [rule, made] of Object.entries(step.rules || {})) totals.set(rule, (totals.get(rule) || 0) + made);
  const rules = [...totals].sort((a, b) => b[1] - a[1]), most = rules.length ? rules[0][1] : 1;
  const rows = (shown) => el("div", { class: "bars names" }, shown.flatMap(([rule, made]) => [
    el("span", { class: "label", title: rule }, rule), bar([[made, "changed"]], most), el("span", { class: "value" }, count(made))]));
  return section("The search", note, words, growthChart(growth),
    el("div", { class: "key" }, el("span", {}, swatch("changed"), "e-nodes"), el("span", {}, swatch("new"), "classes"), el("span", {}, "by iteration; a line for each new phase")),
    rules.length ? el("p", { class: "muted" }, "Matches applied, by rule") : null, rules.length ? shortened(rules, rows) : null);
}

function growthChart(growth) {
  const wide = 360, high = 120, left = 44, foot = 16, most = Math.max(...growth.map((step) => step.enodes), 1), last = Math.max(1, growth.length - 1);
  const x = (place) => left + ((wide - left - 4) * place) / last, y = (value) => 6 + (high - foot - 6) * (1 - value / most);
  const root = svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": "e-nodes and classes by iteration" });
  for (const share of [0, 0.5, 1]) {
    root.append(svg("line", { x1: left, x2: wide - 4, y1: y(most * share), y2: y(most * share), stroke: "var(--line)" }));
    root.append(svg("text", { x: left - 6, y: y(most * share) + 3.5, "text-anchor": "end" }, count(Math.round(most * share))));
  }
  let labelled = -Infinity;
  growth.forEach((step, place) => {
    if (place && growth[place - 1].phase === step.phase) return;
    if (place) root.append(svg("line", { x1: x(place - 0.5), x2: x(place - 0.5), y1: 2, y2: high - foot, stroke: "var(--faint)", "stroke-dasharray": "2 3" }));
    if (x(place) - labelled < 36) return;
    labelled = x(place);
    const ending = x(place) > wide - 60;
    root.append(svg("text", { x: ending ? wide - 4 : x(place), y: high - 3, "text-anchor": ending ? "end" : "start" }, step.phase));
  });
  for (const [key, color] of [["eclasses", "new"], ["enodes", "changed"]]) {
    root.append(svg("polyline", { points: growth.map((step, place) => `${x(place)},${y(step[key])}`).join(" "), fill: "none", stroke: `var(--${color})`, "stroke-width": 1.8, "stroke-linejoin": "round" }));
  }
  growth.forEach((step, place) => root.append(svg("circle", { cx: x(place), cy: y(step.enodes), r: 2.2, fill: "var(--changed)" },
    svg("title", {}, `${step.phase} ${step.iteration}: ${count(step.enodes)} e-nodes, ${count(step.eclasses)} classes, ${seconds(step.seconds)}`))));
  return root;
}

function placesSection(report) {
  if (report.on_target === null || report.on_target === undefined) return null;
  const moved = report.transfers || { count: 0, bytes: 0, seconds: 0 };
  const rows = (report.host || []).map((each) => [each.op, count(each.count), seconds(each.seconds), each.reason]);
  return section("Where it runs", `${plural(report.on_target, "op")} on ${report.target}`,
    el("p", {}, `${plural(moved.count, "transfer")}, ${(moved.bytes / 1e6).toFixed(3)} MB, ${seconds(moved.seconds)}.`),
    rows.length ? table(["on the host", ">times", ">predicted", "-why"], rows) : el("p", { class: "muted" }, "Nothing is left to the host."));
}

function missesSection(misses) {
  if (!misses || !misses.length) return null;
  const written = (values) => (values === null || values === undefined ? "" : typeof values === "object" ? Object.entries(values).map(([key, value]) => `${key} = ${value}`).join(", ") : String(values));
  const rows = (shown) => table(["rule", "at", "-what did not hold", "-values"], shown.map((miss) => [miss.rule, miss.node, miss.condition, written(miss.values)].map((cell) => cell ?? "")));
  return section("Near misses", "rules that all but matched", shortened(misses, rows));
}

function checkSection(check) {
  if (!check) return null;
  const verdict = check.ok ? el("b", { class: "good" }, "Equal within tolerance") : el("b", { class: "bad" }, `Different: ${check.problem || "beyond the tolerance"}`);
  const rows = [["inputs", (check.inputs || []).join(", ")], ["apart by at most", `${number(check.max_abs)} (${number(check.max_rel)} relative)`], ["tolerance", number(check.tolerance)]];
  if ((check.skipped || []).length) rows.push(["not run by the original", check.skipped.join(", ")]);
  return section(DATA.kind === "diff" ? "Outputs" : "Comparison with the original", "", el("p", {}, verdict), pairs(rows));
}
const number = (value) => (value === null || value === undefined ? "none" : value === 0 ? "0" : Math.abs(value) < 1e-3 ? value.toExponential(2) : value.toPrecision(3));

function pairs(rows) {
  return el("dl", { class: "facts wide" }, rows.filter(([, value]) => value !== "" && value !== null && value !== undefined).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function certificateSection(proof) {
  if (!proof) return null;
  if (!proof.ok) return section("Certificate", "none", el("p", {}, proof.reason || "There is none."));
  return section("Certificate", "checked", pairs([["steps", count(proof.steps)], ["size", `${count(proof.bytes)} B`], ["rests on", `rules that are ${proof.assurance} or better; numerics ${proof.numerics} or stronger`]]));
}

function stagesSection(report) {
  const spent = report.seconds;
  if (!spent) return null;
  const colors = { import: "kept", saturate: "changed", extract: "accent", lower: "new", check: "cost" };
  const stages = Object.entries(spent).filter(([stage]) => stage !== "total"), total = Math.max(1e-9, sum(stages.map(([, value]) => value)));
  const root = svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", height: 12 });
  let done = 0;
  for (const [stage, value] of stages) {
    root.append(svg("rect", { x: (100 * done) / total, y: 0, width: (100 * value) / total, height: 10, fill: `var(--${colors[stage] || "faint"})` }));
    done += value;
  }
  const rows = stages.map(([stage, value]) => el("span", {}, swatch(colors[stage] || "faint"), `${stage} ${seconds(value)}`));
  const cost = report.cost || {};
  return section("How it was made", `${seconds(spent.total ?? total)} in all`, root, el("div", { class: "key" }, rows), pairs([
    ["chosen by", cost.method], ["lower bound", cost.lower_bound === undefined ? "" : `${seconds(cost.lower_bound)}, gap ${((cost.gap || 0) * 100).toFixed(1)} %`],
    ["folded", report.folded ? `${plural(report.folded, "value")} computed at build time` : ""],
    ["kept as they came", (report.kept || []).join(", ")], ["live bytes", report.memory ? `${count(report.memory.input)} → ${count(report.memory.output)}` : ""],
    ["run with", report.session ? sessionWords(report.session) : ""]]));
}

function sessionWords(session) {
  const without = (session.disabled || []).length && session.level !== "off" ? `, without ${session.disabled.join(" and ")}` : "";
  return `ONNX Runtime's level ${session.level}${without}${session.threads ? `, ${plural(session.threads, "thread")}` : ""}`;
}

function measuredSection(measured) {
  if (!measured) return null;
  const rows = measured.candidates.map((row) => [row.index === measured.chosen ? "taken" : "", count(row.nodes), `${digits(row.predicted_ms)} ms`, `${digits(row.median_ms)} ms`, `${row.ratio.toFixed(3)} (${row.low.toFixed(3)} to ${row.high.toFixed(3)})`]);
  return section("By the clock", "", table(["", ">nodes", ">predicted", ">took", ">ratio"], rows));
}

function warnings(report) {
  const found = [];
  for (const each of report.not_shown || []) found.push(`Nothing is shown of rule ${each.rule} (${each.file}:${each.line}), which was allowed to fire: ${each.reason}`);
  if (report.check && report.check.ok === false) found.push("The outputs of the two programs differ.");
  for (const left of report.left_out || []) found.push(`Rule ${left.rule} was left out, as it breaks this program: ${left.problem}`);
  if (report.certificate && !report.certificate.ok) found.push(`No certificate was made: ${report.certificate.reason}`);
  for (const refusal of (report.session && report.session.refused) || []) found.push(`Not run at level ${refusal.level}: ${refusal.problem}`);
  if (report.session && report.session.original_apart) found.push(`At that level the original differs from itself at level off: ${report.session.original_apart}`);
  if (report.egraph && ["time", "memory", "nodes", "interrupt"].includes(report.egraph.stop)) found.push(`The search ended at its limit (${report.egraph.stop}) with the best program so far.`);
  if ((report.opaque || []).length) found.push(`Unknown ops, which no rule sees into: ${report.opaque.join(", ")}`);
  return [...found, ...(report.warnings || [])];
}
