// What the script of a workflow sees when only its plan is wanted: its functions, whose results are
// unknown. An unknown value has every field, is a list of one, and is a text that names it. So the
// script takes one way through, with each loop gone through once.
(host, input) => {
  'use strict';
  const lists = ['map', 'flatMap', 'forEach', 'filter', 'find', 'some', 'every'];
  const unknown = (name) => new Proxy(function () {}, {
    get: (_, key) => {
      if (key === Symbol.toPrimitive) return (hint) => hint === 'number' ? NaN : '‹' + name + '›';
      if (key === Symbol.iterator) return function* () { yield unknown(name + ' (each)'); };
      if (typeof key === 'symbol' || key === 'then') return undefined;
      if (key === 'toString' || key === 'toJSON') return () => '‹' + name + '›';
      if (key === 'length') return 1;
      if (key === '0') return unknown(name + ' (each)');
      if (lists.includes(key)) return (f) => [unknown(name + ' (each)')][key](f);
      return unknown(name + '.' + key);
    },
    apply: () => unknown(name),
    construct: () => unknown(name),
    has: () => true,
    set: () => true,
  });
  const step = (kind, fields) => host.call(kind, fields, (id) => unknown(id), (why) => new Error(why));
  const plain = (o) => o && typeof o === 'object' ? o : {};
  const given = {};
  for (const name of input.names) given[name] = name in input.values ? input.values[name] : unknown('inputs.' + name);
  Object.assign(globalThis, {
    StepError: class StepError extends Error {},
    inputs: given,
    agent: (prompt, o) => step('agent', {...plain(o), prompt: String(prompt)}),
    run: (command, o) => step('run', {...plain(o), run: String(command)}),
    check: (command, o) => step('check', {...plain(o), run: String(command)}),
    approve: (question, o) => step('approval', {...plain(o), prompt: String(question)}),
    wait: (o) => step('wait', plain(o)),
    tool: (name, args, o) => step('tool', {...plain(o), tool: String(name)}),
    workflow: (name, args, o) => step('workflow', {...plain(o), use: String(name)}),
    each: (items, f) => Promise.all([...items].map((item, i) => f(item, i))),
  });
}
