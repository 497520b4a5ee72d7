// A new session.

import { html } from "./lit/lit-html.js";
import { post } from "./api.js";
import { app, attempt } from "./app.js";
import { arrive } from "./session.js";

export function newView() {
  const begin = (e) => {
    e.preventDefault();
    const said = Object.fromEntries([...new FormData(e.target)].filter(([, v]) => v));
    const spec = { prompt: said.prompt ?? "", open: true };
    for (const name of ["folder", "mode", "model", "effort"]) if (said[name]) spec[name] = said[name];
    if (said.repository) spec.repository = { url: said.repository };
    if (said.dollars) spec.max_cost = Number(said.dollars);
    if (said.turns) spec.max_turns = Number(said.turns);
    if (said.minutes) spec.timeout_seconds = 60 * Number(said.minutes);
    attempt(async () => arrive(await post("/api/v1/tasks", spec)));
  };
  const submit = (e) => {
    if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
    e.preventDefault();
    e.target.form.requestSubmit();
  };
  const folders = app.board?.folders ?? [];
  return html`
    <div class="top"><h1>New session</h1></div>
    <form @submit=${begin}>
      <label>What to do <textarea name="prompt" rows="6" required placeholder="Describe the task, with all that the agent needs to know" @keydown=${submit}></textarea></label>
      <div class="pair">
        <label>Folder on the server <input name="folder" list="folders" .value=${folders[0] ?? ""}></label>
        <label>or a repository to clone <input name="repository" type="text" placeholder="https://github.com/…"></label>
      </div>
      <datalist id="folders">${folders.map((f) => html`<option value=${f}></option>`)}</datalist>
      <div class="pair">
        <label>Model <input name="model" placeholder="default of the server"></label>
        <label>Mode <select name="mode"><option value="">default of the server</option>
          ${[["plan", "plan: reads only"], ["ask", "ask: asks before it changes anything"], ["edit", "edit: changes files, asks for the rest"], ["auto", "auto: works alone in the sandbox"]].map(([m, text]) => html`<option value=${m}>${text}</option>`)}</select></label>
        <label>Effort <select name="effort"><option value="">default of the model</option>${(app.board?.efforts ?? []).map((e) => html`<option>${e}</option>`)}</select></label>
      </div>
      <details><summary>Limits</summary>
        <div class="pair">
          <label>US dollars <input name="dollars" type="number" min="0.01" step="0.01" placeholder="default of the server"></label>
          <label>Turns <input name="turns" type="number" min="1" placeholder="default of the server"></label>
          <label>Minutes, with all waits <input name="minutes" type="number" min="1" placeholder="none"></label>
        </div></details>
      <div><button class="primary">Begin <kbd>Ctrl Enter</kbd></button></div>
    </form>`;
}
