package words

import "github.com/inspan/inspan/internal/safety/secret"

// Hidden returns one of our messages without secrets, since it may repeat what was typed. Call it before
// cutting the message, because a part of a secret is not recognised.
func Hidden(message string) string { return new(secret.Finder).Hidden(message, "***") }
