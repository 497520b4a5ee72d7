// The board: all sessions. What waits for the person comes first, then what runs, then the rest by day or by project.

import { html, nothing } from "./lit/lit-html.js";
import { repeat } from "./lit/directives/repeat.js";
import { app, go, refresh, update } from "./app.js";
import { evalsView } from "./evals.js";
import { chip, empty } from "./parts.js";
import { ago, count, day, dollars, folder, full, marks } from "./words.js";

const states = ["waiting", "running", "idle", "failed", "done"];
const place = "inspan.groups"; // where the way to group the rest is kept
const groupings = { day: (r) => day(r.modified), project: (r) => folder(r.root) || "No folder" };

const grouping = () => localStorage.getItem(place) in groupings ? localStorage.getItem(place) : "day";

// sections are the rows under their headings, in the order in which they are shown.
function sections(rows) {
  const of = groupings[grouping()];
  const heading = (r) => ({ waiting: "Waiting for you", running: "Running" })[r.state] ?? of(r);
  return [...Map.groupBy(rows, heading)];
}

// shown are the rows in that order.
const shown = () => sections(app.board?.sessions ?? []).flatMap(([, rows]) => rows);

export function boardView() {
  const { board, data } = app;
  if (!board) return html`<h1>Board</h1><p class="faint">Loading …</p>`;
  const picked = data.picked ?? [], evals = board.evals ?? [];
  const filter = (state) => { data.state = data.state === state ? "" : state; app.selected = 0; refresh(); };
  const selected = shown()[app.selected];
  return html`
    <div class="top"><h1>Board</h1>
      ${picked.length === 2 ? html`<a class="button" href="/compare/${picked[0]}/${picked[1]}">Compare</a>` : nothing}
      <a class="button primary" href="/new">New session</a></div>
    ${evalsView("Evaluations", evals.filter((r) => r.working))}
    ${board.sessions.length || data.state || data.text ? html`
      <div class="filters" role="group" aria-label="Filter">
        ${states.filter((s) => board.counts[s] || data.state === s).map((s) => html`
          <button class="state ${s}" aria-pressed=${data.state === s} @click=${() => filter(s)}>${marks[s]} ${s} ${board.counts[s] ?? 0}</button>`)}
        <input type="search" aria-label="Filter by title, folder or id" placeholder="Title, folder or id"
          @input=${(e) => { data.text = e.target.value; refresh(); }}>
        <select aria-label="Group by" @change=${(e) => { localStorage.setItem(place, e.target.value); app.selected = 0; update(); }}>
          ${Object.keys(groupings).map((g) => html`<option value=${g} ?selected=${g === grouping()}>By ${g}</option>`)}</select>
      </div>` : nothing}
    ${board.sessions.length ? repeat(sections(board.sessions), ([title]) => title, ([title, rows]) => html`
      <h2 class="group">${title} <span>${rows.length}</span></h2>
      <ul class="rows">${repeat(rows, (r) => r.session || r.task, (r) => row(r, r === selected))}</ul>`)
      : data.state || data.text ? empty("No session is like that", "Change the filter, or search what was said.")
        : empty("No sessions yet", "Tell an agent what to do, and follow it here.", html`<a class="button primary" href="/new">Begin one</a>`)}
    ${board.more ? html`<p class="faint">There are more. Filter, or search what was said.</p>` : nothing}
    ${evalsView("Last evaluations", evals.filter((r) => !r.working))}`;
}

function row(r, selected) {
  const picked = (app.data.picked ??= []);
  const pick = (e) => {
    app.data.picked = e.target.checked ? [...picked, r.session].slice(-2) : picked.filter((id) => id !== r.session);
    update();
  };
  const { title } = r;
  return html`
    <li class=${selected ? "selected" : nothing}>
      ${chip(r.state, r.session ? r.state : r.stage)}
      <div class="name ${r.state === "waiting" ? "asking" : ""}">${r.session ? html`<a href="/s/${r.session}">${title}</a>` : html`<strong>${title}</strong>`}
        <span class="why">${[r.agents ? count(r.agents, "agent") : "", r.words].filter(Boolean).join(" · ")}</span></div>
      <span class="place" title=${r.root ?? ""}>${folder(r.root)}</span>
      <span class="price">${r.cost ? dollars(r.cost, r.unpriced) : nothing}</span>
      <span class="when" title=${full(r.modified)}>${ago(r.modified)}</span>
      ${r.session ? html`<input type="checkbox" aria-label="Compare ${title}" .checked=${picked.includes(r.session)} @change=${pick}>` : nothing}
    </li>`;
}

const move = (by) => () => {
  app.selected = Math.max(0, Math.min(shown().length - 1, app.selected + by));
  update();
  queueMicrotask(() => document.querySelector(".rows .selected")?.scrollIntoView({ block: "nearest" }));
};

export const boardKeys = {
  j: move(1), ArrowDown: move(1), k: move(-1), ArrowUp: move(-1),
  Enter: () => { const r = shown()[app.selected]; if (r?.session) go(`/s/${r.session}`); },
};
