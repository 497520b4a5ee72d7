package words

import "github.com/inspan/inspan/internal/safety/secret"

// Hidden is a message of ours without secrets: it can repeat what was typed. It comes before the
// message is cut, as a part of a secret is not found.
func Hidden(message string) string { return new(secret.Finder).Hidden(message, "***") }
