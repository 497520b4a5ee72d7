// Package web makes web pages and search results readable for a model.
//
// The rules:
//
//   - Text that a person would not see in a browser does not come through, as
//     far as the page alone tells: style attributes, the page's own style
//     sheets, hidden, aria-hidden, comments, invisible characters. What style
//     sheets elsewhere and scripts hide can't be known here.
//   - Time and memory are linear in the size of the page, with fixed bounds on
//     nodes, nesting and the size of the text.
//   - What is left out is said.
//
// Nothing here opens a connection but through a [tool.HTTP] that is given.
package web
