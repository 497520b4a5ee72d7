// The trace: what a session did when, as bars on the scale of each run.

import { html, svg, nothing } from "./lit/lit-html.js";
import { get } from "./api.js";
import { app } from "./app.js";
import { loading, tabs } from "./parts.js";
import { count, dollars, full, lasting, thousands } from "./words.js";

export async function loadTrace(signal, id) {
  const spans = [];
  for (let more = true, after = ""; more;) {
    const part = await get(`/api/v1/sessions/${id}/trace?${new URLSearchParams({ after })}`, { signal });
    spans.push(...part.spans);
    more = part.more;
    after = String(spans.at(-1)?.seq ?? "");
  }
  Object.assign(app.data, { id, spans, title: "Trace" });
}

export function traceView() {
  const { spans, id } = app.data;
  if (!spans) return loading("Trace");
  const below = Map.groupBy(spans, (s) => s.parent ?? "");
  return html`
    <div class="head"><h1>Trace</h1>${tabs(id, "Trace")}</div>
    ${spans.length ? (below.get("") ?? []).map((run) => runView(run, below, id)) : html`<p>Nothing has run in this session yet.</p>`}`;
}

const ms = (time) => new Date(time).getTime();
const end = (span) => span.end ? ms(span.end) : Date.now();

function runView(run, below, id) {
  const rows = [];
  const walk = (span, depth) => {
    rows.push([span, depth]);
    for (const s of below.get(span.id) ?? []) walk(s, depth + 1);
  };
  for (const s of below.get(run.id) ?? []) walk(s, 0);
  const begin = ms(run.start), length = Math.max(1, end(run) - begin);
  return html`
    <section aria-label="Run of ${full(run.start)}">
      <h2>${run.kind} <span class="faint">${full(run.start)} · ${lasting(length)} · ${run.outcome ?? "goes on"}</span></h2>
      <table class="trace">
        <thead><tr><th scope="col">What</th><th scope="col">When</th><th scope="col">Took</th><th scope="col">What came of it</th></tr></thead>
        <tbody>${rows.map(([s, depth]) => html`
          <tr><td>${"\u00a0\u00a0".repeat(depth)}<span class="kind">${s.kind}</span> ${s.session ? html`<a href="/s/${s.session}/trace">${s.name || "agent"}</a>` : s.name}
              <a class="seq" href="/s/${id}#${s.seq}" aria-label="Event ${s.seq}">#${s.seq}</a></td>
            <td>${bar(s, begin, length)}</td><td>${lasting(end(s) - ms(s.start))}</td><td>${fact(s)}</td></tr>`)}</tbody>
      </table>
    </section>`;
}

const bad = (s) => s.class || /^(failed|lost|denied|invalid|unknown|cancelled|cut|refused|timed)/.test(s.outcome ?? "");

const bar = (s, begin, length) => {
  const x = 1000 * (ms(s.start) - begin) / length, w = Math.max(3, 1000 * (end(s) - ms(s.start)) / length);
  const first = s.first_millis ? Math.min(w, 1000 * s.first_millis / length) : 0;
  return html`<svg class="bar ${s.kind} ${bad(s) ? "bad" : ""}" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
    ${svg`<rect x=${x} width=${w} height="10"></rect>`}${first ? svg`<rect class="first" x=${x} width=${first} height="10"></rect>` : nothing}</svg>`;
};

const fact = (s) => [
  s.outcome && s.outcome !== "ok" ? s.outcome : "", s.first_millis ? `first token ${lasting(s.first_millis)}` : "",
  s.usage ? `${thousands((s.usage.input ?? 0) + (s.usage.cache_read ?? 0) + (s.usage.cache_write ?? 0))} in, ${count(s.usage.output ?? 0, "out", "out")}` : "",
  s.cost ? dollars(s.cost) : "",
].filter(Boolean).join(" · ");
