//go:build race

package snapshot

const race = true
