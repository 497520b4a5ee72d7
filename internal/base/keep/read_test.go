package keep_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/base/keep"
)

func sum(s string) string {
	d := sha256.Sum256([]byte(s))
	return hex.EncodeToString(d[:])
}

// TestReadFile reads regular files within the bound, and nothing else.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "ten"), []byte("0123456789"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "outside"), []byte("x"), 0o600))
	for from, to := range map[string]string{"in": "ten", "out": "../outside", "null": "/dev/null"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Skip(err)
		}
	}
	root, err := keep.OpenFolder(dir)
	must(t, err)
	defer func() { _ = root.Close() }()
	for name, most := range map[string]int{"ten": 10, "in": 11} {
		if got, err := keep.ReadFile(root, name, most); err != nil || string(got) != "0123456789" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := keep.ReadFile(root, "ten", 9); !errors.Is(err, keep.ErrTooBig) || !strings.Contains(err.Error(), "more than 9 bytes") {
		t.Error(err)
	}
	if _, err := keep.ReadFile(root, "folder", 9); !errors.Is(err, keep.ErrNoFile) {
		t.Error(err)
	}
	if _, err := keep.ReadFile(root, "gone", 9); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, name := range []string{"out", "null", "../outside"} {
		if got, err := keep.ReadFile(root, name, 9); err == nil {
			t.Errorf("%s led out: %q", name, got)
		}
	}
}

// TestDigest pins the form of the digests by which people have trusted folders.
func TestDigest(t *testing.T) {
	add := func(w io.WriteCloser, content string) {
		_, err := io.WriteString(w, content)
		must(t, errors.Join(err, w.Close()))
	}
	one := keep.Digest{Top: ".inspan/hooks/a"}
	add(one.File(".inspan/hooks/a"), "x")
	if one.Single() != sum("x") {
		t.Error(one.Single())
	}
	link := keep.Digest{Top: "a"}
	add(link.Link("a", "b\n"), "x")
	if link.Single() != sum("link\x00b\n\x00x") {
		t.Error(link.Single())
	}
	folder := keep.Digest{Top: "a"}
	if folder.Folder() != sum("") {
		t.Error(folder.Folder())
	}
	add(folder.File("a/b c"), "x")
	add(folder.Link("a/d/e", "../b c"), "x")
	want := sum("file \"b c\" \"\" " + sum("x") + "\nlink \"d/e\" \"../b c\" " + sum("x") + "\n")
	if got := folder.Folder(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestDigestTellsApart whatever differs in a folder.
func TestDigestTellsApart(t *testing.T) {
	seen := map[string]string{}
	for name, fill := range map[string]func(d *keep.Digest){
		"nothing":                  func(*keep.Digest) {},
		"a file":                   func(d *keep.Digest) { _, _ = d.File("t/a").Write(nil); must(t, d.File("t/a").Close()) },
		"another name":             func(d *keep.Digest) { must(t, d.File("t/b").Close()) },
		"a link":                   func(d *keep.Digest) { must(t, d.Link("t/a", "b").Close()) },
		"a link elsewhere":         func(d *keep.Digest) { must(t, d.Link("t/a", "c").Close()) },
		"a name with a line in it": func(d *keep.Digest) { must(t, d.File("t/a\nfile").Close()) },
		"two files":                func(d *keep.Digest) { must(t, errors.Join(d.File("t/a").Close(), d.File("t/b").Close())) },
	} {
		d := keep.Digest{Top: "t"}
		fill(&d)
		if other, is := seen[d.Folder()]; is {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d.Folder()] = name
	}
}

// TestBounded checks that writers keep the bounded part and never block.
func TestBounded(t *testing.T) {
	head, tail := keep.Head{Limit: 5}, keep.Tail{Limit: 5}
	for _, s := range []string{"ab", "", "cdefg", "h"} {
		for _, w := range []io.Writer{&head, &tail} {
			if n, err := io.WriteString(w, s); n != len(s) || err != nil {
				t.Error(n, err)
			}
		}
	}
	if got, more := head.Bytes(); string(got) != "abcde" || !more {
		t.Errorf("%q, %v", got, more)
	}
	if tail.Text() != "defgh" {
		t.Errorf("%q", tail.Text())
	}
	exact := keep.Head{Limit: 2}
	_, _ = io.WriteString(&exact, "ab")
	if got, more := exact.Bytes(); string(got) != "ab" || more {
		t.Errorf("%q, %v", got, more)
	}
}
