// The team: who works for a session, what each costs and waits for, and the tasks that they share. A
// person speaks to a member, interrupts one, or hands over a task.

import { html, nothing } from "./lit/lit-html.js";
import { get, post } from "./api.js";
import { app, attempt, update } from "./app.js";
import { chip, empty, head, loading } from "./parts.js";
import { dollars, folder, full } from "./words.js";

const beat = 2000; // ms between looks at the team

export async function loadTeam(signal, id) {
  Object.assign(app.data, { id, title: "Team" });
  while (!signal.aborted) {
    if (!document.hidden) app.data.team = await get(`/api/v1/sessions/${id}/team`, { signal });
    update();
    await new Promise((done) => setTimeout(done, beat));
  }
}

export function teamView() {
  const { team, id } = app.data;
  if (!team) return loading("Team");
  const { members, tasks } = team;
  return html`
    ${head(id, "Team")}
    ${members.length + tasks.length ? nothing : empty("Nobody works for this session. ", "Agents that it spawns are listed here, with their tasks.")}
    ${members.length ? html`
      <table class="team">
        <thead><tr>${["Member", "State", "Waits for", "Works on"].map(column)}<th scope="col" class="number">Cost</th><td></td></tr></thead>
        <tbody>${members.map(memberRow)}</tbody>
      </table>` : nothing}
    ${tasks.length ? html`
      <h2>Tasks: ${tasks.filter((t) => t.state === "done").length} of ${tasks.length} done</h2>
      <table class="team">
        <thead><tr>${["Task", "State", "Check", "For"].map(column)}</tr></thead>
        <tbody>${tasks.map((t) => taskRow(t, members.filter((m) => m.listens)))}</tbody>
      </table>` : nothing}`;
}

const column = (text) => html`<th scope="col">${text}</th>`;

const mayAct = () => app.board?.role !== "viewer";

// looks are the states of sessions whose colour and mark a member's state has; all others are failures.
const looks = { running: "running", idle: "idle", done: "done" };

const memberRow = (m) => html`
  <tr>
    <th scope="row"><a href="/s/${m.session}">${m.name}</a>${m.name.startsWith(m.kind) ? nothing : html` <span class="faint">${m.kind}</span>`}</th>
    <td>${m.question ? chip("waiting") : chip(looks[m.state] ?? "failed", m.state)}</td>
    <td>${m.question ? html`<a href="/inbox">${m.waits_for}</a>` : m.waits_for ?? nothing}</td>
    <td>${m.task}${m.root ? html` <span class="faint" title=${m.root}>in its copy ${folder(m.root)}</span>` : nothing}</td>
    <td class="number">${dollars(m.cost, m.unpriced)}</td>
    <td class="acts">${m.listens && mayAct() ? html`
      <button class="quiet" @click=${() => speakTo(m)}>Message</button>
      ${m.state === "running" ? html`<button class="quiet" @click=${() => interrupt(m)}>Interrupt</button>` : nothing}` : nothing}</td>
  </tr>
  ${app.data.speaking === m.session ? html`
    <tr><td colspan="6"><form class="composer" @submit=${(e) => say(e, m)}><div>
      <textarea name="text" rows="2" aria-label="Message to ${m.name}"
        placeholder=${m.state === "running" ? "It reads this with its next results" : "It wakes with this once the session is driven"}></textarea>
      <div class="choices"><button type="button" @click=${() => speakTo()}>Cancel</button><button class="end primary">Send</button></div>
    </div></form></td></tr>` : nothing}`;

const taskRow = (t, listening) => html`
  <tr>
    <th scope="row">${t.id}. ${t.text}</th>
    <td>${t.state}${t.who && t.state !== "open" ? ` by ${t.who}` : ""}${t.at ? html` <span class="faint">not before ${full(t.at)}</span>` : nothing}</td>
    <td>${t.check ? html`<code>${t.check}</code>${t.passed ? " passed" : ""}` : nothing}</td>
    <td>${t.state === "done" || !mayAct() ? t.who ?? nothing : html`
      <select aria-label="Give task ${t.id} to" @change=${(e) => give(t, e.target.value)}>
        <option value="all" ?selected=${!t.who}>anyone</option>
        ${listening.map((m) => html`<option value=${m.session} ?selected=${m.name === t.who}>${m.name}</option>`)}
      </select>`}</td>
  </tr>`;

function speakTo(m) {
  app.data.speaking = m?.session;
  update();
  if (m) requestAnimationFrame(() => document.querySelector(".team textarea")?.focus());
}

const input = (m, kind, body) => post(`/api/v1/sessions/${m.session}/events`, { kind, body });

function say(e, m) {
  e.preventDefault();
  const text = new FormData(e.target).get("text").trim();
  if (text) attempt(async () => {
    await input(m, "steered", { parts: [{ type: "text", text }] });
    app.told = `Sent to ${m.name}.`;
    speakTo();
  });
}

const interrupt = (m) => attempt(() => input(m, "cancelled", { reason: "interrupted in the browser", all: true }));

const give = (t, to) => attempt(() => post(`/api/v1/sessions/${app.data.id}/team/tasks/${t.id}`, { to }));
