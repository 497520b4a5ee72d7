// The trace: what a session did when, as bars on the scale of each run.

import { html, svg, nothing } from "./lit/lit-html.js";
import { get } from "./api.js";
import { app } from "./app.js";
import { empty, head, loading } from "./parts.js";
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
    ${head(id, "Trace")}
    ${spans.length ? (below.get("") ?? []).map((run) => runView(run, below, id)) : empty("Nothing has run yet", "Each run of this session is drawn here, with its requests, calls and waits.")}`;
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
  const begin = ms(run.start), length = Math.max(1, end(run) - begin), scale = scaleOf(rows.map(([s]) => s), begin, length);
  return html`
    <section aria-label="Run of ${full(run.start)}">
      <h2>${run.kind} <span class="faint">${full(run.start)} · ${lasting(length)} · ${run.outcome ?? "running"}</span></h2>
      <table class="trace">
        <thead><tr><th scope="col">What</th><th scope="col">When${scale.cuts.length ? html` <span class="faint">(long waits are cut short)</span>` : nothing}</th><th scope="col" class="number">Took</th><th scope="col">What came of it</th></tr></thead>
        <tbody>${rows.map(([s, depth]) => html`
          <tr><td>${"\u00a0\u00a0".repeat(depth)}<span class="kind">${s.kind}</span> ${s.session ? html`<a href="/s/${s.session}/trace">${s.name || "agent"}</a>` : s.name}
              <a class="seq" href="/s/${id}#${s.seq}" aria-label="Event ${s.seq}">#${s.seq}</a></td>
            <td>${bar(s, scale)}</td><td class="number">${lasting(end(s) - ms(s.start))}</td><td>${fact(s)}</td></tr>`)}</tbody>
      </table>
    </section>`;
}

const cutTo = 60; // of 1000: the width of a stretch in which the run only waited

// scaleOf maps the times of a run to 0 to 1000. Stretches in which it only waited for a person or for a server, and
// which would leave no room for the rest, are cut short.
function scaleOf(spans, begin, length) {
  const waits = (s) => s.kind === "wait" || s.kind === "pause";
  const edges = [...new Set([0, length, ...spans.flatMap((s) => [ms(s.start) - begin, end(s) - begin])])].filter((t) => t >= 0 && t <= length).sort((a, b) => a - b);
  const stretches = edges.slice(1).map((to, n) => {
    const from = edges[n], on = spans.filter((s) => ms(s.start) - begin <= from && end(s) - begin >= to && !s.child);
    return { from, to, long: to - from > length / 8 && on.length > 0 && on.every(waits) };
  });
  const cuts = stretches.filter((s) => s.long), rest = stretches.reduce((sum, s) => sum + (s.long ? 0 : s.to - s.from), 0);
  const room = 1000 - cutTo * cuts.length;
  if (!rest || room < 400) return { at: (t) => 1000 * t / length, begin, cuts: [] };
  let x = 0;
  for (const s of stretches) {
    s.x = x;
    x += s.width = s.long ? cutTo : room * (s.to - s.from) / rest;
  }
  const at = (t) => {
    const s = stretches.find((one) => t <= one.to) ?? stretches.at(-1);
    return s.x + s.width * Math.max(0, t - s.from) / Math.max(1, s.to - s.from);
  };
  return { at, begin, cuts };
}

const bad = (s) => s.class || /^(failed|lost|denied|invalid|unknown|cancelled|cut|refused|timed)/.test(s.outcome ?? "");

const bar = (s, { at, begin, cuts }) => {
  const from = ms(s.start) - begin, to = end(s) - begin;
  const x = Math.min(996, at(from)), w = Math.max(4, at(to) - x);
  const first = s.first_millis ? Math.min(w, at(from + s.first_millis) - x) : 0;
  return html`<svg class="bar ${s.kind} ${bad(s) ? "bad" : ""}" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
    ${cuts.map((c) => svg`<rect class="cut" x=${c.x + cutTo / 2 - 6} width="12" height="10"></rect>`)}
    ${svg`<rect x=${x} width=${w} height="10"></rect>`}${first ? svg`<rect class="first" x=${x} width=${first} height="10"></rect>` : nothing}</svg>`;
};

const fact = (s) => [
  s.outcome && s.outcome !== "ok" ? s.outcome : "", s.first_millis ? `first token ${lasting(s.first_millis)}` : "",
  s.usage ? `${thousands((s.usage.input ?? 0) + (s.usage.cache_read ?? 0) + (s.usage.cache_write ?? 0))} in, ${count(s.usage.output ?? 0, "out", "out")}` : "",
  s.cost ? dollars(s.cost) : "",
].filter(Boolean).join(" · ");
