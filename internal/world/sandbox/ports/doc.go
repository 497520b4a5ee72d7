// Package ports offers the listening ports of a command in a box on the machine, and determines the owner of a
// connection's end.
package ports
