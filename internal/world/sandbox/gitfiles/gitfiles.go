// Package gitfiles defines which files a command in a box may leave in a git directory, and checks their
// content.
package gitfiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Files that a box may leave in a git directory. All others that a box writes there are discarded, so a new
// kind of file of a later git is rejected until its effect was reviewed. The names are those of
// gitrepository-layout(5), git-rebase(1), git-am(1), git-bisect(1) and of git's own sequencer.c, builtin/am.c,
// builtin/rebase.c and bisect.c; docs/decisions/060 lists those that name programs.

// Kind is a kind of files that a box may leave.
type Kind struct {
	name      *regexp.Regexp
	Check     func(data, old []byte) error // nil means any content is harmless data
	Locked    bool                         // git locks it for changes, and readers rely on that
	Permanent bool                         // git never removes it by itself
}

var errProgram = errors.New("names a program that git would run")

// errForm says that a file is not in git's format.
var errForm = errors.New("is not in a form that git writes there")

// Allowed lists the kinds. Names are relative to a git directory; worktrees and modules have their own.
func Allowed() []Kind {
	text := func(names string) Kind { return Kind{name: regexp.MustCompile(`^(?:` + names + `)$`)} }
	form := func(names, form string) Kind {
		k := text(names)
		is := regexp.MustCompile(`^(?:` + form + `)$`)
		k.Check = func(data, _ []byte) error {
			if !is.Match(data) {
				return errForm
			}
			return nil
		}
		return k
	}
	locked := func(k Kind) Kind {
		k.Locked = true
		return k
	}
	named := func(names string, check func(data, old []byte) error) Kind {
		k := text(names)
		k.Check = check
		return k
	}
	const (
		id   = `[0-9a-f]{40}(?:[0-9a-f]{24})?`
		ids  = `(?:` + id + `\s*)*`
		name = `refs/[^\s~^:?*\[\\/]+(?:/[^\s~^:?*\[\\/-][^\s~^:?*\[\\]*)?`
		ref  = `(?:ref: ` + name + `|` + id + `)\s*`
		word = `[A-Za-z0-9./_-]{0,200}\s*`
	)
	head := locked(form(`HEAD`, ref))
	head.Permanent = true
	packed := locked(form(`packed-refs`, `(?:(?:#[^\n]*|\^?`+id+`(?: `+name+`)?)\n)*`))
	packed.Permanent = true
	return []Kind{
		head, packed,
		locked(form(name, ref)),
		locked(named(`index|sharedindex\.[0-9a-f]+`, CheckIndex)),
		locked(form(`shallow`, ids)),
		locked(named(`config`, branches)),
		locked(text(`reftable/(?:tables\.list|0x[0-9a-f]+-0x[0-9a-f]+-[0-9a-f]+\.ref)`)),
		text(`logs/(?:HEAD|refs/.+)`),
		form(`(?:ORIG|MERGE|CHERRY_PICK|REVERT|REBASE|BISECT)_HEAD|AUTO_MERGE|MERGE_AUTOSTASH|BISECT_EXPECTED_REV|NOTES_MERGE_PARTIAL`, ids),
		text(`(?:MERGE|SQUASH)_MSG|(?:COMMIT|TAG|NOTES)_EDITMSG|FETCH_HEAD|MERGE_MODE|BISECT_LOG|BISECT_RUN|NOTES_MERGE_REF|NOTES_MERGE_WORKTREE/[0-9a-f]+`),
		named(`MERGE_RR`, conflicts),
		form(`BISECT_START|BISECT_ANCESTORS_OK|BISECT_FIRST_PARENT`, `(?:[A-Za-z0-9]`+word+`)?\s*`),
		form(`BISECT_TERMS`, `[a-z][a-z0-9-]*\n[a-z][a-z0-9-]*\n`),
		form(`BISECT_NAMES`, `(?:\s*'[^']*')*\s*`),
		text(`info/(?:exclude|refs|sparse-checkout)|objects/info/packs|rr-cache/[0-9a-f]+(?:/(?:pre|post|this)image(?:\.\d+)?)`),
		// Objects are never changed; see write.
		text(`objects/[0-9a-f]{2}/[0-9a-f]{38}(?:[0-9a-f]{24})?`),
		text(`objects/pack/pack-` + id + `\.(?:pack|idx|rev|bitmap|mtimes|keep|promisor)`),
		text(`objects/pack/multi-pack-index(?:-` + id + `\.(?:bitmap|rev))?|objects/info/commit-graph|objects/info/commit-graphs/.+`),
		// Rebases, ams, and picks that continue later.
		named(`rebase-merge/git-rebase-todo|sequencer/todo`, plan),
		named(`(?:rebase-merge|rebase-apply)/author-script`, author),
		named(`rebase-merge/strategy`, strategy),
		named(`rebase-merge/strategy_opts`, strategyOptions),
		named(`sequencer/opts`, sequencerOptions),
		named(`rebase-apply/apply-opt`, applyOptions),
		form(`rebase-(?:merge|apply)/gpg_sign_opt`, `\s*`),
		form(`rebase-(?:merge|apply)/(?:onto|orig-head|stopped-sha|amend|autostash|squash-onto|original-commit|abort-safety)|sequencer/(?:head|abort-safety)`, ids),
		form(`rebase-(?:merge|apply)/(?:msgnum|end|next|last)`, `\d*\s*`),
		form(`rebase-(?:merge|apply)/head-name`, `refs/[^\s~^:?*\[\\]+\s*|detached HEAD\s*`),
		form(`rebase-merge/(?:interactive|quiet|verbose|signoff|drop_redundant_commits|keep_redundant_commits|`+
			`(?:no-)?reschedule-failed-exec|force-rebase|root|ignore_date|cdate_is_adate|allow_rerere_autoupdate)`, word),
		form(`rebase-apply/(?:applying|rebasing|keep|utf8|threeway|scissors|sign|messageid|quiet|quoted-cr|dirtyindex|no-reject|allow_rerere_autoupdate)`,
			word),
		text(`rebase-merge/(?:done|git-rebase-todo\.backup|message|message-fixup|message-squash|current-fixups|rewritten-list|rewritten-pending|` +
			`refs-to-delete|update-refs|dropped|patch)`),
		text(`rebase-apply/(?:\d{4,}|patch|info|msg|msg-clean|final-commit|rewritten|patch-merge-index)`),
	}
}

// Find returns the kind of a file, relative to a git directory, that a box may leave.
func Find(list []Kind, name string) (Kind, bool) {
	for _, part := range strings.Split(name, "/") {
		if part == ".." || strings.HasSuffix(part, ".lock") || strings.ContainsAny(part, "\n\x00") {
			return Kind{}, false
		}
	}
	i := slices.IndexFunc(list, func(k Kind) bool { return k.name.MatchString(name) })
	if i < 0 {
		return Kind{}, false
	}
	return list[i], true
}

// Transient matches git's temporary files, whose rejection is not reported.
var Transient = text.Pattern(`(?:^|/)(?:[^/]*\.lock|tmp_[^/]*|\.tmp[^/]*|gc\.(?:pid|log)|index\.stash\.\d+|fsmonitor--daemon.*|t[0-9A-Za-z]{6}|addp-hunk-edit\.diff|ADD_EDIT\.patch|EDIT_DESCRIPTION)$`)

var (
	configSection = text.Pattern(`^\[([A-Za-z0-9.-]+)(?: "([^"\\\n]*)")?\]$`)
	branchSetting = text.Pattern(`^(?:remote|pushRemote|merge|rebase|[a-z]+-merge-base) = ([A-Za-z0-9._/+-]+)$`)
	branchRemote  = text.Pattern(`^(?:remote|pushRemote) `)
)

// branches checks the settings of a repository: only settings of branches may differ, and they may only refer
// to existing remotes.
func branches(data, old []byte) error {
	apart := func(text []byte) (others []string, own map[string]bool) {
		own = map[string]bool{}
		section := ""
		for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
			if m := configSection().FindStringSubmatch(line); m != nil {
				section = strings.ToLower(m[1]) + " " + m[2]
			}
			if strings.HasPrefix(section, "branch ") {
				own[section+"\x00"+line] = true
				continue
			}
			others = append(others, line)
		}
		return others, own
	}
	others, own := apart(data)
	before, was := apart(old)
	if !slices.Equal(others, before) || bytes.Contains(old, []byte("\\\n")) {
		return errSettings
	}
	for key := range own {
		section, line, _ := strings.Cut(key, "\x00")
		m := branchSetting().FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case was[key], configSection().MatchString(line):
		case m == nil, branchRemote().MatchString(m[0]) && m[1] != "." && !slices.Contains(before, `[remote "`+m[1]+`"]`):
			return fmt.Errorf("says %q of %s: %w", strings.TrimSpace(line), section, errSettings)
		}
	}
	return nil
}

var errSettings = errors.New("holds settings, which can name programs: the person changes them, or a call with outside, which needs approval " +
	"(for one command git -c user.name=... -c user.email=... does as well)")

// conflicts checks which files git rerere reads and writes.
func conflicts(data, _ []byte) error {
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x00"), "\x00") {
		if _, name, ok := strings.Cut(entry, "\t"); entry != "" && (!ok || !treePath(name)) {
			return errPath
		}
	}
	return nil
}

// plan checks a todo list of git. It may run only commands that the previous list ran.
func plan(data, old []byte) error {
	steps := []string{
		"pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f", "drop", "d", "break", "b", "label", "l", "reset", "t",
		"merge", "m", "noop", "update-ref", "u", "revert",
	}
	before := strings.Split(string(old), "\n")
	for line := range strings.SplitSeq(string(data), "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0, strings.HasPrefix(fields[0], "#"), slices.Contains(steps, fields[0]), slices.Contains(before, line):
		default:
			return errProgram
		}
	}
	return nil
}

var authorForm = text.Pattern(`^(?:GIT_AUTHOR_(?:NAME|EMAIL|DATE)='(?:[^'\n]|'\\'')*'\n?)*$`)

// author checks a file that old versions of git read as a shell script.
func author(data, _ []byte) error {
	if !authorForm().Match(data) {
		return errForm
	}
	return nil
}

// strategy checks that a merge strategy is built into git. Any other is a program git-merge-NAME.
func strategy(data, _ []byte) error {
	if !slices.Contains([]string{"ort", "recursive", "resolve", "octopus", "ours", "subtree"}, strings.TrimSpace(string(data))) {
		return errProgram
	}
	return nil
}

var strategyForm = text.Pattern(`^(?:--)?(?:ours|theirs|patience|histogram|minimal|(?:no-)?renormalize|no-renames|ignore-(?:space-change|all-space|` +
	`space-at-eol|cr-at-eol)|find-renames(?:=\d+%?)?|rename-threshold=\d+%?|diff-algorithm=[a-z]+|subtree(?:=[\w./-]*)?)$`)

func strategyOptions(data, _ []byte) error {
	for _, w := range strings.Fields(strings.ReplaceAll(string(data), "'", " ")) {
		if !strategyForm().MatchString(w) {
			return errForm
		}
	}
	return nil
}

// sequencerOptions checks the options of a continuing cherry-pick or revert.
func sequencerOptions(data, _ []byte) error {
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line == "[options]" {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		value = strings.TrimSpace(value)
		switch key = strings.TrimSpace(key); key {
		case "strategy":
			if err := strategy([]byte(value), nil); err != nil {
				return err
			}
		case "strategy-option":
			if err := strategyOptions([]byte(strings.Trim(value, `"`)), nil); err != nil {
				return err
			}
		case "no-commit", "edit", "allow-empty", "allow-empty-message", "drop-redundant-commits", "keep-redundant-commits", "signoff",
			"record-origin", "allow-ff", "mainline", "allow-rerere-auto", "default-msg-cleanup", "commit-use-reference":
			if !regexp.MustCompile(`^[a-z0-9]*$`).MatchString(value) {
				return errForm
			}
		default:
			return fmt.Errorf("says %q, which is not known to be harmless", key)
		}
	}
	return nil
}

var applyForm = text.Pattern(`^(?:\s*'(?:-[pC]\d+|--whitespace=[a-z-]+|--(?:directory|exclude|include)=[^']*|--reject|` +
	`--ignore-whitespace|--ignore-space-change)')*\s*$`)

func applyOptions(data, _ []byte) error {
	if !applyForm().Match(data) {
		return errForm
	}
	return nil
}

// SameIndex reports whether two indexes have the same entries: git also rewrites an index when it only
// refreshes file metadata. Unknown formats differ.
func SameIndex(a, b []byte) bool {
	x, ok := indexEntries(a)
	y, good := indexEntries(b)
	return ok && good && bytes.Equal(x, y)
}

// indexEntries returns the entries of an index without file metadata.
func indexEntries(data []byte) (out []byte, ok bool) {
	ok = eachEntry(data, func(stat, rest []byte, _ string) {
		out = append(out, stat[24:28]...)
		out = append(out, rest...)
	})
	return out, ok
}

// eachEntry calls f for each entry of an index of version 2 or 3 with ids of 20 bytes; see gitformat-index(5).
// Stat begins with the file metadata; rest is the id and the remainder.
func eachEntry(data []byte, f func(stat, rest []byte, name string)) bool {
	if len(data) < 12 || string(data[:4]) != "DIRC" || data[7] < 2 || data[7] > 3 {
		return false
	}
	at := 12
	for range binary.BigEndian.Uint32(data[8:]) {
		if at+62 > len(data) {
			return false
		}
		end := at + 62
		if data[at+60]&0x40 != 0 {
			end += 2
		}
		if end > len(data) {
			return false
		}
		n := bytes.IndexByte(data[end:], 0)
		if n < 0 {
			return false
		}
		f(data[at:at+40], data[at+40:end+n+1], string(data[end:end+n]))
		at += (end - at + n + 8) &^ 7
	}
	return true
}

// Seen is a file's entry in an index.
type Seen struct {
	What       string // mode and id
	Sec, Nanos uint32 // modification time in the index
	Away       bool   // the file need not match: it is unmerged, or not checked out
}

// Index parses an index; false if its format is unknown.
func Index(data []byte) (map[string]Seen, bool) {
	out := map[string]Seen{}
	ok := eachEntry(data, func(stat, rest []byte, name string) {
		const id, stages, extended, skipped = 20, 0x30, 0x40, 0x40
		away := rest[id]&stages != 0 || rest[id]&extended != 0 && rest[id+2]&skipped != 0
		out[name] = Seen{string(stat[24:28]) + string(rest[:id]), binary.BigEndian.Uint32(stat[8:]), binary.BigEndian.Uint32(stat[12:]), away}
	})
	return out, ok
}
