//go:build !race

package snapshot

const race = false
