// Package web makes web pages and search results readable for a model.
//
// The rules:
//
//   - Text that is invisible in a browser is removed, as far as the page alone determines that: style attributes, the page's own style sheets, hidden, aria-hidden, comments, invisible characters. The effects of external style sheets and scripts are unknown.
//   - Time and memory are linear in the size of the page, with fixed bounds on nodes, nesting and the size of the text.
//   - Omissions are reported.
//
// Connections are only opened through a given [tool.HTTP].
package web
