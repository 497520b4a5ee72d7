package secret_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/secret"
)

// code is ordinary source text without secrets.
func code(b *testing.B) string {
	b.Helper()
	var all strings.Builder
	names, err := filepath.Glob("../../../*.go")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range names {
		if raw, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, "_test.go") {
			all.Write(raw)
		}
	}
	return strings.Repeat(all.String(), 1<<20/all.Len()+1)
}

func BenchmarkFind(b *testing.B) {
	text := code(b)
	var f secret.Finder
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		f.First(text)
	}
}

func BenchmarkFindShort(b *testing.B) {
	var f secret.Finder
	for b.Loop() {
		f.First("ok  \tgithub.com/x/y\t0.012s")
	}
}

func BenchmarkRedact(b *testing.B) {
	for _, n := range []int{0, 1, 50} {
		b.Run(fmt.Sprint(n, "values"), func(b *testing.B) {
			v, text := new(secret.Vault), code(b)
			for i := range n {
				v.Add("N", fmt.Sprintf("sk-ant-%dQw%d-er9tZ", i*7919, i))
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				v.Redact(text)
			}
		})
	}
}

// BenchmarkGaps reads texts full of characters that may be inside a value.
func BenchmarkGaps(b *testing.B) {
	for name, piece := range map[string]string{
		"colours": "\x1b[32mok\x1b[0m   \x1b[1mgithub.com/x/y\x1b[0m\t0.012s\n", "JSON": `{"name":"value","list":["one","two"],"path":"a\/b"},`,
		"prose":    "It's what the reader doesn\u2019t expect: \u201cplain text\u201d, line by line\n",
		"Japanese": "\u79d8\u5bc6\u306e\u8a00\u8449\u3092\u63a2\u3057\u3066\u3044\u307e\u3059\u3002",
	} {
		b.Run(name, func(b *testing.B) {
			v, text := new(secret.Vault), strings.Repeat(piece, 1<<20/len(piece))
			v.Add("N", "sk-ant-77Qw-er9tZ-xy")
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				v.Redact(text)
			}
		})
	}
}

// BenchmarkFew is the first text of a vault with a few values.
func BenchmarkFew(b *testing.B) {
	for b.Loop() {
		var v secret.Vault
		for i := range 10 {
			v.Add("N", fmt.Sprintf("sk-ant-%dQw%d-er9tZ", i*7919, i))
		}
		v.Redact("a short text")
	}
}

func BenchmarkWriter(b *testing.B) {
	v, text := new(secret.Vault), []byte(code(b))
	v.Add("N", "sk-ant-77Qw-er9tZ-xy")
	for _, n := range []int{8, 4096} {
		b.Run(fmt.Sprint(n, "bytes"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				w := v.Writer(io.Discard)
				for i := 0; i < len(text); i += n {
					_, _ = w.Write(text[i:min(len(text), i+n)])
				}
			}
		})
	}
}

// BenchmarkWorst reads texts made to be slow.
func BenchmarkWorst(b *testing.B) {
	for _, piece := range []string{
		"sk-", "eyJ-", "token=", "a://b:", "Bearer ",
		"-----BEGIN PRIVATE KEY-----\n", "[secret:1", "PASSWORD='\\", "aaaaaaaa", "password: ", "hvs.eyJ.",
		"a'", "a\\", "\u200b", "\x1b[1", "'a'a'a'a'a'ab",
	} {
		b.Run(strings.TrimSpace(piece), func(b *testing.B) {
			v, text := new(secret.Vault), strings.Repeat(piece, 1<<18/len(piece))
			v.Add("N", "aaaaaaaaaaaaaaaaaaaaab")
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				v.Redact(text)
			}
		})
	}
}
