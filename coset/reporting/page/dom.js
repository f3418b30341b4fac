"use strict";
// Elements are made by name and filled with text nodes: what a model says is never parsed as markup.
const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}
const el = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

function swatch(color) {
  const mark = el("i", { class: "swatch" });
  mark.style.background = `var(--${color})`; // by the object model: the policy forbids style attributes
  return mark;
}

function seconds(value) {
  if (value === null || value === undefined) return "unknown";
  const size = Math.abs(value);
  if (size === 0) return "0";
  const [scale, unit] = size >= 1 ? [1, "s"] : size >= 1e-3 ? [1e3, "ms"] : size >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return `${digits(value * scale)} ${unit}`;
}
const digits = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2));
const count = (value) => (value === null || value === undefined ? "unknown" : value.toLocaleString("en-US").replaceAll(",", "\u2009"));
const sum = (values) => values.reduce((total, value) => total + value, 0);
const plural = (many, one) => `${count(many)} ${one}${many === 1 ? "" : "s"}`;
const short = (op) => op.slice(op.lastIndexOf(".") + 1);

function change(before, after) {
  if (!before || after === null || after === undefined) return "";
  const share = (after / before - 1) * 100;
  if (Math.abs(share) < 0.05) return "same";
  return `${share < 0 ? "−" : "+"}${Math.abs(share).toFixed(Math.abs(share) < 10 ? 1 : 0)} %`;
}
