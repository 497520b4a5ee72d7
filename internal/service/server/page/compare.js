// Two sessions side by side.

import { html, nothing } from "./lit/lit-html.js";
import { unsafeHTML } from "./lit/directives/unsafe-html.js";
import { get } from "./api.js";
import { app } from "./app.js";
import { chip, loading } from "./parts.js";
import { count, dollars, thousands } from "./words.js";

export async function loadCompare(signal, ...ids) {
  app.data.sides = await Promise.all(ids.map((id) => get(`/api/v1/sessions/${encodeURIComponent(id)}/items`, { signal })));
  app.data.title = "Compare";
}

const facts = [
  ["Model", (n) => n.model], ["Mode", (n) => n.mode], ["Folder", (n) => n.root], ["State", (n) => chip(n.state)],
  ["Turns", (n) => n.turns], ["Calls", (n) => n.calls], ["Cost", (n) => dollars(n.cost, n.unpriced)], ["Last prompt", (n) => `${thousands(n.prompt ?? 0)} tokens`],
  ["Files changed", (n) => (n.files ?? []).map((f) => html`<code>${f}</code> `)],
];

export function compareView() {
  const { sides } = app.data;
  if (!sides) return loading("Compare");
  const name = ({ now, items }) => now.title || items.find((i) => i.kind === "said")?.text?.slice(0, 80) || now.session;
  return html`
    <div class="top"><h1>Compare</h1></div>
    <table class="compare-facts">
      <thead><tr><th scope="col"><span class="hidden">Fact</span></th>${sides.map((s) => html`<th scope="col"><a href="/s/${s.now.session}">${name(s)}</a></th>`)}</tr></thead>
      <tbody>${facts.map(([title, of]) => html`<tr><th scope="row">${title}</th>${sides.map((s) => html`<td>${of(s.now)}</td>`)}</tr>`)}</tbody>
    </table>
    <div class="sides">${sides.map((s, at) => html`
      <section aria-label=${at ? "Right" : "Left"}>
        ${s.total > s.items.length ? html`<p class="faint">The last ${count(s.items.length, "item")} of ${s.total}.</p>` : nothing}
        <ol class="transcript">${s.items.map((i) => html`<li class=${i.kind}>${line(i, s.now.session)}</li>`)}</ol>
      </section>`)}</div>`;
}

const line = (i, session) => {
  const link = html`<a class="seq" href="/s/${session}#${i.seq}" aria-label="Event ${i.seq}">#${i.seq}</a>`;
  switch (i.kind) {
    case "reply": return i.html ? html`<div class="markdown">${unsafeHTML(i.html)}</div>${link}` : nothing;
    case "call": return html`<p>${i.failed ? "✗" : "✓"} <b>${i.tool}</b> <span class="subject">${i.subject}</span> <span class="faint">${i.failed ?? ""} ${i.took ?? ""}</span> ${link}</p>`;
    case "agent": return html`<p><a href="/s/${i.session}">agent ${i.tool}</a> ${i.subject}</p>`;
    default: return html`<div class=${i.kind === "said" ? "text" : "faint"}>${i.text} ${link}</div>`;
  }
};
