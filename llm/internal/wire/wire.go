// Package wire has the code that the adapters of all vendors share: one HTTP exchange with deadlines per phase,
// server-sent events, Retry-After in its variants, byte-stable JSON and the grouping of messages. It knows no
// vendor.
package wire
