// Runs of evaluations: how the last ones stand, and one with all of its trials.

import { html, nothing } from "./lit/lit-html.js";
import { get } from "./api.js";
import { app, attempt, update } from "./app.js";
import { loading } from "./parts.js";
import { clock, count, dollars, full, lasting } from "./words.js";

const beat = 2000; // ms between looks at a run that goes on
const states = ["passed", "failed", "broken", "done", "running", "open"];
const marks = { passed: "✓", failed: "✗", broken: "!", done: "✓", running: "▸", open: "·" };
const looks = { passed: "done", failed: "failed", broken: "waiting", done: "done", running: "running", open: "faint" };

const mark = (state, text = state) => html`<span class="state ${looks[state]}">${marks[state]} ${text}</span>`;

// sums tells how far a run is, what it costs, and what bounds it.
const sums = (r) => html`
  ${states.filter((s) => r.counts[s]).map((s) => html`${mark(s, `${r.counts[s]} ${s}`)} `)}
  of ${count(r.all, "trial")},
  ${dollars(r.cost)}${r.budget ? ` of ${dollars(r.budget)}` : nothing}${r.until ? `, until ${clock(r.until)}` : nothing}${
  r.left >= 1 ? `, about ${lasting(1000 * r.left)} left` : nothing}`;

// evalsView is a part of the board: runs that go on, or those that don't.
export const evalsView = (title, runs) => runs.length ? html`
  <section aria-label=${title}>
    <h2>${title}</h2>
    <table>
      <thead><tr><th scope="col">State</th><th scope="col">Run</th><th scope="col">Trials</th></tr></thead>
      <tbody>${runs.map((r) => html`<tr>
        <td>${state(r)}</td>
        <td><a href="/eval/${r.run}">${r.suite}</a> <span class="faint">${r.config} ${r.model ?? ""}</span></td>
        <td>${sums(r)}</td></tr>`)}</tbody>
    </table>
  </section>` : nothing;

const state = (r) => r.working ? mark("running") : states.some((s) => ["open", "running"].includes(s) && r.counts[s]) ?
  html`<span class="state waiting">· interrupted</span>` : html`<span class="state done">✓ over</span>`;

export async function loadEval(signal, id) {
  const look = async () => {
    Object.assign(app.data, { run: await get(`/api/v1/evals/${encodeURIComponent(id)}`, { signal }), title: "Evaluation" });
    update();
    if (app.data.run.working) setTimeout(() => { if (!signal.aborted) attempt(look); }, beat);
  };
  await look();
}

export function evalView() {
  const r = app.data.run;
  if (!r) return loading("Evaluation");
  return html`
    <h1>Evaluation of ${r.suite}</h1>
    <p>${state(r)} <span class="faint">${r.config} ${r.model ?? ""}, since ${full(r.began)}</span></p>
    <p>${sums(r)}</p>
    ${r.held_out ? html`<p class="faint">These tasks are held out: to see a verdict, compare two runs.</p>` : nothing}
    <table>
      <thead><tr><th scope="col">Task</th>${r.tasks[0].tries.map((_, i) => html`<th scope="col" class="number">${i + 1}</th>`)}</tr></thead>
      <tbody>${r.tasks.map((t) => html`<tr><th scope="row">${t.task}</th>${t.tries.map((one) => html`<td class="number" title=${one.reason ?? ""}>
        ${one.session ? html`<a href="/s/${one.session}">${mark(one.state)}</a>` : mark(one.state)}
        ${one.reason ? html`<span class="why">${one.reason}</span>` : nothing}
        ${one.cost || one.seconds ? html`<br><span class="faint">${dollars(one.cost ?? 0)}, ${lasting(1000 * (one.seconds ?? 0))}</span>` : nothing}</td>`)}</tr>
        ${t.tries.map((one, i) => one.printed || one.checks ? html`<tr><td colspan=${1 + t.tries.length}>${findings(t.task, one, i)}</td></tr>` : nothing)}`)}</tbody>
    </table>`;
}

// findings are what graders and the checker said about a trial.
const findings = (task, one, i) => html`
  <details>
    <summary>${task}, try ${i + 1}: what the checks say</summary>
    <ul>${(one.checks ?? []).map((c) => html`<li>${mark(c.passed ? "passed" : "failed", c.name)}, ${c.score.toFixed(2)} <span class="why">${c.note ?? ""}</span></li>`)}</ul>
    ${one.printed ? html`<pre>${one.printed}</pre>` : nothing}
  </details>`;

