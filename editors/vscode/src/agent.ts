// The agent: a process of `inspan acp` that speaks the Agent Client Protocol.

import { spawn, type ChildProcess } from "node:child_process";
import { Readable, Writable } from "node:stream";
import type * as acp from "@agentclientprotocol/sdk" with { "resolution-mode": "import" };

/** Editor is what the agent asks of its editor. */
export interface Editor {
  permit(question: acp.RequestPermissionRequest): Promise<acp.RequestPermissionResponse>;
  elicit(question: acp.CreateElicitationRequest): Promise<acp.CreateElicitationResponse>;
  /** read returns the text of a file as the person sees it, or undefined if there is none. */
  read(path: string): Promise<string | undefined>;
  write(path: string, text: string): Promise<void>;
  updated(session: string, update: acp.SessionUpdate): void;
  /** ended is called once, when the process has ended. */
  ended(why: string): void;
}

/** needsModel is the code of the error that no model is set up. */
export const needsModel = -32000;

const noFile = -32002;

/** Agent is one process, which drives any number of sessions. */
export class Agent {
  private constructor(private readonly process: ChildProcess, private readonly connection: acp.ClientConnection) {}

  /** start starts the program in a folder, and waits until it has introduced itself. */
  static async start(program: string, args: string[], folder: string, editor: Editor): Promise<Agent> {
    const sdk = await import("@agentclientprotocol/sdk");
    const child = spawn(program, ["acp", ...args], { cwd: folder, stdio: ["pipe", "pipe", "pipe"] });
    let said = "";
    child.stderr.on("data", (data) => (said = (said + data).slice(-2000)));
    const over = new Promise<never>((_, fail) => {
      child.on("error", fail);
      child.on("close", (code, signal) => fail(new Error(said.trim() || `inspan has ended: ${signal ?? code}`)));
    });
    const { session, fs, elicitation } = sdk.methods.client;
    const connection = sdk
      .client({ name: "vscode" })
      .onRequest(session.requestPermission, ({ params }) => editor.permit(params))
      .onRequest(elicitation.create, ({ params }) => editor.elicit(params))
      .onRequest(fs.readTextFile, async ({ params }) => {
        const text = await editor.read(params.path);
        if (text === undefined) throw new sdk.RequestError(noFile, "no such file");
        return { content: section(text, params.line, params.limit) };
      })
      .onRequest(fs.writeTextFile, async ({ params }) => (await editor.write(params.path, params.content), {}))
      .onNotification(session.update, ({ params }) => editor.updated(params.sessionId, params.update))
      .connect(sdk.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>));
    const agent = new Agent(child, connection);
    const hello = connection.agent.request("initialize", {
      protocolVersion: sdk.PROTOCOL_VERSION,
      clientInfo: { name: "inspan-vscode", version: "0.2.0" },
      clientCapabilities: {
        fs: { readTextFile: true, writeTextFile: true }, elicitation: { form: {}, url: {} }, auth: { terminal: true }, session: { notices: {} },
      },
    });
    await Promise.race([hello, over]);
    over.catch((err: Error) => editor.ended(err.message));
    return agent;
  }

  create(cwd: string) {
    return this.connection.agent.request("session/new", { cwd, mcpServers: [] });
  }

  load(sessionId: string, cwd: string) {
    return this.connection.agent.request("session/load", { sessionId, cwd, mcpServers: [] });
  }

  async list(cwd: string): Promise<acp.SessionInfo[]> {
    return (await this.connection.agent.request("session/list", { cwd })).sessions;
  }

  close(sessionId: string) {
    return this.connection.agent.request("session/close", { sessionId });
  }

  delete(sessionId: string) {
    return this.connection.agent.request("session/delete", { sessionId });
  }

  /** prompt returns when the agent has nothing more to do. */
  prompt(sessionId: string, text: string) {
    return this.connection.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  /** steer sends a message into a run: the model reads it with its next results. */
  steer(sessionId: string, text: string) {
    return this.connection.agent.request("_inspan/steer", { sessionId, prompt: text });
  }

  cancel(sessionId: string) {
    return this.connection.agent.notify("session/cancel", { sessionId });
  }

  setMode(sessionId: string, modeId: string) {
    return this.connection.agent.request("session/set_mode", { sessionId, modeId });
  }

  /** stop ends the process with its sessions, which can be opened again. */
  stop() {
    this.process.stdin?.end();
  }
}

/** section returns some lines of a text, counted from 1. */
function section(text: string, line?: number | null, limit?: number | null): string {
  if (!line && !limit) return text;
  const from = (line ?? 1) - 1;
  return text.split(/(?<=\n)/).slice(from, limit ? from + limit : undefined).join("");
}
