// Package protocol defines the messages between inspan and its keepers. See order_linux.go.
package protocol
