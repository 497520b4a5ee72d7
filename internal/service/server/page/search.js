// Search over all that was ever said.

import { html } from "./lit/lit-html.js";
import { get } from "./api.js";
import { app } from "./app.js";
import { loading } from "./parts.js";
import { full } from "./words.js";

export async function loadSearch(signal) {
  const text = new URLSearchParams(location.search).get("text") ?? "";
  app.data.text = text;
  Object.assign(app.data, await get(`/api/v1/search?${new URLSearchParams({ text, limit: "200" })}`, { signal }), { title: `Search: ${text}` });
}

const who = { said: "You", steered: "You", replied: "Model", ended: "Tool" };

export function searchView() {
  const { hits, more, text } = app.data;
  if (!hits) return loading("Search");
  return html`
    <h1>“${text}”</h1>
    ${hits.length ? html`<ul class="hits">${hits.map((h) => html`
      <li><a href="/s/${h.session}#${h.seq}">${mark(h.text, text)}</a> <span class="faint">${who[h.kind] ?? h.kind} · ${full(h.time)}</span></li>`)}</ul>` : html`<p>Nobody has said that.</p>`}
    ${more ? html`<p>There are more. Look for something longer.</p>` : ""}`;
}

function mark(line, text) {
  const at = line.toLowerCase().indexOf(text.toLowerCase());
  if (at < 0) return line;
  return html`${line.slice(0, at)}<mark>${line.slice(at, at + text.length)}</mark>${line.slice(at + text.length)}`;
}
