// What a script of code mode sees: tools, store and notify.
(host, input) => {
  'use strict';
  const {parse, stringify} = JSON;
  const text = String;

  // Result is what a call brings: its text, the exit code of a command, and the text as data if it is JSON.
  class Result {
    constructor({text, exit}) {
      this.text = text;
      if (exit !== undefined) this.exit = exit;
    }
    get data() {
      try {
        return parse(this.text);
      } catch {
        return undefined;
      }
    }
    get lines() {
      return this.text === '' ? [] : this.text.replace(/\n$/, '').split('\n');
    }
    toString() {
      return this.text;
    }
    toJSON() {
      return this.exit === undefined ? this.text : {text: this.text, exit: this.exit};
    }
  }
  // ToolError is thrown by a call that did not succeed. Outcome says how: failed, denied, invalid ...
  class ToolError extends Error {
    constructor({tool, outcome, text}) {
      super(tool + ': ' + text);
      this.name = 'ToolError';
      this.tool = tool;
      this.outcome = outcome;
      this.text = text;
    }
  }
  globalThis.ToolError = ToolError;
  const shape = (value) => new Result(value);
  const blame = (value) => typeof value === 'string' ? new Error(value) : new ToolError(value);
  const call = (name, args) => host.call(name, args, shape, blame);
  globalThis.tools = new Proxy({__proto__: null}, {
    get: (made, name) => typeof name === 'string' && name !== 'then' ? made[name] ??= (args) => call(name, args) : undefined,
    set: () => false,
  });

  // store is what later scripts of the session find. It is kept when the script ends well.
  const kept = {__proto__: null, ...input.store};
  const room = 256000;
  const sized = (key, written) => written === undefined ? 0 : key.length + written.length;
  let used = 0;
  for (const key of Object.keys(kept)) used += sized(key, stringify(kept[key]));
  globalThis.store = {
    __proto__: null,
    get: (key) => kept[key],
    keys: () => Object.keys(kept),
    set: (key, value) => {
      const written = stringify(value);
      key = text(key);
      const after = used + sized(key, written) - sized(key, stringify(kept[key]));
      if (after > room) throw new RangeError('store would hold ' + after + ' characters; it has room for ' + room + '. Write a file instead');
      used = after;
      host.tell('store', stringify({key, value: written === undefined ? null : parse(written)}));
      if (written === undefined) delete kept[key];
      else kept[key] = parse(written);
    },
    delete: (key) => globalThis.store.set(key, undefined),
  };
  globalThis.notify = (...values) => host.tell('notify', values.map(text).join(' '));
  globalThis.args = input.args;
}
