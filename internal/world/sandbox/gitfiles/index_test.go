package gitfiles

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestIndex checks that an index counts in every form in which git writes it, and in none if it lists a path that git
// would not add: outside of the working tree, or in its own folder.
func TestIndex(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"empty":      "git read-tree --empty",
		"version 2":  "git add .",
		"version 3":  "git add . && git update-index --skip-worktree b/c",
		"version 4":  "git config index.version 4 && git add .",
		"split":      "git add . && git update-index --split-index && date > b/c && git add b/c",
		"sparse":     "git config index.sparse true && git add . && git commit -qm x && git sparse-checkout set --cone --sparse-index e",
		"unmerged":   "git add . && git commit -qm x && git checkout -qb y && date > a && git commit -qam y && git checkout -q - && id > a && git commit -qam z; git merge y",
		"offsets":    "git config index.threads 2 && git config index.recordOffsetTable true && git config index.recordEndOfIndexEntries true && git add .",
		"long names": "mkdir -p " + strings.Repeat("d", 200) + "/" + strings.Repeat("e", 200) + " && git add .",
		"no sum":     "git config index.skipHash true && git add .",
	} {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(name+" "+format, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				for i := range 40 {
					for _, file := range []string{"a", "b/c", "xgit/hooks/a", "yy/o", "e/git~2", "e/pgit/x", "e/zz", fmt.Sprintf("many/%d", i)} {
						file = filepath.Join(dir, file)
						if os.MkdirAll(filepath.Dir(file), 0o755) != nil || os.WriteFile(file, []byte(file), 0o600) != nil {
							t.Fatal(file)
						}
					}
				}
				cmd := exec.Command("sh", "-c", "git init -q --object-format="+format+" . && git config user.email a@b && git config user.name a && "+steps)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TEST_INDEX_THREADS=2")
				switch out, err := cmd.CombinedOutput(); {
				case err == nil, name == "unmerged":
				case bytes.Contains(out, []byte("unknown")): // option, or hash algorithm
					t.Skipf("this git is too old: %s", out)
				default:
					t.Fatalf("%v: %s", err, out)
				}
				for _, file := range glob(t, dir, "index", "sharedindex.*") {
					data, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					if err := CheckIndex(data, nil); err != nil {
						t.Fatalf("%s: %v", filepath.Base(file), err)
					}
					for from, to := range map[string]string{
						"xgit/hooks/a": ".git/hooks/a", "yy/o": "../o", "e/git~2": "e/git~1", "e/pgit/x": "e/.GIT/x", "e/zz": "/e/z", "b/c": "b/.",
					} {
						if bytes.Count(data, []byte(from)) != 1 || name == "version 4" && from != "xgit/hooks/a" {
							continue
						}
						if err := CheckIndex(bytes.Replace(data, []byte(from), []byte(to), 1), nil); err == nil {
							t.Errorf("%s counts", to)
						}
					}
					for _, cut := range []int{0, 4, 11, 30, len(data) / 2, len(data) - 1} {
						_ = CheckIndex(data[:min(cut, len(data))], nil)
					}
				}
			})
		}
	}
}

// TestIndexOffsets checks that no table leads git's threads to other entries than those that were checked.
func TestIndexOffsets(t *testing.T) {
	table := []byte("\x00\x00\x00\x01")
	for _, n := range []uint32{12, 2, 156, 1} {
		table = binary.BigEndian.AppendUint32(table, n)
	}
	for _, tc := range []struct {
		starts []int
		ok     bool
	}{{[]int{12, 84, 156}, true}, {[]int{12, 84, 160}, false}, {[]int{12, 84}, false}, {[]int{12, 84, 156, 228}, false}} {
		if leadsTo(table, tc.starts) != tc.ok {
			t.Errorf("%v: %v", tc.starts, !tc.ok)
		}
	}
}

// TestConflictPaths checks that rerere gets only paths of the working tree.
func TestConflictPaths(t *testing.T) {
	id := strings.Repeat("a", 40)
	for text, ok := range map[string]bool{
		"": true, id + "\ta\x00": true, id + ".1\ta/b c\x00" + id + "\td\x00": true, id + "\t../x\x00": false, id + "\t/x\x00": false,
		id + "\ta\x00" + id + "\t.git/x\x00": false, "x": false,
	} {
		if got := conflicts([]byte(text), nil) == nil; got != ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func glob(t *testing.T, dir string, names ...string) (out []string) {
	for _, name := range names {
		list, err := filepath.Glob(filepath.Join(dir, ".git", name))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, list...)
	}
	if len(out) == 0 {
		t.Fatal("there is no index")
	}
	return out
}

// TestTreePath checks which paths git may have in a working tree.
func TestTreePath(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "a/b c": true, ".gitignore": true, ".github/x": true, "a/.gitmodules": true, "git~2": true, "a:b": true, `a\b`: true,
		"": false, "/a": false, "a//b": false, "a/": false, "./a": false, "a/..": false, ".git": false, "a/.Git/x": false, ".git ": false,
		".git.": false, "git~1/x": false, ".git::$INDEX_ALLOCATION/x": false, `a\.git\x`: false, ".g\u200cit/hooks/x": false,
	} {
		if treePath(name) != ok {
			t.Errorf("%q: %v", name, !ok)
		}
	}
}
