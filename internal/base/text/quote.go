package text

import "strings"

// ShellQuote returns a text as one word that a shell takes literally.
func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ShellWord is ShellQuote for people: it adds quotes only if needed.
func ShellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return ShellQuote(s)
}
