// A client that drives `inspan acp` through whole sessions, with the official SDK.
// Usage: node22 client.mjs SDK-FOLDER INSPAN WORKSPACE. It prints a line for each
// thing it has seen, and ends with 1 at the first that is wrong.

import { spawn } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Readable, Writable } from "node:stream";
import assert from "node:assert/strict";

const [, , modules, inspan, root] = process.argv;
const sdk = (file) => import(pathToFileURL(join(modules, "@agentclientprotocol/sdk/dist", file)).href);
const stable = await sdk("v1/stable/acp.js");
const unstable = await sdk("v1/unstable/acp.js");

const did = (what) => console.log(`ok ${what}`);

// Editor starts an agent and talks with it. What the agent tells is gathered by session.
class Editor {
  constructor(acp, capabilities = {}) {
    this.acp = acp;
    this.capabilities = capabilities;
    this.updates = [];
    this.waiting = [];
    this.asked = [];
    this.buffers = new Map();
    this.answer = () => ({ outcome: { outcome: "selected", optionId: "y" } });
    this.fill = () => ({ action: "decline" });
    this.terminals = [];
  }

  async start(args = []) {
    this.process = spawn(inspan, ["acp", ...args], { stdio: ["pipe", "pipe", "pipe"] });
    this.errors = "";
    this.process.stderr.on("data", (d) => (this.errors += d));
    this.ended = new Promise((resolve) => this.process.on("exit", (code, signal) => resolve({ code, signal })));
    const { acp } = this;
    const app = acp
      .client({ name: "test" })
      .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
        this.asked.push(params);
        this.wake();
        return this.answer(params);
      })
      .onRequest(acp.methods.client.elicitation.create, async ({ params }) => {
        this.asked.push(params);
        return this.fill(params);
      })
      .onRequest(acp.methods.client.fs.readTextFile, async ({ params }) => {
        this.read = (this.read ?? 0) + 1;
        if (this.buffers.has(params.path)) return { content: this.buffers.get(params.path) };
        if (!existsSync(params.path)) throw new acp.RequestError(-32002, "no such file");
        return { content: readFileSync(params.path, "utf8") };
      })
      .onRequest(acp.methods.client.fs.writeTextFile, async ({ params }) => {
        this.written = params;
        this.buffers.set(params.path, params.content);
        writeFileSync(params.path, params.content);
        return {};
      })
      .onRequest(acp.methods.client.terminal.create, ({ params }) => {
        const terminal = { params, output: "", child: spawn(params.command, params.args ?? [], { cwd: params.cwd }) };
        for (const out of [terminal.child.stdout, terminal.child.stderr]) out.on("data", (d) => (terminal.output += d));
        terminal.exit = new Promise((done) => terminal.child.on("close", (exitCode, signal) => done({ exitCode, signal })));
        return { terminalId: String(this.terminals.push(terminal) - 1) };
      })
      .onRequest(acp.methods.client.terminal.output, ({ params }) => ({ output: this.terminals[params.terminalId].output, truncated: false }))
      .onRequest(acp.methods.client.terminal.waitForExit, ({ params }) => this.terminals[params.terminalId].exit)
      .onRequest(acp.methods.client.terminal.kill, ({ params }) => void this.terminals[params.terminalId].child.kill() ?? {})
      .onRequest(acp.methods.client.terminal.release, ({ params }) => ((this.terminals[params.terminalId].released = true), {}))
      .onNotification(acp.methods.client.session.update, ({ params }) => {
        this.updates.push(params);
        this.wake();
      });
    const stream = acp.ndJsonStream(Writable.toWeb(this.process.stdin), Readable.toWeb(this.process.stdout));
    this.connection = app.connect(stream);
    this.agent = this.connection.agent;
    this.info = await this.agent.request("initialize", {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientInfo: { name: "test", version: "1" },
      clientCapabilities: this.capabilities,
    });
    assert.equal(this.info.protocolVersion, 1);
    return this;
  }

  wake() {
    for (const w of this.waiting.splice(0)) w();
  }

  // until waits for something to be true of what was told.
  async until(what, test) {
    const late = Date.now() + 30000;
    while (!test()) {
      assert.ok(Date.now() < late, `waited too long for ${what}: ${JSON.stringify(this.updates.slice(-5))} ${this.errors}`);
      await Promise.race([new Promise((r) => this.waiting.push(r)), new Promise((r) => setTimeout(r, 1000))]);
    }
  }

  // ask returns the answer once all has come that was told ahead of it: the SDK hands on
  // answers first, so it asks for one thing more.
  async ask(method, params) {
    const answer = await this.agent.request(method, params);
    await this.agent.request("session/list", { cwd: "/nowhere" });
    return answer;
  }

  // prompt says something and waits for the end.
  prompt(sessionId, ...blocks) {
    return this.ask("session/prompt", { sessionId, prompt: blocks.map((b) => (typeof b === "string" ? { type: "text", text: b } : b)) });
  }

  of(sessionId, kind) {
    return this.updates.filter((u) => u.sessionId === sessionId && (!kind || u.update.sessionUpdate === kind)).map((u) => u.update);
  }

  text(sessionId, kind = "agent_message_chunk") {
    return this.of(sessionId, kind).map((u) => u.content.text ?? `[${u.content.type}]`).join("");
  }

  // calls are the calls of a session as an editor shows them: each with all that was told of it.
  calls(sessionId) {
    const calls = new Map();
    for (const u of this.of(sessionId)) {
      if (u.sessionUpdate === "tool_call") calls.set(u.toolCallId, { ...u });
      if (u.sessionUpdate === "tool_call_update") {
        assert.ok(calls.has(u.toolCallId), `an update of a call that was never told: ${JSON.stringify(u)}`);
        for (const [k, v] of Object.entries(u)) if (v !== undefined && v !== null) calls.get(u.toolCallId)[k] = v;
      }
    }
    return [...calls.values()].map(({ sessionUpdate, ...rest }) => rest);
  }

  async stop() {
    this.process.stdin.end();
    const { code } = await this.ended;
    assert.equal(code, 0, this.errors);
  }
}

// running reports whether a process has a word on its command line, where that can be told.
const running = (word) =>
  process.platform === "linux" &&
  readdirSync("/proc").some((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(word);
    } catch {
      return false; // it is gone
    }
  });

// messages are the texts of a session by the ids of their messages.
const messages = (editor, id, kind) => {
  const out = {};
  for (const u of editor.of(id, kind)) out[u.messageId] = (out[u.messageId] ?? "") + (u.content.text ?? "");
  return out;
};

const all = { fs: { readTextFile: true, writeTextFile: true }, elicitation: { form: {} }, terminal: true };
const file = join(root, "cart.go");
const unsaved = "package cart\n\n// not saved yet\nconst limit = 10\n";

// First process: approval, plan, modes, cancel, steering, images, files of the editor.
const first = await new Editor(unstable, all).start();
assert.ok(first.info.agentCapabilities.loadSession);
assert.deepEqual(first.info.authMethods, []);
const { sessionId, modes, configOptions } = await first.agent.request("session/new", { cwd: root, mcpServers: [] });
assert.equal(modes.currentModeId, "ask");
assert.deepEqual(configOptions.map((o) => [o.id, o.currentValue]), [["mode", "ask"], ["model", "script/commands"], ["effort", "default"]]);
await first.until("the slash commands", () => first.of(sessionId, "available_commands_update").length > 0);
assert.ok(first.of(sessionId, "available_commands_update")[0].availableCommands.some((c) => c.name === "greet" && c.input.hint === "who"));
did("session");

first.buffers.set(file, unsaved);
let r = await first.prompt(sessionId, `reason: what is in it\nsay: looking\nread: cart.go\ncall: edit_file {"path":"cart.go","edits":[{"old_string":"limit = 10","new_string":"limit = 9"}]}`);
assert.equal(r.stopReason, "end_turn");
assert.equal(first.text(sessionId, "agent_thought_chunk"), "what is in it");
assert.match(first.text(sessionId), /^looking/);
let [read, edit] = first.calls(sessionId);
assert.equal(read.kind, "read");
assert.equal(read.status, "completed");
assert.match(JSON.stringify(read.content), /not saved yet/);
assert.deepEqual(read.locations.map((l) => l.path), [file]);
did("an unsaved buffer is read");
const [permission] = first.asked;
assert.equal(permission.toolCall.toolCallId, edit.toolCallId);
assert.deepEqual(permission.options.map((o) => o.kind), ["allow_once", "allow_always", "allow_always", "allow_always", "allow_always", "reject_once"]);
const [diff] = permission.toolCall.content;
assert.deepEqual([diff.type, diff.path], ["diff", file]);
assert.match(diff.oldText, /limit = 10/);
assert.match(diff.newText, /limit = 9/);
assert.equal(edit.kind, "edit");
assert.equal(edit.status, "completed");
assert.equal(edit.content[0].newText, diff.newText);
assert.deepEqual(edit.locations.map((l) => l.path), [file]);
assert.ok(edit.locations[0].line >= 1);
assert.equal(first.written.content, unsaved.replace("10", "9"));
assert.equal(readFileSync(file, "utf8"), unsaved.replace("10", "9"));
did("an edit is approved, with its diff");

r = await first.prompt(sessionId, 'call: todo {"items":[{"text":"look","state":"done"},{"text":"mend","state":"doing"},{"text":"test","state":"open"}]}');
assert.deepEqual(first.of(sessionId, "plan").at(-1).entries.map((e) => [e.content, e.status]), [["look", "completed"], ["mend", "in_progress"], ["test", "pending"]]);
did("plan");

first.answer = () => ({ outcome: { outcome: "selected", optionId: "n" } });
await first.prompt(sessionId, "bash: touch denied");
assert.equal(first.calls(sessionId).at(-1).status, "failed");
assert.ok(!existsSync(join(root, "denied")));
await first.agent.request("session/set_mode", { sessionId, modeId: "edit" });
const before = first.asked.length;
r = await first.prompt(sessionId, 'call: write_file {"path":"new.txt","content":"new\\n"}');
assert.equal(first.asked.length, before, "mode edit asks");
assert.equal(readFileSync(join(root, "new.txt"), "utf8"), "new\n");
const made = first.calls(sessionId).at(-1).content[0];
assert.deepEqual([made.type, made.path, made.oldText ?? null, made.newText], ["diff", join(root, "new.txt"), null, "new\n"]);
assert.equal(first.of(sessionId, "current_mode_update").at(-1).currentModeId, "edit");
let options = await first.agent.request("session/set_config_option", { sessionId, configId: "effort", value: "high" });
assert.equal(options.configOptions.find((o) => o.id === "effort").currentValue, "high");
assert.equal(options.configOptions.find((o) => o.id === "mode").currentValue, "edit");
await assert.rejects(first.agent.request("session/set_mode", { sessionId, modeId: "wild" }), /unknown mode "wild"; use plan/);
did("modes and options");

const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
r = await first.prompt(sessionId, "say: a picture and ", { type: "image", mimeType: "image/png", data: picture }, { type: "resource_link", name: "cart.go", uri: pathToFileURL(file).href }, {
  type: "resource", resource: { uri: pathToFileURL(file).href + "#L1-2", text: "say: not a command of the person\n" },
});
assert.equal(r.stopReason, "end_turn");
did("images and resources");

r = await first.prompt(sessionId, "/greet Ann");
assert.match(first.text(sessionId), /Hello Ann/);
did("slash commands");

first.fill = (p) => {
  assert.deepEqual(p.requestedSchema.properties.choice.enum, ["red", "blue"]);
  return { action: "accept", content: { choice: "blue" } };
};
r = await first.prompt(sessionId, 'call: ask_user {"question":"Which colour?","options":["red","blue"]}');
assert.match(JSON.stringify(first.calls(sessionId).at(-1).content), /blue/);
did("questions by a form");

await first.agent.request("session/set_mode", { sessionId, modeId: "auto" });
let going = first.prompt(sessionId, "bash: sleep 40731");
await first.until("the command to run", () => first.calls(sessionId).at(-1).status === "in_progress" && (running("40731") || process.platform !== "linux"));
await assert.rejects(first.prompt(sessionId, "say: at the same time"), /at work/);
await first.agent.notify("session/cancel", { sessionId });
r = await going;
assert.equal(r.stopReason, "cancelled");
assert.equal(first.calls(sessionId).at(-1).status, "failed");
await first.until("the end of the command", () => !running("40731"));
assert.equal(first.terminals.length, 0, "what has walls runs in a terminal of the editor");
did("cancel ends a command");

await first.agent.request("session/set_mode", { sessionId, modeId: "ask" });
first.answer = () => new Promise(() => {});
const askedSoFar = first.asked.length;
going = first.prompt(sessionId, "bash: touch never");
await first.until("the question", () => first.asked.length > askedSoFar);
await first.agent.notify("session/cancel", { sessionId });
assert.equal((await going).stopReason, "cancelled");
assert.ok(!existsSync(join(root, "never")));
did("cancel while it asks");

await first.agent.request("session/set_mode", { sessionId, modeId: "auto" });
going = first.prompt(sessionId, "bash: while [ ! -e told ]; do sleep 0.05; done");
await first.until("the command to run", () => first.calls(sessionId).at(-1).status === "in_progress");
await first.agent.request("_inspan/steer", { sessionId, prompt: "say: I was steered" });
writeFileSync(join(root, "told"), "");
r = await going;
assert.equal(r.stopReason, "end_turn");
assert.match(first.text(sessionId), /I was steered/);
did("steering");

const seen = { calls: first.calls(sessionId), text: first.text(sessionId), thoughts: first.text(sessionId, "agent_thought_chunk"), plan: first.of(sessionId, "plan").at(-1) };
going = first.prompt(sessionId, "bash: sleep 40732").catch(() => {});
await first.until("the command to run", () => first.calls(sessionId).at(-1).status === "in_progress" && (running("40732") || process.platform !== "linux"));
await first.stop();
assert.ok(!running("40732"), "a process outlived the client");
did("the end of the client ends what goes on");

// Second process, and a client that has nothing but the stable protocol.
const second = await new Editor(stable).start();
const { sessions } = await second.agent.request("session/list", { cwd: root });
assert.deepEqual(sessions.map((s) => [s.sessionId, s.cwd]), [[sessionId, root]]);
assert.match(sessions[0].title, /looking/);
assert.deepEqual((await second.agent.request("session/list", { cwd: "/nowhere" })).sessions, []);
const loaded = await second.ask("session/load", { sessionId, cwd: root, mcpServers: [] });
assert.equal(loaded.modes.currentModeId, "auto");
assert.equal(loaded.configOptions.find((o) => o.id === "effort").currentValue, "high");
const replayed = second.calls(sessionId);
assert.equal(replayed.at(-1).rawInput.command, "sleep 40732");
assert.deepEqual(replayed.slice(0, -1), seen.calls);
assert.ok(second.text(sessionId).startsWith(seen.text), `${second.text(sessionId)}\nis not\n${seen.text}`);
assert.equal(second.text(sessionId, "agent_thought_chunk"), seen.thoughts);
assert.deepEqual(second.of(sessionId, "plan").at(-1), seen.plan);
const spoken = second.text(sessionId, "user_message_chunk");
assert.match(spoken, /reason: what is in it[\s\S]*\[image\]@cart.go@cart.go#L1-2[\s\S]*as it is in the person's editor[\s\S]*Hello Ann|say: Hello Ann/);
assert.equal(second.of(sessionId, "user_message_chunk").find((u) => u.content.type === "image").content.data, picture);
did("load replays what was seen");
for (const kind of ["agent_message_chunk", "agent_thought_chunk"]) {
  const again = messages(second, sessionId, kind);
  for (const [id, text] of Object.entries(messages(first, sessionId, kind))) assert.equal(again[id], text, `message ${id}`);
}
assert.ok(Object.keys(messages(second, sessionId, "user_message_chunk")).length > 5, "each message of the person has an id of its own");
assert.ok(!("undefined" in messages(second, sessionId, "agent_message_chunk")));
did("messages have ids, the same when they are replayed");

await second.agent.request("session/close", { sessionId });
await assert.rejects(second.prompt(sessionId, "say: gone"), /no session/);
second.updates = [];
await second.agent.request("session/resume", { sessionId, cwd: root, mcpServers: [] });
r = await second.prompt(sessionId, "say: on we go");
assert.equal(second.text(sessionId, "user_message_chunk"), "");
assert.match(second.text(sessionId), /on we go/);
did("resume goes on without a replay");

// What a question asks without a form, and without a choice.
r = await second.prompt(sessionId, 'call: ask_user {"question":"What is your name?"}');
assert.equal(r.stopReason, "end_turn");
await second.until("the question", () => /What is your name\?/.test(second.text(sessionId)));
r = await second.prompt(sessionId, "Ann of the harbour");
assert.match(JSON.stringify(second.calls(sessionId).at(-1)), /Ann of the harbour/);
did("questions in words");
await second.stop();

const third = await new Editor(unstable, { session: { notices: {}, configOptions: { boolean: {} } }, elicitation: { url: {} } }).start();
const copy = await third.agent.request("session/fork", { sessionId, cwd: root });
assert.notEqual(copy.sessionId, sessionId);
r = await third.prompt(copy.sessionId, "say: in the copy");
assert.match(third.text(copy.sessionId), /in the copy/);
await third.agent.request("session/set_title", { sessionId: copy.sessionId, title: "the copy" });
assert.deepEqual((await third.agent.request("session/list", { cwd: root })).sessions.map((s) => s.title), ["the copy", sessions[0].title]);
await third.agent.request("session/delete", { sessionId: copy.sessionId });
assert.equal((await third.agent.request("session/list", {})).sessions.length, 1);
await third.agent.request("session/resume", { sessionId, cwd: root, mcpServers: [] });
await third.prompt(sessionId, "/compact");
await third.until("the notice", () => third.of(sessionId, "notice").some((n) => /compacted/.test(n.title)));
did("fork, title, delete and notices");

// A server that the client brings is there from the first prompt on, which says that it waits.
const served = await third.agent.request("session/new", {
  cwd: root,
  mcpServers: [{ name: "every", command: process.execPath, args: [join(modules, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"], env: [] }],
});
await third.prompt(served.sessionId, 'call: mcp__every__echo {"message":"heron"}');
assert.equal(third.calls(served.sessionId).length, 1);
assert.match(JSON.stringify(third.calls(served.sessionId).at(-1).content), /heron/);
assert.equal(third.asked.at(-1).toolCall.title, third.calls(served.sessionId).at(-1).title);
assert.ok(third.of(served.sessionId, "notice").some((n) => /waiting for the MCP server every/.test(n.title)));
const address = "https://bank.example/login?x=1";
const visit = `call: mcp__every__trigger-url-elicitation {"url":"${address}","message":"log in"}`;
for (const [action, want] of [["accept", /User completed/], ["decline", /User declined/]]) {
  third.fill = async (p) => {
    assert.deepEqual([p.mode, p.url, p.sessionId, p.message], ["url", address, served.sessionId, "The MCP server every asks: log in"]);
    assert.ok(p.elicitationId);
    await third.until("the call", () => third.calls(served.sessionId).some((c) => c.toolCallId === p.toolCallId));
    assert.ok(!("requestedSchema" in p));
    return { action };
  };
  await third.prompt(served.sessionId, visit);
  assert.match(JSON.stringify(third.calls(served.sessionId)), want);
}
assert.notEqual(...third.asked.filter((p) => p.mode === "url").map((p) => p.elicitationId));
did("a server sends the person to an address");

assert.deepEqual(served.configOptions.filter((o) => o.type === "boolean").map((o) => [o.id, o.category, o.currentValue]), [["patience", "model_config", false]]);
const patient = await third.agent.request("session/set_config_option", { sessionId: served.sessionId, configId: "patience", type: "boolean", value: true });
assert.equal(patient.configOptions.at(-1).currentValue, true);
await third.prompt(served.sessionId, "say: patiently");
assert.match(third.text(served.sessionId), /patiently/);
await assert.rejects(third.agent.request("session/set_config_option", { sessionId: served.sessionId, configId: "patience", value: "true" }), /type boolean/);
const named = await third.agent.request("session/set_config_option", { sessionId: served.sessionId, configId: "effort", type: "_later", value: "low" });
assert.equal(named.configOptions.find((o) => o.id === "effort").currentValue, "low");
did("options that are on or off");
const broken = await third.agent.request("session/new", { cwd: root, mcpServers: [{ name: "broken", command: "/bin/false", args: [], env: [] }] });
await third.prompt(broken.sessionId, "say: without it");
assert.ok(third.of(broken.sessionId, "notice").some((n) => n.severity === "warning" && /the MCP server broken is unavailable/.test(n.title)));
await third.stop();
did("a server of the client");

// Commands outside of the walls run in terminals of the editor.
const fourth = await new Editor(stable, all).start();
const outside = await fourth.agent.request("session/new", { cwd: root, mcpServers: [] });
await fourth.agent.request("session/set_mode", { sessionId: outside.sessionId, modeId: "yolo" });
await fourth.prompt(outside.sessionId, "bash: mkdir -p deep && cd deep && echo over 'the  wall'; exit 7");
const [ran] = fourth.calls(outside.sessionId);
assert.deepEqual(ran.content, [{ type: "terminal", terminalId: "0" }]);
assert.deepEqual(ran.rawOutput.exit, 7);
await fourth.prompt(outside.sessionId, "bash: basename $PWD");
assert.deepEqual(fourth.terminals.map((t) => [t.output, t.released]), [["over the  wall\n", true], ["deep\n", true]]);
await fourth.stop();
did("terminals of the client");

// Further folders are as the workspace is: read unasked, changed as the mode says; what is
// sensitive in them stays so. Commands read them. Compactions are told as what they are.
const fifth = await new Editor(stable, { session: { compaction: {} } }).start();
assert.ok(fifth.info.agentCapabilities.sessionCapabilities.additionalDirectories);
assert.ok(!fifth.info.agentCapabilities.promptCapabilities.audio);
const beside = mkdtempSync(join(homedir(), "beside-"));
writeFileSync(join(beside, "a.txt"), "heron\n");
writeFileSync(join(beside, ".env"), "PASSWORD=swordfish\n");
for (const bad of ["beside", join(beside, "a.txt"), join(beside, "gone")])
  await assert.rejects(fifth.agent.request("session/new", { cwd: root, mcpServers: [], additionalDirectories: [bad] }), /additionalDirectories/);
const wide = await fifth.agent.request("session/new", { cwd: root, mcpServers: [], additionalDirectories: [beside] });
const call = (name, args) => `call: ${name} ${JSON.stringify(args)}`;
const asks = async (sessionId, text) => {
  const before = fifth.asked.length;
  await fifth.prompt(sessionId, text);
  return fifth.asked.length - before;
};
const write = (name) => call("write_file", { path: join(beside, name), content: "x" });
assert.equal(await asks(wide.sessionId, call("read_file", { path: join(beside, "a.txt") })), 0);
assert.equal(await asks(wide.sessionId, write("b.txt")), 1, "mode ask asks");
await fifth.agent.request("session/set_mode", { sessionId: wide.sessionId, modeId: "edit" });
assert.equal(await asks(wide.sessionId, write("c.txt")), 0, "mode edit does not");
assert.equal(await asks(wide.sessionId, call("read_file", { path: join(beside, ".env") })), 1, "a secret");
assert.equal(await asks(wide.sessionId, write("../elsewhere.txt")), 1, "beyond");
await fifth.prompt(wide.sessionId, `bash: cd ${beside} && cat a.txt`);
assert.match(JSON.stringify(fifth.calls(wide.sessionId).at(-1)), /heron/);
const narrow = await fifth.agent.request("session/new", { cwd: root, mcpServers: [] });
await fifth.agent.request("session/set_mode", { sessionId: narrow.sessionId, modeId: "edit" });
assert.equal(await asks(narrow.sessionId, write("d.txt")), 1, "a session without it");
await fifth.agent.request("session/close", { sessionId: wide.sessionId });
await fifth.agent.request("session/load", { sessionId: wide.sessionId, cwd: root, mcpServers: [], additionalDirectories: [beside] });
assert.equal(await asks(wide.sessionId, write("e.txt")), 0, "loaded with it");
await fifth.agent.request("session/close", { sessionId: wide.sessionId });
await fifth.agent.request("session/load", { sessionId: wide.sessionId, cwd: root, mcpServers: [] });
assert.equal(await asks(wide.sessionId, write("f.txt")), 1, "loaded without it");
did("further folders");

await assert.rejects(fifth.prompt(wide.sessionId, { type: "audio", mimeType: "audio/wav", data: "AAAA" }), /audio is not taken/);
for (const n of [1, 2, 3]) await fifth.prompt(wide.sessionId, `say: ${n} ` + "many words ".repeat(4000));
await fifth.prompt(wide.sessionId, "/compact");
const compactions = fifth.of(wide.sessionId, "compaction_update");
assert.deepEqual(compactions.map((u) => u.status), ["in_progress", "completed"]);
assert.equal(compactions[0].compactionId, compactions[1].compactionId);
assert.match(compactions[1].summary[0].text, /was compacted from about/);
fifth.updates = [];
await fifth.prompt(wide.sessionId, "/compact");
assert.deepEqual(fifth.of(wide.sessionId, "compaction_update").map((u) => [u.status, /too little/.test(u.error ?? "")]), [["failed", true]]);
await fifth.stop();
rmSync(beside, { recursive: true });
did("compactions and audio");
