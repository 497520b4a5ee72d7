// Search over all that was ever said, by session.

import { html, nothing } from "./lit/lit-html.js";
import { get } from "./api.js";
import { app } from "./app.js";
import { empty, found, loading } from "./parts.js";
import { count, folder, full, speaker } from "./words.js";

export async function loadSearch(signal) {
  const text = new URLSearchParams(location.search).get("text") ?? "";
  app.data.text = text;
  const answer = text ? await get(`/api/v1/search?${new URLSearchParams({ text, limit: "200" })}`, { signal }) : { hits: [] };
  Object.assign(app.data, answer, { title: text ? `Search: ${text}` : "Search" });
}

const who = (h) => ({ said: speaker(h.by), steered: speaker(h.by), replied: "Model", ended: "Tool" })[h.kind] ?? h.kind;

// searchView lists the hits. Submit takes what is sought next.
export const searchView = (submit) => {
  const { hits, more, text } = app.data;
  const field = html`<form role="search" class="narrow line" @submit=${submit}>
    <input name="text" type="search" aria-label="Search in the sessions" placeholder="Search all that was said" .value=${text ?? ""}><button class="primary">Search</button></form>`;
  if (!hits) return html`${field}${loading("Search")}`;
  if (!text) return html`<h1>Search</h1>${field}<p class="faint">Type a word that you, a model or a tool said. Case doesn't matter.</p>`;
  return html`
    <div class="top"><h1>“${text}”</h1>${hits.length ? html`<span class="faint">${count(hits.length, "hit")}${more ? " and more" : ""}</span>` : nothing}</div>
    ${field}
    ${hits.length ? [...Map.groupBy(hits, (h) => h.session)].map(([session, list]) => html`
      <h2><a class="hits-of" href="/s/${session}">${list[0].title || session}</a> <span class="faint">${folder(list[0].root)}</span></h2>
      <ul class="hits">${list.map((h) => html`
        <li><a href="/s/${h.session}#${h.seq}"><span class="by">${who(h)} <span class="faint">${full(h.time)}</span></span>
          <span>${found(h.text, text)}</span></a></li>`)}</ul>`) : empty("No hits", "Nobody has said that. Try fewer words: they are sought as one text.")}
    ${more ? html`<p class="faint">There are more. Look for something longer.</p>` : nothing}`;
};
