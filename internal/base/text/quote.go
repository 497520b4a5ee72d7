package text

import "strings"

// ShellQuote is a text as one word that a shell takes literally.
func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ShellWord is ShellQuote for people: a word that needs no quotes has none.
func ShellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return ShellQuote(s)
}
