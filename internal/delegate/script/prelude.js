// What a script sees of the world, and how it waits for it. The expression is a function of what
// the process has for it: send, which is gone from the global object before the script begins, the
// time, and the seed of its random numbers. It returns how the process begins the script, and how
// it settles a call. A script can spoil what it finds here, to its own harm: nothing in the
// process decides what it may do.
(function (send, now, seed) {
  'use strict';
  const {parse, stringify} = JSON;
  const text = String, NativePromise = Promise, NativeError = Error;

  // The time stands still, and chance is the same each time.
  const NativeDate = Date;
  const FixedDate = new Proxy(NativeDate, {
    construct: (date, args, made) => Reflect.construct(date, args.length ? args : [now], made === FixedDate ? date : made),
    apply: () => new NativeDate(now).toString(),
  });
  NativeDate.now = () => now;
  NativeDate.prototype.constructor = FixedDate;
  globalThis.Date = FixedDate;
  let [a, b, c, d] = seed;
  Math.random = () => { // sfc32, of PractRand (Chris Doty-Humphrey, public domain)
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return (t >>> 0) / 4294967296;
  };
  // When memory is collected, and what other threads do, nobody could repeat.
  for (const name of ['WeakRef', 'FinalizationRegistry', 'SharedArrayBuffer', 'Atomics']) delete globalThis[name];

  // What stands for the result of a call that waits for a person. Whoever looks into it stops: what
  // the script would do next depends on what is not known. A promise looks for "then" in all it gets.
  const stop = () => send('touched');
  const untouchable = new Proxy(function () {}, new Proxy({}, {
    get: (_, trap) => trap === 'get' ? (_, key) => key === 'then' ? undefined : stop() : stop,
  }));

  const calls = {__proto__: null};
  let last = 0, over = false;
  const host = {
    __proto__: null,
    // call has the host make a call. What it brings goes through shape, what it throws through blame.
    call: (name, args, shape, blame) => new NativePromise((resolve, reject) => {
      const written = stringify(args === undefined ? {} : args);
      if (written === undefined) throw new TypeError('arguments must be an object');
      const id = ++last;
      calls[id] = {resolve, reject, shape, blame, name: text(name)};
      send('call', id, text(name), written);
    }),
    print: (line) => send('print', text(line)),
    tell: (kind, what) => send('tell', text(kind), text(what)),
  };

  const shown = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof NativeError) return text(value);
    try {
      return stringify(value) ?? text(value);
    } catch {
      return text(value);
    }
  };
  const print = (...values) => {
    let line = '';
    for (let i = 0; i < values.length; i++) line += (i ? ' ' : '') + shown(values[i]);
    host.print(line);
  };
  globalThis.print = print;
  globalThis.console = {log: print, info: print, debug: print, warn: print, error: print};

  const failure = (e) => {
    if (e === null) return 'out of memory, or the script has thrown null'; // without memory there is no error
    if (e === null || typeof e !== 'object') return 'the script has thrown ' + shown(e);
    return text(e) + '\n' + text(e.stack);
  };

  return {
    host,
    start: async (main) => {
      try {
        const value = stringify(await main());
        over = true;
        send('done', value === undefined ? 'null' : value);
      } catch (e) {
        over = true;
        let why = 'the script has failed';
        try {
          why = failure(e);
        } catch {}
        send('failed', why);
      }
    },
    // follow waits for the end of one of several programs.
    follow: async (running, ended) => {
      try {
        await running;
        ended?.();
        send('next');
      } catch (e) {
        over = true;
        let why = 'the program has failed';
        try {
          why = failure(e);
        } catch {}
        send('failed', why);
      }
    },
    settle: (id, how, written) => {
      const call = calls[id];
      delete calls[id];
      if (how === 2) return call.resolve(untouchable);
      const value = parse(written);
      if (how === 0) return call.resolve(call.shape ? call.shape(value) : value);
      const e = call.blame ? call.blame(value) : new NativeError(value);
      if (over) host.print('not awaited, and failed: ' + shown(e));
      call.reject(e);
    },
  };
})
