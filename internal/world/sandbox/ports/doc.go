// Package ports offers on the machine what a command in a box listens on, and knows whose an end of a connection is.
package ports
