// Package protocol is what inspan and its keepers say to each other. See order_linux.go.
package protocol
