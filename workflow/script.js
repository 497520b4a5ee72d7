// What the script of a workflow sees: its inputs, and a function for each kind of step.
(host, input) => {
  'use strict';
  class StepError extends Error {
    constructor({step, outcome, why, value}) {
      super(step + ': ' + (why || outcome));
      this.name = 'StepError';
      this.step = step;
      this.outcome = outcome;
      this.value = value;
    }
  }
  const blame = (value) => typeof value === 'string' ? new Error(value) : new StepError(value);
  const step = (kind, fields, shape) => host.call(kind, fields, shape, blame);
  const word = (given, what) => {
    if (typeof given !== 'string' || !given.trim()) throw new TypeError(what + ' takes a text first, not ' + (given === '' ? 'an empty one' : typeof given));
    return given;
  };
  const options = (given, what) => {
    if (given === undefined) return {};
    if (given === null || typeof given !== 'object' || Array.isArray(given)) throw new TypeError(what + ' takes an object of options');
    return given;
  };
  Object.assign(globalThis, {
    StepError,
    inputs: input,
    agent: (prompt, o) => step('agent', {...options(o, 'agent'), prompt: word(prompt, 'agent')}, (v) => o?.output ? v : v?.text),
    run: (command, o) => step('run', {...options(o, 'run'), run: word(command, 'run')}),
    check: (command, o) => step('check', {...options(o, 'check'), run: word(command, 'check')}),
    approve: (question, o) => step('approval', {...options(o, 'approve'), prompt: word(question, 'approve')}),
    wait: (o) => step('wait', options(o, 'wait')),
    tool: (name, args, o) => step('tool', {...options(o, 'tool'), tool: word(name, 'tool'), with: args ?? {}}, (v) => o?.output ? v : v?.text),
    workflow: (name, given, o) => step('workflow', {...options(o, 'workflow'), use: word(name, 'workflow'), with: given ?? {}}),
    // each has f work on every item, so many at once. All are worked on, also if some fail.
    each: async (items, f, o) => {
      const list = Array.from(items), out = new Array(list.length), failed = [];
      let next = 0;
      const worker = async () => {
        while (next < list.length) {
          const i = next++;
          try {
            out[i] = await f(list[i], i);
          } catch (e) {
            failed.push([i, e]);
          }
        }
      };
      await Promise.all(Array.from({length: Math.min(list.length, Math.max(1, o?.concurrency ?? 16))}, worker));
      if (failed.length) {
        failed.sort((a, b) => a[0] - b[0]);
        const e = new Error(`${failed.length} of ${list.length} items failed; item ${failed[0][0] + 1}: ${failed[0][1]?.message ?? failed[0][1]}`);
        e.items = out;
        e.failed = failed.map(([i, e]) => ({item: i, error: String(e)}));
        throw e;
      }
      return out;
    },
  });
}
