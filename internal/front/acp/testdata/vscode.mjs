// Runs the extension for VS Code against `inspan acp`, with an editor that has what the extension uses of it.
// Usage: node22 vscode.mjs EXTENSION-FOLDER INSPAN WORKSPACE. It prints a line for each thing it has seen, and
// ends with 1 at the first that is wrong.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { join } from "node:path";

const [, , extension, inspan, root] = process.argv;
const require = createRequire(join(extension, "out", "extension.js"));
const did = (what) => console.log(`ok ${what}`);

// What the person does, and what the person sees.
const person = { picks: [], shown: [], diffs: [], terminals: [], answers: [], clicks: [] };
const waiting = [];
const saw = () => waiting.splice(0).forEach((w) => w());
async function until(what, test) {
  const late = Date.now() + 120000;
  while (!test()) {
    assert.ok(Date.now() < late, `waited too long for ${what}: ${JSON.stringify([person.shown, chat.items], null, 1)}`);
    await Promise.race([new Promise((r) => waiting.push(r)), new Promise((r) => setTimeout(r, 1000).unref())]);
  }
}

class Uri {
  constructor(parts) { Object.assign(this, { scheme: "file", query: "" }, parts); }
  static file(path) { return new Uri({ path }); }
  static from(parts) { return new Uri(parts); }
  static parse(text) { return new Uri({ scheme: text.split(":")[0], path: text }); }
  static joinPath(uri, ...names) { return new Uri({ ...uri, path: join(uri.path, ...names) }); }
  get fsPath() { return this.path; }
  toString() { return `${this.scheme}:${this.path}?${this.query}`; }
}
class FileSystemError extends Error {
  constructor(code) { super(code); this.code = code; }
}
class EventEmitter {
  listeners = [];
  event = (f) => this.listeners.push(f);
  fire() { this.listeners.forEach((f) => f()); saw(); }
}
const commands = {};
const providers = {};
const documents = []; // open in the editor
const message = (kind) => async (text, ...more) => {
  person.shown.push(`${kind}: ${text}`);
  saw();
  return more.includes(person.clicks[0]) ? person.clicks.shift() : undefined;
};
const vscode = {
  Uri, FileSystemError, EventEmitter,
  Range: class { constructor(...at) { this.at = at; } },
  TreeItem: class { constructor(label) { this.label = label; } },
  WorkspaceEdit: class { replace(uri, _range, text) { Object.assign(this, { uri, text }); } },
  window: {
    registerWebviewViewProvider: (_id, p) => ((providers.chat = p), { dispose() {} }),
    registerTreeDataProvider: (_id, p) => ((providers.sessions = p), { dispose() {} }),
    showInformationMessage: message("info"), showWarningMessage: message("warning"), showErrorMessage: message("error"),
    showInputBox: async ({ title }) => (person.shown.push(`input: ${title}`), person.answers.shift()),
    showQuickPick: async () => undefined,
    createTerminal: (options) => (person.terminals.push(options), { show() {} }),
    createQuickPick() {
      const list = {
        onDidAccept: (f) => (list.accepted = f), onDidHide: (f) => (list.hidden = f),
        show() { person.picks.push(list); saw(); },
        hide() { if (!list.gone) (list.gone = true), list.hidden(); saw(); },
        dispose() {},
        choose(label) {
          list.selectedItems = [list.items.find((i) => i.label.startsWith(label))];
          assert.ok(list.selectedItems[0], `no ${label} in ${JSON.stringify(list.items)}`);
          list.accepted();
        },
      };
      return list;
    },
  },
  commands: {
    registerCommand: (name, f) => ((commands[name] = f), { dispose() {} }),
    async executeCommand(name, ...args) {
      if (name === "vscode.diff") person.diffs.push(args), saw();
      return commands[name]?.(...args);
    },
  },
  workspace: {
    workspaceFolders: [{ uri: Uri.file(root) }],
    textDocuments: documents,
    getConfiguration: () => ({ get: (key, otherwise) => ({ path: inspan, arguments: ["--model", "script/commands"] })[key] ?? otherwise }),
    registerTextDocumentContentProvider: (_scheme, p) => ((providers.text = p), { dispose() {} }),
    asRelativePath: (path) => path.slice(root.length + 1),
    async applyEdit({ uri, text }) { documents.find((d) => d.uri.path === uri.path).text = text; return true; },
    fs: {
      async readFile(uri) {
        if (!existsSync(uri.path)) throw new FileSystemError("FileNotFound");
        return readFileSync(uri.path);
      },
      async writeFile(uri, data) { writeFileSync(uri.path, data); },
    },
  },
  env: { openExternal: async () => true },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

// chat is the view as its script would have it.
const chat = { items: [], shown: {} };
const view = {
  webview: {
    cspSource: "vscode-webview:", asWebviewUri: (uri) => uri.path, onDidReceiveMessage: (f) => (chat.tell = f),
    async postMessage(m) {
      m = structuredClone(m);
      if (m.kind === "reset") chat.items = m.items;
      if (m.kind === "item") chat.items[m.at] = m.item;
      if (m.shown) chat.shown = m.shown;
      saw();
    },
  },
  onDidDispose() {},
};

const context = { extensionUri: Uri.file(extension), subscriptions: [] };
require("./extension.js").activate(context);
const { contributes } = JSON.parse(readFileSync(join(extension, "package.json")));
assert.deepEqual(Object.keys(commands).sort(), contributes.commands.map((c) => c.command).sort());
providers.chat.resolveWebviewView(view);
for (const name of ["chat.css", "chat.js"]) assert.match(view.webview.html, new RegExp(join(extension, "media", name)));
chat.tell({ kind: "ready" });
did("the extension begins");

const calls = () => chat.items.filter((i) => i.kind === "call");
const idle = (what) => until(what, () => chat.shown.mode && !chat.shown.working);
const says = async (text) => {
  chat.tell({ kind: "say", text });
  await until("the run to begin", () => chat.shown.working || chat.items.some((i) => i.kind === "agent"));
};

// An unsaved text counts, a change is shown beside it, and the answer is one of the list.
const file = join(root, "cart.go");
documents.push({
  uri: Uri.file(file), text: `package cart\n\n// not saved yet\nconst limit = 10\n${"\n// more".repeat(50)}\n`,
  getText() { return this.text; }, get lineCount() { return this.text.split("\n").length; },
  async save() { writeFileSync(file, this.text); return true; },
});
await says(`say: I lower the limit.\nread: cart.go\ncall: edit_file {"path":"cart.go","edits":[{"old_string":"limit = 10","new_string":"limit = 9"}]}`);
await until("the question", () => person.picks.length === 1);
const [[before, after, title]] = person.diffs;
assert.equal(title, "cart.go (inspan)");
assert.equal(providers.text.provideTextDocumentContent(before), documents[0].text);
assert.equal(providers.text.provideTextDocumentContent(after), documents[0].text.replace("10", "9"));
assert.match(person.picks[0].title, /^inspan asks: /);
assert.ok(calls().at(-1).asks);
assert.match(readFileSync(file, "utf8"), /limit = 10/);
person.picks[0].choose("Yes");
await idle("the run");
assert.match(readFileSync(file, "utf8"), /not saved yet\nconst limit = 9/);
await until("the results", () => calls().every((c) => c.status === "completed" && !c.asks));
assert.equal(calls().length, 2);
assert.deepEqual(chat.items.map((i) => i.kind).slice(0, 2), ["person", "agent"]);
chat.tell({ kind: "diff", call: calls()[1].id, path: file });
await until("the change again", () => person.diffs.length === 2);
assert.equal(providers.text.provideTextDocumentContent(person.diffs[1][0]), documents[0].text.replace("= 9", "= 10"));
did("an edit is shown and allowed");

// A question that the person leaves stays open in the chat. Interrupting withdraws it.
await says("bash: touch made");
await until("the question", () => person.picks.length === 2);
person.picks[1].hide();
await until("the question to be left", () => calls().at(-1).asks && chat.shown.working);
assert.ok(!existsSync(join(root, "made")));
chat.tell({ kind: "answer", call: calls().at(-1).id });
await until("the question again", () => person.picks.length === 3);
person.picks[2].choose("Yes");
await idle("the run");
assert.ok(existsSync(join(root, "made")));
await says("bash: touch never");
await until("the question", () => person.picks.length === 4);
chat.tell({ kind: "cancel" });
await idle("the end of the run");
assert.ok(person.picks[3].gone && !existsSync(join(root, "never")));
assert.equal(chat.items.at(-1).text, "Interrupted");
did("a question waits, and is withdrawn");

// A form, a plan, a mode, a message into a run.
await says('call: ask_user {"question":"Which colour?","options":["red","blue"]}');
await until("the form", () => person.picks.length === 5);
person.picks[4].choose("blue");
await idle("the run");
await until("the answer", () => /blue/.test(calls().at(-1).text));
await says('call: todo {"items":[{"text":"look","state":"done"},{"text":"mend","state":"doing"}]}');
await until("the plan", () => chat.items.some((i) => i.kind === "plan"));
await idle("the run");
assert.deepEqual(chat.items.find((i) => i.kind === "plan").entries, [{ text: "look", status: "completed" }, { text: "mend", status: "in_progress" }]);
void commands["inspan.mode"]();
await until("the modes", () => person.picks.length === 6);
person.picks[5].choose("Auto");
await until("the mode", () => chat.shown.mode === "auto");
await says("bash: while [ ! -e told ]; do sleep 0.05; done");
await until("the command to run", () => calls().at(-1).status === "in_progress");
chat.tell({ kind: "say", text: "say: I was steered" });
await until("the message", () => chat.items.some((i) => i.kind === "person" && /steered/.test(i.text)));
writeFileSync(join(root, "told"), "");
await until("the reply", () => chat.items.some((i) => i.kind === "agent" && /I was steered/.test(i.text)));
await idle("the run");
did("a form, a plan, a mode, and a message into a run");

// Sessions: a list, one that is opened again with its transcript, one in a terminal, and one that is deleted.
const replayed = chat.items.filter((i) => i.kind === "agent" || i.kind === "person").length;
const [first] = await providers.sessions.getChildren();
const row = providers.sessions.getTreeItem(first);
assert.match(row.label, /lower the limit/);
await commands["inspan.new"]();
assert.deepEqual(chat.items, []);
await commands[row.command.command](...row.command.arguments);
assert.equal(chat.items.filter((i) => i.kind === "agent" || i.kind === "person").length, replayed);
assert.equal(chat.shown.mode, "auto");
await commands["inspan.terminal"](first);
assert.deepEqual(person.terminals, [{ name: "inspan", shellPath: inspan, shellArgs: ["resume", first.sessionId], cwd: root }]);
assert.deepEqual(chat.items, []);
person.clicks = ["Delete"];
await commands["inspan.delete"](first);
assert.ok(!(await providers.sessions.getChildren()).some((s) => s.sessionId === first.sessionId));
did("sessions");

assert.deepEqual(person.shown.filter((s) => s.startsWith("error")), []);

// What can't be opened is said, and the next two messages begin one session.
await commands["inspan.open"]({ sessionId: "20260101-000000-none", title: "gone", cwd: root });
assert.match(person.shown.at(-1), /^error: inspan: .*20260101-000000-none/);
assert.equal(chat.shown.mode, "");
chat.tell({ kind: "say", text: "say: the first" });
chat.tell({ kind: "say", text: "bash: touch second" }); // a model that reads both at once follows the last
await until("both messages", () => chat.items.filter((i) => i.kind === "person").length === 2);
await until("the question", () => person.picks.length === 7);
person.picks[6].choose("Yes");
await until("the command", () => existsSync(join(root, "second")));
await idle("the run");
chat.tell({ kind: "say", text: 'call: ask_user {"question":"Which colour?","options":["red","blue"]}' });
await until("the form", () => person.picks.length === 8);
chat.tell({ kind: "cancel" });
await until("the form to be withdrawn", () => person.picks[7].gone);
await idle("the end of the run");
assert.ok(!person.shown.some((s) => s.startsWith("input")));
did("what can't be opened, and two messages at once");
context.subscriptions.forEach((s) => s.dispose());
did("the end");
