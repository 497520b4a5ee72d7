// Package view turns events into what a person sees or pays. Whatever is shown of a session goes through it, so that
// every front end tells the same. It is pure but for reading logs.
//
// Begin with transcript.
//
//	markdown    markdown, code and diffs for terminals; charts, tables and smaller images; pure
//	team        who works for a session, and their tasks; pure
//	words       wording shared by the front ends; pure
//	transcript  folds from events to what a person sees and to traces, and exports: markdown, ATIF, OTLP; pure
//	cost        actual and hypothetical costs of sessions, and their causes
package view
