// Writes a TypeScript file that assigns what a server has answered to the types of the official SDK:
// node types.mjs SDK RECORDED OUT. RECORDED has a JSON object a line: method, path and body of an answer.
// Which method of the SDK a request is of is read from the SDK itself.
import fs from "node:fs";
import path from "node:path";

const [sdk, recorded, out] = process.argv.slice(2);
const routes = [];
const top = path.join(sdk, "resources", "beta");
for (const file of fs.readdirSync(top, { recursive: true }).filter((f) => f.endsWith(".js"))) {
  let type, method, verb, stream;
  for (const line of fs.readFileSync(path.join(top, file), "utf8").split("\n")) {
    let m;
    if ((m = /^class (\w+) extends/.exec(line) ?? /^\s+class (\w+) extends/.exec(line))) type = m[1];
    else if ((m = /^\s+(\w+)\([^;]*\) \{$/.exec(line))) method = m[1];
    else if ((m = /this\._client\.(get|post|put|patch|delete|getAPIList)\(/.exec(line))) verb = m[1];
    else if (/^\s+stream: true,$/.test(line)) stream = true;
    else if ((m = /route: '([^']+)'/.exec(line))) {
      routes.push({
        type, method, stream, list: verb === "getAPIList", verb: verb === "getAPIList" ? "GET" : verb.toUpperCase(),
        module: "@anthropic-ai/sdk/resources/beta/" + file.replace(/\.js$/, ""),
        path: new RegExp("^" + m[1].replace(/\{\w+\}/g, "([^/]+)") + "$"), holes: (m[1].match(/\{/g) ?? []).length,
      });
      stream = false;
    }
  }
}
routes.sort((a, b) => a.holes - b.holes); // "/v1/x/versions" goes before "/v1/x/{id}"

const lines = [
  `import type { PagePromise } from "@anthropic-ai/sdk/core/pagination";`,
  `type One<F> = F extends (...args: any[]) => infer P ? Awaited<P> : never;`,
  `type Event<F> = One<F> extends AsyncIterable<infer E> ? E : never;`,
  `type Item<F> = F extends (...args: any[]) => PagePromise<any, infer I> ? I : never;`,
];
const unknown = new Set();
let n = 0;
for (const line of fs.readFileSync(recorded, "utf8").split("\n").filter(Boolean)) {
  const { method, path: at, body } = JSON.parse(line);
  const route = routes.find((r) => r.verb === method && r.path.test(at));
  if (!route) {
    unknown.add(`${method} ${at}`);
    continue;
  }
  const from = `import(${JSON.stringify(route.module)}).${route.type}["${route.method}"]`;
  route.seen = true;
  for (const value of route.list ? body.data ?? [] : [body]) {
    const type = `${route.list ? "Item" : route.stream ? "Event" : "One"}<${from}>`;
    lines.push(`// ${method} ${at}`);
    if (value.enabled_events) {
      // The types know only webhooks of organizations, without the events and fields of those for agents.
      delete value.enabled_events;
      lines.push(`const w${n} = ${JSON.stringify(value)} as const;`, `export const v${n}: Omit<${type}, "enabled_events"> = w${n++};`);
      continue;
    }
    lines.push(`export const v${n++}: ${type} = ${JSON.stringify(value)};`);
  }
}
fs.writeFileSync(out, lines.join("\n") + "\n");
const modules = new Set(routes.filter((r) => r.seen).map((r) => r.module));
const named = (seen) => routes.filter((r) => modules.has(r.module) && !!r.seen === seen).map((r) => `${r.type}.${r.method}`).sort();
console.log(JSON.stringify({ methods: named(true), unanswered: named(false), values: n, unknown: [...unknown].sort() }));
