//go:build unix

package tools_test

import (
	"strings"
	"testing"
)

// TestBashKnows checks that files written by a command count as known, as far as the session can know their content.
func TestBashKnows(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.run("bash", args{"command": "cat > new.txt <<'EOF'\none\nEOF"})
	s.run("write_file", args{"path": "new.txt", "content": "two\n"})
	s.run("bash", args{"command": "echo three >> new.txt && cp new.txt copy.txt"})
	s.run("write_file", args{"path": "new.txt", "content": "four\n"})
	s.run("write_file", args{"path": "copy.txt", "content": "five\n"})

	s.put("old.txt", "of a person\n")
	s.run("bash", args{"command": "echo more >> old.txt"})
	s.fails("edit_file", args{"path": "old.txt", "old_string": "o", "new_string": "a", "replace_all": true}, "read it before")
	s.has("old.txt", "of a person\nmore\n")

	s.run("read_file", args{"path": "old.txt"})
	s.put("old.txt", "changed by a person\n")
	s.run("bash", args{"command": "echo more >> old.txt"})
	s.fails("write_file", args{"path": "old.txt", "content": "gone"}, "has changed since it was read")
	s.has("old.txt", "changed by a person\nmore\n")
	if r, _ := s.try(t.Context(), "bash", args{"command": "rm copy.txt; true > /dev/null"}); len(r.Files) > 1 {
		t.Errorf("files: %+v", r.Files)
	}
}

// TestBinaryOutput checks that binary output takes one line, and is text all the same.
func TestBinaryOutput(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	for command, want := range map[string]string{
		"head -c 100000 /dev/zero | tr '\\0' '\\377'; printf '\\0'":               "[… 97.7 KiB of binary output left out …]\n",
		"echo a; head -c 3000 /dev/zero; printf '\\nb\\n'":                        "a\n[… 2.9 KiB of binary output left out …]\n\nb\n",
		"for i in 1 2 3 4 5; do printf 'name%s\\0' $i; done":                      "name1^@name2^@name3^@name4^@name5^@\n",
		"printf 'Gr\\374\\337e aus K\\366ln\\n'":                                  "Gr\ufffd\ufffde aus K\ufffdln\n",
		"printf '\\211PNG\\r\\n\\032\\n'; head -c 3000 /dev/zero; echo; echo end": "[… 2.9 KiB of binary output left out …]\n\nend\n",
	} {
		got := s.run("bash", args{"command": command})
		if got = strings.TrimSuffix(got, "[exit code 0]"); got != want {
			t.Errorf("%s: got %q, want %q", command, got[:min(len(got), 300)], want)
		}
	}
	long := s.run("bash", args{"command": "gzip -c < /bin/ls; echo after"})
	says(t, long, "of binary output left out", "after")
	if len(long) > 200 {
		t.Errorf("an archive takes %d bytes: %q", len(long), long)
	}
}
