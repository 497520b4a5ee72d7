// The extension: one agent for the window's folder, one session in the chat, and what belongs to them.

import * as vscode from "vscode";
import type * as acp from "@agentclientprotocol/sdk" with { "resolution-mode": "import" };
import { Agent, needsModel, type Editor } from "./agent";
import { Chat, type Message } from "./chat";
import * as files from "./files";
import * as questions from "./questions";
import { Sessions } from "./sessions";
import { Transcript } from "./transcript";

export function activate(context: vscode.ExtensionContext): void {
  const window = new Window(context.extensionUri);
  const command = (name: string, f: (s?: acp.SessionInfo) => Promise<unknown>) =>
    vscode.commands.registerCommand(`inspan.${name}`, (s?: acp.SessionInfo) => window.attempt(() => f(s)));
  context.subscriptions.push(
    vscode.window.registerWebviewViewProvider("inspan.chat", window.chat, { webviewOptions: { retainContextWhenHidden: true } }),
    vscode.window.registerTreeDataProvider("inspan.sessions", window.sessions),
    vscode.workspace.registerTextDocumentContentProvider(files.scheme, window.changes),
    command("new", () => window.create()),
    command("open", (s) => window.open(s)),
    command("mode", () => window.changeMode()),
    command("cancel", () => window.cancel()),
    command("refresh", async () => window.sessions.refresh()),
    command("delete", (s) => window.delete(s)),
    command("terminal", (s) => window.continueInTerminal(s)),
    { dispose: () => window.stop() },
  );
}

/** Session is the session in the chat. */
interface Session {
  id: string;
  mode: string;
  modes: acp.SessionMode[];
  transcript: Transcript;
  working: boolean;
}

/** Question is an open question about a call. */
interface Question {
  ask: acp.RequestPermissionRequest;
  answer: (a: acp.RequestPermissionResponse) => void;
  withdrawn: AbortController;
}

class Window implements Editor {
  readonly chat: Chat;
  readonly sessions = new Sessions(() => this.attempt(async () => (await this.agent()).list(this.folder())).then((list) => list ?? []));
  readonly changes = new files.Changes();
  private running?: Promise<Agent>;
  private session?: Session;
  private creating?: Promise<void>; // of the session for the first message
  private readonly asked = new Map<string, Question>(); // by call
  private forms = new AbortController(); // ends with the run that asks

  constructor(root: vscode.Uri) {
    this.chat = new Chat(root, (m) => void this.attempt(() => this.heard(m)));
  }

  /** attempt does something that may fail, and shows the reason if it does. */
  async attempt<T>(f: () => Promise<T>): Promise<T | undefined> {
    try {
      return await f();
    } catch (err) {
      await this.failed(err as Error & { code?: number | string });
      return undefined;
    }
  }

  private async failed(err: Error & { code?: number | string }): Promise<void> {
    if (err.code === "ENOENT") {
      const chosen = await vscode.window.showErrorMessage(`The program ${program()} was not found. Install inspan, or set inspan.path.`, "Open the Settings");
      if (chosen) await vscode.commands.executeCommand("workbench.action.openSettings", "inspan.path");
    } else if (err.code === needsModel) {
      if (await vscode.window.showErrorMessage(err.message, "Set Up a Model")) terminal(["setup"], this.folder());
    } else {
      await vscode.window.showErrorMessage(`inspan: ${err.message}`);
    }
  }

  private folder(): string {
    const folder = vscode.workspace.workspaceFolders?.find((f) => f.uri.scheme === "file");
    if (!folder) throw new Error("open a folder first: an agent works in one");
    return folder.uri.fsPath;
  }

  private agent(): Promise<Agent> {
    this.running ??= Agent.start(program(), vscode.workspace.getConfiguration("inspan").get<string[]>("arguments", []), this.folder(), this);
    this.running.catch(() => (this.running = undefined));
    return this.running;
  }

  private async heard(m: Message): Promise<void> {
    switch (m.kind) {
      case "ready":
        return this.reset();
      case "cancel":
        return this.cancel();
      case "mode":
        return this.changeMode();
      case "say":
        return this.say(m.text);
      case "answer":
        return this.ask(m.call);
      case "diff": {
        const change = this.session?.transcript.changes(m.call).find((c) => c.path === m.path);
        return change && this.changes.show(m.call, change);
      }
    }
  }

  private reset(): void {
    this.chat.reset(this.session?.transcript.items ?? [], this.shown());
  }

  private shown() {
    return { mode: this.session?.mode ?? "", working: this.session?.working ?? false };
  }

  private show(at: number): void {
    const item = this.session?.transcript.items[at];
    if (item) this.chat.item(at, item);
  }

  private async enter(id: string, begin: (agent: Agent) => Promise<{ modes?: acp.SessionModeState | null }>): Promise<void> {
    const agent = await this.agent();
    await this.leave();
    const session: Session = { id, mode: "", modes: [], transcript: new Transcript(), working: false };
    this.session = session; // what is loaded is told before the answer
    try {
      const { modes } = await begin(agent);
      session.mode = modes?.currentModeId ?? session.mode;
      session.modes = modes?.availableModes ?? [];
    } catch (err) {
      this.session = undefined;
      throw err;
    } finally {
      this.reset();
    }
    await vscode.commands.executeCommand("inspan.chat.focus");
  }

  /** leave interrupts and closes the session in the chat. It can be opened again. */
  private async leave(): Promise<void> {
    const before = this.session;
    if (!before?.id) return;
    await this.cancel();
    this.session = undefined;
    await (await this.agent()).close(before.id);
  }

  async create(): Promise<void> {
    await this.enter("", async (agent) => {
      const made = await agent.create(this.folder());
      this.session!.id = made.sessionId;
      return made;
    });
  }

  async open(s?: acp.SessionInfo): Promise<void> {
    if (s && s.sessionId !== this.session?.id) await this.enter(s.sessionId, (agent) => agent.load(s.sessionId, s.cwd));
  }

  async delete(s?: acp.SessionInfo): Promise<void> {
    if (!s || !(await vscode.window.showWarningMessage(`Delete "${s.title || s.sessionId}" for ever?`, { modal: true }, "Delete"))) return;
    if (s.sessionId === this.session?.id) {
      await this.leave();
      this.reset();
    }
    await (await this.agent()).delete(s.sessionId);
    this.sessions.refresh();
  }

  async continueInTerminal(s?: acp.SessionInfo): Promise<void> {
    if (!s) return;
    if (s.sessionId === this.session?.id) {
      await this.leave();
      this.reset();
    }
    terminal(["resume", s.sessionId], s.cwd);
  }

  private async say(text: string): Promise<void> {
    if (this.creating || !this.session) await (this.creating ??= this.create().finally(() => (this.creating = undefined)));
    const session = this.session;
    if (!session) return;
    const agent = await this.agent();
    this.show(session.transcript.say(text));
    if (session.working) {
      await agent.steer(session.id, text);
      return;
    }
    this.work(session, true);
    try {
      const { stopReason } = await agent.prompt(session.id, text);
      if (stopReason !== "end_turn") this.note(session, stopReason === "cancelled" ? "Interrupted" : `Stopped: ${stopReason.replaceAll("_", " ")}`);
    } catch (err) {
      this.note(session, (err as Error).message);
      throw err;
    } finally {
      this.work(session, false);
      this.sessions.refresh();
    }
  }

  private note(session: Session, text: string): void {
    const at = session.transcript.notice(text, "info");
    if (session === this.session) this.show(at);
  }

  private work(session: Session, working: boolean): void {
    session.working = working;
    if (session !== this.session) return;
    void vscode.commands.executeCommand("setContext", "inspan.working", working);
    this.chat.state(this.shown());
  }

  async cancel(): Promise<void> {
    if (!this.session?.working) return;
    this.withdraw();
    await (await this.agent()).cancel(this.session.id);
  }

  /** withdraw closes all questions without an answer. */
  private withdraw(): void {
    this.forms.abort();
    this.forms = new AbortController();
    for (const q of this.asked.values()) this.answer(q, { outcome: { outcome: "cancelled" } });
  }

  async changeMode(): Promise<void> {
    const session = this.session;
    if (!session) return;
    const items = session.modes.map((m) => ({ label: m.name, description: m.description ?? "", id: m.id }));
    const chosen = await questions.pick("What inspan may do without asking", `now: ${session.mode}`, items);
    if (chosen) await (await this.agent()).setMode(session.id, chosen.id);
  }

  stop(): void {
    void this.running?.then((agent) => agent.stop());
  }

  // What the agent asks of its editor.

  read(path: string) {
    return files.read(path);
  }

  write(path: string, text: string) {
    return files.write(path, text);
  }

  updated(id: string, update: acp.SessionUpdate): void {
    const session = this.session;
    if (!session || session.id && session.id !== id) return;
    if (update.sessionUpdate === "current_mode_update") {
      session.mode = update.currentModeId;
      this.chat.state(this.shown());
    }
    if (update.sessionUpdate === "session_info_update") this.sessions.refresh();
    this.show(session.transcript.apply(update));
  }

  async permit(ask: acp.RequestPermissionRequest): Promise<acp.RequestPermissionResponse> {
    const call = ask.toolCall.toolCallId;
    return new Promise((answer) => {
      this.asked.set(call, { ask, answer, withdrawn: new AbortController() });
      const transcript = this.session?.transcript;
      if (transcript) {
        this.show(transcript.apply({ sessionUpdate: "tool_call_update", ...ask.toolCall }));
        this.show(transcript.asks(call, true));
      }
      void this.attempt(() => this.ask(call));
    });
  }

  /** ask shows an open question: what would change, and the answers. One that is left stays open in the chat. */
  private async ask(call: string): Promise<void> {
    const q = this.asked.get(call);
    if (!q) return;
    for (const change of this.session?.transcript.changes(call) ?? []) await this.changes.show(call, change);
    const said = await questions.permission(q.ask, q.withdrawn.signal);
    if (said) this.answer(q, said);
  }

  private answer(q: Question, said: acp.RequestPermissionResponse): void {
    const call = q.ask.toolCall.toolCallId;
    if (this.asked.get(call) !== q) return;
    this.asked.delete(call);
    q.withdrawn.abort();
    q.answer(said);
    if (this.session) this.show(this.session.transcript.asks(call, false));
  }

  async elicit(q: acp.CreateElicitationRequest): Promise<acp.CreateElicitationResponse> {
    return questions.elicit(q, this.forms.signal);
  }

  ended(why: string): void {
    this.running = undefined;
    this.withdraw();
    if (!this.session) return;
    const session = this.session;
    this.note(session, `The agent has ended: ${why}. Open the session again to continue it.`);
    this.work(session, false);
    this.session = undefined;
  }
}

const program = () => vscode.workspace.getConfiguration("inspan").get("path", "inspan");

function terminal(args: string[], cwd: string): void {
  vscode.window.createTerminal({ name: "inspan", shellPath: program(), shellArgs: args, cwd }).show();
}
