// The page's side of the API: requests with the token of who looks at it, and streams that go on by
// themselves. See GET /api/v1/openapi.json.

const place = "inspan.token"; // one for each origin: no other server on this host gets it, as it would a cookie

export const token = {
  get: () => localStorage.getItem(place) ?? "",
  set: (text) => localStorage.setItem(place, text.trim()),
  drop: () => localStorage.removeItem(place),
};

// Failure is an answer that says no. Status 0: there was no answer.
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// key makes a request count once, however often it is sent.
function key() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

async function send(method, path, { body, signal, headers = {}, bearer = token.get() } = {}) {
  const all = { Authorization: `Bearer ${bearer}`, ...headers };
  if (method !== "GET") {
    all["Content-Type"] = "application/json";
    all["Idempotency-Key"] = key();
  }
  let response;
  try {
    response = await fetch(path, { method, headers: all, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (err) {
    throw new Failure(0, signal?.aborted ? "given up" : "the server does not answer");
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => undefined);
  const why = response.status === 401 ? "The server does not know this token." : said?.error?.message;
  throw new Failure(response.status, why ?? `the server answers ${response.status}`);
}

export async function get(path, options) {
  return (await send("GET", path, options)).json();
}

export async function post(path, body, options) {
  const response = await send("POST", path, { body, ...options });
  return response.status === 204 ? undefined : response.json();
}

// signIn turns a code from the address into a token.
export async function signIn(code) {
  const made = await post("/api/v1/sign-in", undefined, { bearer: code }).catch((err) => {
    throw err.status === 401 ? new Failure(401, "This code was used or has expired. Run 'inspan web' on the server for a new one.") : err;
  });
  token.set(made.token);
}

const silence = 75_000; // ms; the server says something every 30 s
const wait = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

// follow reads a stream of server-sent events until the signal ends it or the server says that
// nothing more comes. A stream that breaks is begun again where it was: path tells, by the id of the
// last event, what to ask for. Each event goes to take. Told is told whether the stream is there, and
// why not.
export async function follow(path, signal, take, told) {
  let last = "";
  for (let tries = 0; !signal.aborted; tries++) {
    try {
      const done = await read(path(), last, signal, (id, name, data) => {
        tries = 0;
        if (id) last = id;
        return take(name, JSON.parse(data));
      }, () => told(undefined));
      if (done || signal.aborted) return;
      told("the connection was lost");
    } catch (err) {
      if (signal.aborted) return;
      if (!(err instanceof Failure)) throw err;
      told(err.message);
      if (err.status === 400 && last) { // the server does not know the event any more
        last = "";
        take("begin", {});
      } else if (err.status >= 400 && err.status < 500 && err.status !== 429) {
        throw err;
      }
    }
    await wait(Math.min(500 * 2 ** tries, 10_000), signal);
  }
}

// read reads one connection of a stream. It reports whether the stream is over for good.
async function read(path, last, signal, take, opened) {
  const quiet = new AbortController();
  const all = AbortSignal.any([signal, quiet.signal]);
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => quiet.abort(), silence);
  };
  alive();
  try {
    const response = await send("GET", path, { signal: all, headers: last ? { "Last-Event-ID": last } : {} });
    opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return false;
      alive();
      rest += value;
      for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
        const field = (name) => rest.slice(0, end).split("\n").find((l) => l.startsWith(name + ": "))?.slice(name.length + 2) ?? "";
        if (field("event") === "end") return true;
        if (field("event")) take(field("id"), field("event"), field("data"));
      }
    }
  } catch (err) {
    if (err instanceof Failure) throw err;
    return false; // the connection broke
  } finally {
    clearTimeout(timer);
  }
}
