package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

const maxSource = 2000 // bytes

const (
	refForm  = `^[A-Za-z0-9][A-Za-z0-9._/+-]*$`
	scpForm  = `^[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9_~./][^:]*$`
	hexForm  = `^([0-9a-f]{40}|[0-9a-f]{64})$`
	userForm = `^[A-Za-z0-9_][A-Za-z0-9._-]*$`
)

// source is the origin of a plugin.
type source struct {
	text   string // as stored and shown
	folder string // absolute; empty for git
	url    string // for git
	local  bool   // url is a path
	ref    string // for git; empty means the repository's head
	sub    string // folder in the repository, with slashes; empty means its top
}

// parseSource parses an argument of [Store.Install].
func parseSource(str string) (source, error) {
	switch {
	case str == "":
		return source{}, errors.New("no source is given: a folder, or the address of a git repository")
	case len(str) > maxSource || strings.ContainsFunc(str, text.Hidden.Has):
		return source{}, fmt.Errorf("%s is not a source: it is too long, or has invisible characters", words.OneLine(str, 100))
	}
	address, fragment, isGit := strings.Cut(str, "#")
	if _, err := os.Stat(str); err == nil || !isGit && !remote(address) { // a name may have a # in it
		abs, err := filepath.Abs(str)
		if err != nil {
			return source{}, err
		}
		return source{text: abs, folder: abs}, nil
	}
	s := source{url: address}
	s.ref, s.sub, _ = strings.Cut(fragment, ":")
	if s.ref != "" && (!matches(refForm, s.ref) || strings.Contains(s.ref, "..") || len(s.ref) > 200) {
		return source{}, fmt.Errorf("%q is not a branch, tag or commit", s.ref)
	}
	if s.sub != "" {
		sub, err := inside(s.sub)
		if err != nil {
			return source{}, fmt.Errorf("%q is not a folder of a repository", s.sub)
		}
		s.sub = sub
	}
	if err := s.check(); err != nil {
		return source{}, err
	}
	s.text = s.url
	if fragment != "" || s.local { // without it, it would be a folder
		s.text += "#" + strings.TrimSuffix(s.ref+":"+s.sub, ":")
	}
	return s, nil
}

// remote reports whether a source looks like an address rather than a path.
func remote(text string) bool {
	scheme, _, _ := strings.Cut(text, ":")
	return strings.Contains(text, "://") || strings.Contains(text, "::") || strings.HasPrefix(text, "-") || matches(scpForm, text) ||
		len(scheme) < len(text) && strings.Contains(scheme, "@")
}

// check allows only the few kinds of addresses that make git do nothing else but connect to that host, and
// absolute paths.
func (s *source) check() error {
	const allowed = "use https://, ssh://, user@host:path, or the path of a folder"
	if filepath.IsAbs(s.url) {
		s.local, s.url = true, filepath.Clean(s.url)
		return nil
	}
	if matches(scpForm, s.url) {
		return nil
	}
	u, err := url.Parse(s.url)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "ssh":
		return fmt.Errorf("%q is not an address that plugins are fetched from: %s", s.url, allowed)
	case u.Host == "" || strings.HasPrefix(u.Hostname(), "-") || u.RawQuery != "" || strings.Trim(u.Path, "/") == "":
		return fmt.Errorf("%q is not the address of a git repository: %s", s.url, allowed)
	case u.User == nil:
		return nil
	}
	_, password := u.User.Password()
	if u.Scheme == "https" || password || !matches(userForm, u.User.Username()) {
		return errors.New("the address has a user name or password in it, which would be kept and shown: leave that to git's credential helpers")
	}
	return nil
}

// name returns the name for a plugin without a manifest.
func (s source) name() string {
	at := s.folder
	if at == "" {
		at = s.url
	}
	if s.sub != "" {
		at = s.sub
	}
	return strings.TrimSuffix(path.Base(filepath.ToSlash(at)), ".git")
}

// checkout fetches a git source into an empty folder and returns its commit. Nothing of a repository runs:
// neither hooks nor filters, and external content (submodules, big files) is not fetched.
func (s *Store) checkout(ctx context.Context, src source, dir string) (commit string, err error) {
	if s.Git == nil {
		return "", errors.New("git is not installed, so only folders can be installed")
	}
	git := func(args ...string) (string, error) {
		out, err := s.Git(ctx, dir, append(careful(src.local), args...)...)
		if err != nil {
			return "", fmt.Errorf("git %s: %w", args[0], err)
		}
		return strings.TrimSpace(out), nil
	}
	ref := src.ref
	if ref == "" {
		ref = "HEAD"
	}
	if _, err := git("init", "--quiet", "--template=", "."); err != nil {
		return "", err
	}
	if _, err := git("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", src.url, ref); err != nil {
		return "", err
	}
	commit, err = git("rev-parse", "--verify", "FETCH_HEAD^{commit}")
	if err != nil {
		return "", err
	}
	if !matches(hexForm, commit) {
		return "", fmt.Errorf("git says that the commit is %.80q", commit)
	}
	list, err := s.Git(ctx, dir, append(careful(src.local), "ls-tree", "-r", "-l", "-z", "--full-tree", commit)...)
	if err != nil {
		return "", fmt.Errorf("git ls-tree: %w", err)
	}
	if err := checkList(list, src.sub); err != nil {
		return "", err
	}
	_, err = git("checkout", "--quiet", "--detach", "--no-recurse-submodules", commit)
	return commit, err
}

// careful returns the settings for git that replace those which could make it start a program.
func careful(local bool) []string {
	set := []string{
		"protocol.allow=never", "protocol.https.allow=always", "protocol.ssh.allow=always", "protocol.ext.allow=never",
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "core.autocrlf=false", "core.protectNTFS=true",
		"core.protectHFS=true",
		"submodule.recurse=false", "filter.lfs.smudge=", "filter.lfs.process=", "filter.lfs.required=false", "gc.auto=0",
		"maintenance.auto=false", "advice.detachedHead=false",
	}
	if local {
		set = append(set, "protocol.file.allow=always")
	}
	var args []string
	for _, s := range set {
		args = append(args, "-c", s)
	}
	return args
}

// checkList checks a commit against the limits of a plugin before it is written to disk, where names that
// differ only in case may become one.
func checkList(list, sub string) error {
	taken, count, size := map[string]string{}, 0, int64(0)
	for line := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		meta, at, _ := strings.Cut(line, "\t")
		if sub != "" && sub != "." && !strings.HasPrefix(at, sub+"/") {
			continue
		}
		fields := strings.Fields(meta)
		if len(fields) == 4 {
			n, _ := strconv.ParseInt(fields[3], 10, 64) // the "-" of a submodule counts as 0
			size += n
		}
		if count++; count > MaxFiles {
			return fmt.Errorf("the repository has more than %s files", text.Thousands(MaxFiles))
		}
		if size > MaxBytes {
			return fmt.Errorf("the repository has more than %d MiB in it", MaxBytes>>20)
		}
		for p := at; p != "."; p = path.Dir(p) {
			if other, is := taken[strings.ToLower(p)]; is && other != p {
				return fmt.Errorf("the repository has both %s and %s in it, which differ only in upper and lower case",
					text.Visible(other), text.Visible(p))
			}
			taken[strings.ToLower(p)] = p
		}
	}
	return nil
}

// matches reports whether a text matches a pattern. Patterns are compiled when used: most programs never do.
func matches(form, text string) bool { return regexp.MustCompile(form).MatchString(text) }
