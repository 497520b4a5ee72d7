package walls

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// seatbeltPaths is the paths in a profile of Seatbelt, the sandbox of macOS.
type seatbeltPaths struct {
	root, temp  string
	also        []string // further folders with the access of root
	read, write []string
	secret      []string
	shared      []string // below secret places, but readable
	apart       []string // closed around the workspace
	frozen      []string
	git         bool
}

// pathsOf collects the paths. Places that are sensitive by name are patterns in the profile, so they need not
// exist.
func pathsOf(m places.Map, root string, box tool.Box, temp string) seatbeltPaths {
	p := seatbeltPaths{root: root, also: m.Also, temp: temp, read: box.Read, write: box.Write, git: box.Git}
	for _, path := range box.Read {
		if m.Opens(path, path) {
			p.shared = append(p.shared, path)
		}
	}
	for _, k := range m.Known() {
		switch {
		case m.Opens(k.Path, root):
			p.apart = append(p.apart, k.Path)
		case m.Of(k.Path).Guard == places.Secret:
			p.secret = append(p.secret, k.Path)
		case k.Path == filepath.Join(root, ".git") && box.Git, slices.Contains(box.Write, k.Path) && k.Guard == places.Guarded:
		case slices.ContainsFunc(p.tops(), func(top string) bool { return text.Inside(top, k.Path) }):
			p.frozen = append(p.frozen, k.Path)
		}
	}
	return p
}

// tops returns the folders that commands work in.
func (p seatbeltPaths) tops() []string { return append([]string{p.root}, p.also...) }

// SeatbeltProfile returns the rules of a box for the requested level. In Seatbelt the last matching rule
// decides, so closed places come after open ones.
func SeatbeltProfile(m places.Map, root string, box tool.Box, temp string) string {
	level, p := box.Level, pathsOf(m, root, box, temp)
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("(version 1)\n(deny default)\n(allow process-exec process-fork)\n(allow signal (target same-sandbox))\n(allow sysctl-read)")
	line("(allow mach-lookup (global-name \"com.apple.system.notification_center\") (global-name " +
		"\"com.apple.system.opendirectoryd.libinfo\"))")
	line("(allow file-read-metadata)")
	for _, path := range []string{
		"/usr", "/bin", "/sbin", "/System", "/Library/Developer", "/Applications", "/opt", "/private/etc", "/dev",
		"/private/var/db/dyld", "/private/var/select",
	} {
		line("(allow file-read* (subpath %s))", quoted(path))
	}
	for _, path := range p.read {
		line("(allow file-read* (subpath %s))", quoted(path))
	}
	if level == tool.BoxWorkspace {
		for _, path := range p.write {
			line("(allow file-read* file-write* (subpath %s))", quoted(path))
		}
	}
	for _, path := range p.apart {
		line("(deny file-read* file-write* (subpath %s))", quoted(path))
	}
	for _, path := range append(p.tops(), p.temp) {
		line("(allow file-read* (subpath %s))", quoted(path))
	}
	line("(allow file-write-data (literal \"/dev/null\") (literal \"/dev/zero\"))")
	line("(allow file-write* (subpath %s))", quoted(p.temp))
	if level == tool.BoxWorkspace {
		for _, path := range p.tops() {
			line("(allow file-write* (subpath %s))", quoted(path))
		}
		line("(allow network* (local ip \"localhost:*\") (remote ip \"localhost:*\"))")
		for _, path := range p.frozen {
			line("(deny file-write* (subpath %s))", quoted(path))
		}
		for _, pattern := range frozenPatterns(p) {
			line("(deny file-write* (regex #%s))", quoted(pattern))
		}
	}
	for _, path := range p.secret {
		line("(deny file-read* file-write* (subpath %s))", quoted(path))
	}
	for _, path := range p.shared {
		line("(allow file-read* (subpath %s))", quoted(path))
	}
	for _, top := range p.tops() {
		for _, pattern := range secretPatterns() {
			line("(deny file-read* file-write* (regex #%s))", quoted("^"+regexp.QuoteMeta(top)+"/"+pattern))
		}
	}
	return out.String()
}

// frozenPatterns match places that are never written, anywhere in the workspace. If the inside of the
// repository is open, only files that name programs are.
func frozenPatterns(p seatbeltPaths) []string {
	root := "^" + regexp.QuoteMeta(p.root) + "/"
	out := []string{root + "(.*/)?[.]inspan(/|$)"}
	for _, dir := range p.also {
		out = append(out, "^"+regexp.QuoteMeta(dir)+"/(.*/)?[.](inspan|git)(/|$)")
	}
	if !p.git {
		return append(out, root+"(.*/)?[.]git(/|$)")
	}
	return append(out, root+".*/[.]git(/|$)", root+"[.]git/(.*/)?(config|config[.]worktree|hooks|info/attributes|commondir)(/|$)")
}

// secretPatterns match the names of files with secrets.
func secretPatterns() []string {
	return []string{
		"(.*/)?[.]env$", "(.*/)?[.]env[.](local|dev|prod|production|development|staging|test)[^/]*$",
		"(.*/)?[^/]*[.](pem|key|p12|pfx|jks|keystore|kdbx|ppk|ovpn|keytab|agekey)$",
		"(.*/)?id_(rsa|dsa|ecdsa|ed25519)[^/.]*$",
		"(.*/)?([.]netrc|[.]git-credentials|[.]pgpass|[.]pypirc|[.]htpasswd|terraform[.]tfstate|auth[.]json)$", "(.*/)?[.](ssh|aws|gnupg)(/|$)",
	}
}

// quoted quotes a string for Seatbelt.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
