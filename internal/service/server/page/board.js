// The board: all sessions, the one that changed last first.

import { html, nothing } from "./lit/lit-html.js";
import { repeat } from "./lit/directives/repeat.js";
import { app, go, refresh, update } from "./app.js";
import { evalsView } from "./evals.js";
import { ago, count, dollars, folder, full, marks } from "./words.js";

const states = ["waiting", "running", "idle", "failed", "done"];

export function boardView() {
  const { board, data } = app;
  if (!board) return html`<h1>Board</h1><p>Loading …</p>`;
  const picked = data.picked ?? [], evals = board.evals ?? [];
  const filter = (state) => { data.state = data.state === state ? "" : state; app.selected = 0; refresh(); };
  return html`
    <h1>Board</h1>
    ${evalsView("Evaluations", evals.filter((r) => r.working))}
    <div class="filters" role="group" aria-label="Filter">
      ${states.filter((s) => board.counts[s] || data.state === s).map((s) => html`
        <button class="state ${s}" aria-pressed=${data.state === s} @click=${() => filter(s)}>${marks[s]} ${s} ${board.counts[s] ?? 0}</button>`)}
      <input type="search" aria-label="Filter by title, folder or id" placeholder="Title, folder or id"
        @input=${(e) => { data.text = e.target.value; refresh(); }}>
      ${picked.length === 2 ? html`<a class="button" href="/compare/${picked[0]}/${picked[1]}">Compare</a>` : nothing}
    </div>
    ${board.sessions.length ? html`
      <table>
        <thead><tr><th scope="col">State</th><th scope="col">Session</th><th scope="col">Folder</th><th scope="col">Changed</th><th scope="col" class="number">Cost</th><th scope="col"><span class="hidden">Compare</span></th></tr></thead>
        <tbody>${repeat(board.sessions, (r) => r.session || r.task, row)}</tbody>
      </table>` : html`<p>${data.state || data.text ? "No session is like that." : html`No sessions yet. <a href="/new">Begin one.</a>`}</p>`}
    ${board.more ? html`<p>There are more. Filter, or search what was said.</p>` : nothing}
    ${evalsView("Last evaluations", evals.filter((r) => !r.working))}`;
}

function row(r, i) {
  const picked = (app.data.picked ??= []);
  const pick = (e) => {
    app.data.picked = e.target.checked ? [...picked, r.session].slice(-2) : picked.filter((id) => id !== r.session);
    update();
  };
  const { title } = r;
  return html`
    <tr class=${i === app.selected ? "selected" : nothing}>
      <td><span class="state ${r.state}">${marks[r.state]} ${r.session ? r.state : r.stage}</span></td>
      <td>${r.session ? html`<a href="/s/${r.session}">${title}</a>` : title}
        ${r.agents ? html`<span class="faint">${count(r.agents, "agent")}</span>` : nothing}
        ${r.words ? html`<span class="why">${r.words}</span>` : nothing}</td>
      <td title=${r.root ?? ""}>${folder(r.root)}</td>
      <td title=${full(r.modified)}>${ago(r.modified)}</td>
      <td class="number">${r.cost ? dollars(r.cost, r.unpriced) : nothing}</td>
      <td>${r.session ? html`<input type="checkbox" aria-label="Compare ${title}" .checked=${picked.includes(r.session)} @change=${pick}>` : nothing}</td>
    </tr>`;
}

const move = (by) => () => {
  app.selected = Math.max(0, Math.min((app.board?.sessions.length ?? 1) - 1, app.selected + by));
  update();
  queueMicrotask(() => document.querySelector("tr.selected")?.scrollIntoView({ block: "nearest" }));
};

export const boardKeys = {
  j: move(1), ArrowDown: move(1), k: move(-1), ArrowUp: move(-1),
  Enter: () => { const r = app.board?.sessions[app.selected]; if (r?.session) go(`/s/${r.session}`); },
};
