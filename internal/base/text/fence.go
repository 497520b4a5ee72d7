package text

import "strings"

// Fenced returns text as a block of code in markdown, with a fence longer than any in the text.
func Fenced(lang, text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + lang + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
