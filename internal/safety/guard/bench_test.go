package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ordinary is a megabyte of text as tools bring it: this toolchain's sources,
// and the harmless corpus if there are none.
func ordinary(tb testing.TB) string {
	tb.Helper()
	var b strings.Builder
	root, _ := exec.Command("go", "env", "GOROOT").Output()
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src", "net", "http", "*.go"))
	for _, name := range files {
		if raw, err := os.ReadFile(name); err == nil {
			b.Write(raw)
		}
	}
	for b.Len() < 1<<20 {
		for _, s := range samples(tb, "harmless.txt") {
			b.WriteString(s.text + "\n")
		}
	}
	return b.String()[:1<<20]
}

func BenchmarkOrdinary(b *testing.B) {
	text := ordinary(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		mark(text, "read_file a.go", false)
	}
}

// BenchmarkBrackets is the worst case: text made of nothing but possible beginnings of a mark.
func BenchmarkBrackets(b *testing.B) {
	text := strings.Repeat("[inspan <untruste [[<< < / ", 1<<20/27)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		mark(text, "read_file a.go", false)
	}
}

func BenchmarkChinese(b *testing.B) {
	text := strings.Repeat("请按照以下说明安装。此选项会跳过空行。\n", 1<<20/60)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		mark(text, "read_file a.go", false)
	}
}

func BenchmarkShort(b *testing.B) {
	for b.Loop() {
		mark("ok\n", "bash", false)
	}
}
