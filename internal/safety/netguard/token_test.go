package netguard_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/safety/netguard"
)

func TestTokenIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "token")
	var all sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			token, err := netguard.Token(path)
			if err != nil {
				t.Error(err)
			}
			all.Store(token, true)
		})
	}
	wg.Wait()
	n := 0
	all.Range(func(token, _ any) bool {
		n++
		if len(token.(string)) != 43 { // 256 bits, six a character
			t.Errorf("token %q", token)
		}
		return true
	})
	if n != 1 {
		t.Errorf("%d different tokens", n)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".token-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if a, b := netguard.NewToken(), netguard.NewToken(); a == b {
		t.Error("two tokens are the same")
	}
}

func TestTokenFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := strings.Repeat("s3cret-", 5)
	if got, err := netguard.Token(write("own", "  "+own+"\n", 0o600)); err != nil || got != own {
		t.Errorf("%q, %v", got, err)
	}
	for name, path := range map[string]string{
		"others may read it": write("open", own, 0o644),
		"the group may":      write("group", own, 0o640),
		"empty":              write("empty", "", 0o600),
		"short":              write("short", strings.Repeat("x", 31), 0o600),
		"two words":          write("words", own+" "+own, 0o600),
		"no ASCII":           write("odd", strings.Repeat("ü", 40), 0o600),
		"a folder":           dir,
		"no folder":          filepath.Join(write("file", own, 0o600), "token"),
	} {
		if runtime.GOOS == "windows" && strings.Contains(name, "may") {
			continue
		}
		if got, err := netguard.Token(path); err == nil || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
