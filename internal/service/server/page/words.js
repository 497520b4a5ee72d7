// How amounts, times and states read.

export const dollars = (d, unpriced) => (unpriced ? "≥ " : "") + (d >= 0.995 || d === 0 ? `$${d.toFixed(2)}` : `$${d.toPrecision(2)}`);

export const thousands = (n) => n < 10_000 ? String(n) : n < 1_000_000 ? `${Math.round(n / 1000)}k` : `${(n / 1_000_000).toFixed(1)}M`;

export const count = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export function ago(time, now = Date.now()) {
  const s = Math.max(0, (now - new Date(time)) / 1000);
  if (s < 60) return "now";
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}

// day names the day of a time: today, yesterday, or the date.
export function day(time, now = new Date()) {
  const of = new Date(time), begin = (d) => new Date(d.getFullYear(), d.getMonth(), d.getDate());
  const days = Math.round((begin(now) - begin(of)) / 86_400_000);
  if (days < 2) return days < 1 ? "Today" : "Yesterday";
  return of.toLocaleDateString("en", { weekday: "long", day: "numeric", month: "long", ...(of.getFullYear() === now.getFullYear() ? {} : { year: "numeric" }) });
}

export const clock = (time) => time ? new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" }) : "";

export const full = (time) => time ? new Date(time).toLocaleString() : "";

export function lasting(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round(ms % 60_000 / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.round(ms % 3_600_000 / 60_000)} min`;
}

export const folder = (path) => path?.split(/[\\/]/).filter(Boolean).pop() ?? "";

export const marks = { waiting: "?", running: "▸", idle: "·", done: "✓", failed: "✗" };

// speaker names who said something. The person's own browsers have names too.
export const speaker = (by) => /^(browser-.*|owner|)$/.test(by ?? "") ? "You" : by;
