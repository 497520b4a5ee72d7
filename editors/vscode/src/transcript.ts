// The transcript of a session as the chat shows it, folded from the updates of the agent.

import type * as acp from "@agentclientprotocol/sdk" with { "resolution-mode": "import" };

/** Change is a change of a file. Before is missing if there was no file. */
export interface Change {
  path: string;
  before: string;
  after: string;
}

/** Item is a part of the transcript. */
export type Item =
  | { kind: "person" | "agent" | "thought"; text: string }
  | { kind: "call"; id: string; title: string; status: string; text: string; changes: string[]; asks: boolean }
  | { kind: "plan"; entries: { text: string; status: string }[] }
  | { kind: "notice"; text: string; severity: string };

const speakers = { user_message_chunk: "person", agent_message_chunk: "agent", agent_thought_chunk: "thought" } as const;

export class Transcript {
  readonly items: Item[] = [];
  private readonly calls = new Map<string, number>();
  private readonly changed = new Map<string, Change[]>();
  private message?: string; // whose text comes
  private plan = -1;

  /** changes returns the changes of files by a call. */
  changes(call: string): Change[] {
    return this.changed.get(call) ?? [];
  }

  /** say adds a message of the person, and returns its place. */
  say(text: string): number {
    this.message = undefined;
    return this.items.push({ kind: "person", text }) - 1;
  }

  notice(text: string, severity: string): number {
    this.message = undefined;
    return this.items.push({ kind: "notice", text, severity }) - 1;
  }

  /** asks marks a call that waits for an answer, or no longer does, and returns its place. */
  asks(call: string, asks: boolean): number {
    const at = this.calls.get(call) ?? -1;
    const item = this.items[at];
    if (item?.kind === "call") item.asks = asks;
    return at;
  }

  /** apply returns the place of the item that an update has changed or added; -1 if it shows nothing. */
  apply(u: acp.SessionUpdate): number {
    switch (u.sessionUpdate) {
      case "user_message_chunk":
      case "agent_message_chunk":
      case "agent_thought_chunk":
        return this.speak(speakers[u.sessionUpdate], u.messageId ?? "", textOf(u.content));
      case "tool_call":
      case "tool_call_update":
        return this.call(u);
      case "plan":
        return this.list(u.entries.map((e) => ({ text: e.content, status: e.status })));
      case "notice":
        return this.notice(u.title, u.severity ?? "info");
    }
    return -1;
  }

  private speak(kind: "person" | "agent" | "thought", id: string, text: string): number {
    const last = this.items.at(-1);
    if (last?.kind === kind && this.message === kind + id) last.text += text;
    else this.items.push({ kind, text });
    this.message = kind + id;
    return this.items.length - 1;
  }

  private call(u: acp.ToolCall | acp.ToolCallUpdate): number {
    let at = this.calls.get(u.toolCallId);
    if (at === undefined) {
      at = this.items.push({ kind: "call", id: u.toolCallId, title: "", status: "pending", text: "", changes: [], asks: false }) - 1;
      this.calls.set(u.toolCallId, at);
      this.message = undefined;
    }
    const item = this.items[at];
    if (item.kind !== "call") return -1;
    item.title = u.title ?? item.title;
    item.status = u.status ?? item.status;
    if (u.content) {
      item.text = u.content.map((c) => (c.type === "content" ? textOf(c.content) : "")).join("");
      const changes = u.content.flatMap((c) => (c.type === "diff" ? [{ path: c.path, before: c.oldText ?? "", after: c.newText }] : []));
      this.changed.set(u.toolCallId, changes);
      item.changes = changes.map((c) => c.path);
    }
    return at;
  }

  private list(entries: { text: string; status: string }[]): number {
    if (this.plan < 0) this.plan = this.items.push({ kind: "plan", entries }) - 1;
    else this.items[this.plan] = { kind: "plan", entries };
    this.message = undefined;
    return this.plan;
  }
}

function textOf(block: acp.ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "resource_link":
      return `@${block.name}`;
    case "resource":
      return `@${block.resource.uri}`;
  }
  return `[${block.type}]`;
}
