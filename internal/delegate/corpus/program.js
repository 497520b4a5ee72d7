// What a program over a corpus sees: context, Text, ask, answer, print. The process decides nothing here: a Text
// says from where its runs are, and the host takes them from there.
(host, input) => {
  'use strict';
  const {parse, stringify} = JSON, {max, min} = Math, indirect = globalThis.eval;
  const own = new Set(Object.getOwnPropertyNames(globalThis));

  // A run is a part of a Text that begins at "at": of a source s from f, an answer a of a model, or computed.
  let make;
  class Text {
    #text;
    #runs;
    constructor(text) {
      this.#text = String(text);
      this.#runs = this.#text === '' ? [] : [{at: 0}];
      if (text instanceof Text) this.#runs = text.#runs;
    }
    static {
      make = (text, runs) => {
        const t = new Text('');
        t.#text = text;
        t.#runs = runs;
        return t;
      };
    }
    get length() {
      return this.#text.length;
    }
    #cut(from, to) {
      const runs = [], all = this.#runs;
      let low = 0, high = all.length; // the run in which from is
      while (high - low > 1) {
        const mid = (low + high) >> 1;
        if (all[mid].at <= from) low = mid;
        else high = mid;
      }
      for (let i = low; from < to && i < all.length && all[i].at < to; i++) {
        const {at, f, ...rest} = all[i], begin = max(at, from);
        runs.push(f === undefined ? {at: begin - from, ...rest} : {at: begin - from, f: f + begin - at, ...rest});
      }
      return make(this.#text.slice(from, max(from, to)), runs);
    }
    slice(from = 0, to = this.length) {
      const place = (n) => min(this.length, n < 0 ? max(0, this.length + n) : n);
      return this.#cut(place(Math.trunc(from)), place(Math.trunc(to)));
    }
    substring(from, to = this.length) {
      const place = (n) => min(this.length, max(0, Math.trunc(n) || 0));
      return this.#cut(min(place(from), place(to)), max(place(from), place(to)));
    }
    split(by, most = Infinity) {
      if (by === undefined) return [this];
      const out = [], text = this.#text;
      let from = 0;
      const add = (at, length) => {
        out.push(this.#cut(from, at));
        from = at + length;
      };
      if (by instanceof RegExp) {
        for (const m of text.matchAll(new RegExp(by.source, by.flags.replace(/[gy]/g, '') + 'g'))) {
          if (m[0] !== '' || m.index > from && m.index < text.length) add(m.index, m[0].length);
        }
      } else if (String(by) === '') {
        while (from + 1 < text.length) add(from + 1, 0);
      } else {
        by = String(by);
        for (let at; (at = text.indexOf(by, from)) >= 0;) add(at, by.length);
      }
      add(text.length, 0);
      return most < out.length ? out.slice(0, most) : out;
    }
    lines() {
      return this.#text === '' ? [] : this.#cut(0, this.length - (this.#text.endsWith('\n') ? 1 : 0)).split(/\r?\n/);
    }
    // chunks cuts the text into parts of at most size characters, at the ends of paragraphs or lines.
    chunks(size, overlap = 0) {
      if (!(size >= 1) || !(overlap >= 0 && overlap <= size / 2)) throw new RangeError('chunks: size is at least 1, and overlap at most half of it');
      const out = [], text = this.#text;
      for (let from = 0; from < text.length;) {
        let to = min(from + size, text.length);
        const half = Math.ceil(from + size / 2), second = to < text.length ? text.slice(half, to) : '';
        for (const mark of ['\n\n', '\n']) {
          const at = second.lastIndexOf(mark);
          if (at >= 0) {
            to = half + at + mark.length;
            break;
          }
        }
        out.push(this.#cut(from, to));
        from = to < text.length ? max(from + 1, to - overlap) : to;
      }
      return out;
    }
    // find returns all matches.
    find(what) {
      const re = what instanceof RegExp ? new RegExp(what.source, what.flags.replace(/[gy]/g, '') + 'g') : String(what), out = [];
      if (re === '') return out;
      if (typeof re === 'string') for (let at = -1; (at = this.#text.indexOf(re, at + 1)) >= 0;) out.push(this.#cut(at, at + re.length));
      else for (const m of this.#text.matchAll(re)) out.push(this.#cut(m.index, m.index + m[0].length));
      return out;
    }
    trim() {
      return this.trimStart().trimEnd();
    }
    trimStart() {
      return this.#cut(this.length - this.#text.trimStart().length, this.length);
    }
    trimEnd() {
      return this.#cut(0, this.#text.trimEnd().length);
    }
    concat(...others) {
      return join([this, ...others], '');
    }
    is(other) {
      return this.#text === String(other);
    }
    toString() {
      return this.#text;
    }
    valueOf() {
      return this.#text;
    }
    toJSON() {
      return this.#text;
    }
    static parts(t) {
      return t.#runs.map(({at, s, f, a}, i) => {
        const end = i + 1 < t.#runs.length ? t.#runs[i + 1].at : t.length;
        if (s !== undefined) return {s, f, t: f + end - at};
        return a === undefined ? t.#text.slice(at, end) : {a, t: t.#text.slice(at, end)};
      });
    }
    static join(list, between) {
      let length = 0;
      const texts = [], runs = [];
      const add = (t) => {
        for (const {at, ...rest} of t.#runs) {
          const last = runs.at(-1);
          if (last && (rest.s === undefined ? rest.a === undefined && last.a === undefined && last.s === undefined
            : last.s === rest.s && last.f + length + at - last.at === rest.f)) continue; // it continues the last one
          runs.push({at: length + at, ...rest});
        }
        texts.push(t.#text);
        length += t.length;
      };
      list.forEach((one, i) => {
        if (i > 0) add(between);
        add(one);
      });
      return make(texts.join(''), runs);
    }
  }
  // Everything else that a string has works on the text, and brings plain values.
  for (const name of Object.getOwnPropertyNames(String.prototype)) {
    if (name in Text.prototype) continue;
    const of = String.prototype[name];
    Object.defineProperty(Text.prototype, name, {configurable: true, writable: true, value(...args) { return of.apply(this.toString(), args); }});
  }
  Text.prototype[Symbol.iterator] = function () {
    return this.toString()[Symbol.iterator]();
  };
  const {parts, join: joined} = Text;
  delete Text.parts;
  delete Text.join;
  const shown = (value) => typeof value === 'string' ? value : value instanceof Error ? String(value) : stringify(value) ?? String(value);
  const asText = (value) => value instanceof Text ? value : new Text(shown(value));
  const join = (list, between = '') => joined([...list].map(asText), asText(between));
  const partsOf = (value) => parts(Array.isArray(value) ? join(value, '\n\n') : asText(value));
  globalThis.Text = Text;
  globalThis.join = join;
  globalThis.text = (fixed, ...values) => join(fixed.flatMap((one, i) => i < values.length ? [one, values[i]] : [one]));

  const sources = input.sources.map(({name, text}, s) => {
    const t = make(text, text === '' ? [] : [{at: 0, s, f: 0}]);
    t.name = name;
    return t;
  });
  globalThis.context = sources.length === 1 ? sources[0] : sources;

  // AskError is thrown by an ask that has no answer.
  class AskError extends Error {
    get name() {
      return 'AskError';
    }
  }
  globalThis.AskError = AskError;
  globalThis.ask = (question, text, options = {}) => {
    if (text !== null && typeof text === 'object' && !(text instanceof Text) && !Array.isArray(text)) [text, options] = [undefined, text];
    const {schema, quotes, model, sample} = options, read = text === undefined || text === null ? undefined : asText(Array.isArray(text) ? join(text, '\n\n') : text);
    for (const name of Object.keys(options)) {
      if (!['schema', 'quotes', 'model', 'sample'].includes(name)) throw new TypeError('ask has no option ' + name + ': it has schema, quotes, model and sample');
    }
    if (question === undefined || question === null || String(question).trim() === '') throw new TypeError('ask: the question is empty');
    if (quotes && !read) throw new TypeError('ask: quotes are of the text, which is missing');
    const shape = ({n, text, value, quotes: places}) => {
      if (quotes) return {answer: value, quotes: (places ?? []).map(([from, to]) => read.slice(from, to))};
      return text === undefined ? value : make(text, [{at: 0, a: n}]);
    };
    const args = {question: partsOf(question), text: read && parts(read), schema, quotes: quotes ? true : undefined, model, sample};
    return host.call('ask', args, shape, (why) => new AskError(why));
  };
  globalThis.answer = (value, quotes = []) => {
    if (value === undefined || value === null) return host.tell('answer', stringify({nothing: true}));
    const plain = (one) => typeof one === 'string' || one instanceof Text;
    const kept = plain(value) ? value : Array.isArray(value) && value.every(plain) ? join(value, '\n') : stringify(value, null, 1);
    host.tell('answer', stringify({text: partsOf(kept), quotes: [quotes].flat(Infinity).map(partsOf)}));
  };
  globalThis.print = (...values) => {
    const t = join(values.flatMap((one, i) => i ? [' ', one] : [one]));
    host.tell('print', stringify(t.length > input.printed ? [...parts(t.slice(0, input.printed)), t.length - input.printed] : parts(t)));
  };
  globalThis.console = {log: print, info: print, debug: print, warn: print, error: print};

  // Names of variables are those words of the programs that mean something.
  for (const name of Object.getOwnPropertyNames(globalThis)) own.add(name);
  const size = (value) => {
    if (typeof value === 'string' || value instanceof Text) return 'text of ' + value.length + ' characters';
    if (Array.isArray(value)) return 'list of ' + value.length;
    if (value instanceof Map || value instanceof Set) return (value instanceof Map ? 'map of ' : 'set of ') + value.size;
    return value !== null && typeof value === 'object' ? 'object of ' + Object.keys(value).length + ' fields' : typeof value;
  };
  let program = 0;
  const seen = new Set();
  return () => {
    for (const name of input.programs[program++].match(/[A-Za-z_$][\w$]*/g) ?? []) seen.add(name);
    const list = [];
    for (const name of program === input.programs.length ? seen : []) {
      if (own.has(name)) continue;
      try {
        if (indirect('typeof ' + name) !== 'undefined') list.push(name + ': ' + size(indirect(name)));
      } catch {} // not a name, or never set
    }
    host.tell('ended', stringify(list.slice(0, 100)));
  };
}
