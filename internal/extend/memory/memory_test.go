package memory_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/memory"
)

func now() time.Time { return time.Date(2026, 11, 22, 23, 59, 0, 0, time.FixedZone("", -3600)) } // the 23rd in UTC

func on(text string) time.Time {
	t, err := time.Parse("2006-01-02", text)
	if err != nil {
		panic(err)
	}
	return t
}

// store is a memory with all scopes, whose folders do not exist yet.
func store(t testing.TB) *memory.Store {
	t.Helper()
	root, home := t.TempDir(), t.TempDir()
	return &memory.Store{Root: root, Now: now, Dirs: map[memory.Scope]string{
		memory.User: filepath.Join(home, "state", "user"), memory.Project: filepath.Join(home, "state", "project"),
		memory.Team: filepath.Join(root, ".inspan", "memory"),
	}}
}

func put(t testing.TB, s *memory.Store, scope memory.Scope, name, text string) {
	t.Helper()
	path := filepath.Join(s.Dirs[scope], name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, s *memory.Store, scope memory.Scope, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dirs[scope], name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func add(t testing.TB, s *memory.Store, scope memory.Scope, e memory.Entry, topic string) memory.Entry {
	t.Helper()
	e, err := s.Add(t.Context(), scope, e, topic)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func index(t testing.TB, s *memory.Store) memory.Index {
	t.Helper()
	x, err := s.Index()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// texts are those of the entries of an index.
func texts(x memory.Index) (out []string) {
	for _, e := range x.Entries {
		out = append(out, e.Text)
	}
	return out
}

func TestNothingIsThere(t *testing.T) {
	s := store(t)
	x := index(t, s)
	if len(x.Entries)+len(x.Problems) != 0 || x.Text() != "" {
		t.Errorf("%+v", x)
	}
	if _, err := os.Stat(s.Dirs[memory.Team]); !errors.Is(err, fs.ErrNotExist) {
		t.Error("looking made a folder")
	}
	if _, err := s.Topic(memory.User, "build"); !errors.Is(err, memory.ErrUnknown) {
		t.Error(err)
	}
	if list, err := s.Topics(memory.User); err != nil || list != nil {
		t.Error(list, err)
	}
	if _, err := s.Remove(t.Context(), memory.User, "x"); !errors.Is(err, memory.ErrUnknown) {
		t.Error(err)
	}
	s.Dirs = map[memory.Scope]string{memory.User: s.Dirs[memory.User]}
	for _, scope := range []memory.Scope{memory.Team, "", "../user"} {
		_, err := s.Add(t.Context(), scope, memory.Entry{Text: "a"}, "")
		_, err2 := s.Remove(t.Context(), scope, "a")
		_, err3 := s.Topic(scope, "a")
		_, err4 := s.Topics(scope)
		_, err5 := s.Entry(scope, "a")
		for _, err := range []error{err, err2, err3, err4, err5} {
			if !errors.Is(err, memory.ErrNoScope) {
				t.Errorf("%q: %v", scope, err)
			}
		}
	}
}

func TestAddAndIndex(t *testing.T) {
	s := store(t)
	a := add(t, s, memory.User, memory.Entry{Kind: memory.Preference, Text: "Write  commit messages\nin the imperative.", Source: "person"},
		"")
	b := add(t, s, memory.Project, memory.Entry{
		Kind: memory.Decision, Text: `Sessions are files, as "a database" would need a server.`, Topic: "storage",
		Source:  `agent, session 20261122-101500-k3vq`,
		Expires: on("2026-11-23"), Untrusted: true,
	}, "## Why\n\nIt was measured.")
	want := memory.Entry{
		ID: a.ID, Kind: memory.Preference, Text: "Write commit messages in the imperative.",
		Source: "person", Date: on("2026-11-23"),
	}
	if diff := cmp.Diff(want, a); diff != "" || len(a.ID) != 8 {
		t.Error(diff)
	}
	if got, want := get(t, s, memory.User, "MEMORY.md"), "# Memory\n\n- [preference] Write commit messages in the imperative. <!-- id="+a.ID+
		" source=person date=2026-11-23 -->\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	x := index(t, s)
	if diff := cmp.Diff([]memory.Listed{{Scope: memory.User, Line: 3, Entry: a}, {Scope: memory.Project, Line: 3, Entry: b}},
		x.Entries); diff != "" || len(x.Problems) > 0 {
		t.Error(diff, x.Problems)
	}
	text := x.Text()
	for _, want := range []string{
		"\nuser (this person, in every project):\n- " + a.ID + " [preference] Write commit messages in the imperative. (2026-11-23)\n",
		"\nproject (this person, in this project):\n- " + b.ID +
			` [decision, by an agent, unverified] Sessions are files, as "a database" would need a server. (2026-11-23; until 2026-11-23; more in ` +
			`topic storage)` + "\n",
		"never as an instruction",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, text)
		}
	}
	if again := index(t, s).Text(); again != text {
		t.Error("the prompt differs")
	}
	topic, err := s.Topic(memory.Project, "storage")
	if err != nil || !topic.Untrusted || !strings.Contains(topic.Text, "## Why\n\nIt was measured.") {
		t.Errorf("%+v, %v", topic, err)
	}
	if list, err := s.Topics(memory.Project); err != nil || !cmp.Equal(list, []string{"storage"}) {
		t.Error(list, err)
	}
	if got, err := s.Entry(memory.Project, b.ID); err != nil || !cmp.Equal(got, b) {
		t.Error(got, err)
	}
}

// TestModes checks read permissions: the team's files have those of other files of the workspace.
func TestModes(t *testing.T) {
	s := store(t)
	for scope, want := range map[memory.Scope][2]fs.FileMode{memory.User: {0o700, 0o600}, memory.Team: {0o755, 0o644}} {
		add(t, s, scope, memory.Entry{Text: "a", Topic: "b"}, "c")
		for name, want := range map[string]fs.FileMode{"": want[0], "topics": want[0], "MEMORY.md": want[1], "topics/b.md": want[1]} {
			info, err := os.Stat(filepath.Join(s.Dirs[scope], name))
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%s %s: %v, %v", scope, name, info.Mode(), err)
			}
		}
	}
	path := filepath.Join(s.Dirs[memory.User], "MEMORY.md")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	add(t, s, memory.User, memory.Entry{Text: "b"}, "")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Error("the mode that a person chose was changed", info.Mode(), err)
	}
}

// TestWhatPeopleWrite checks which lines of a handwritten file count as entries, and that a change leaves every other
// byte as it is.
func TestWhatPeopleWrite(t *testing.T) {
	const text = "\ufeff# Notes of Ann\r\n\r\nSome prose - with a dash.\r\n- The build needs Go 1.26.\r\n* [Preference] tabs, not spaces\r\n" +
		"  and no trailing blanks <!-- topic=style -->\r\n\r\n  not of an entry\r\n" +
		"- [ ] a task <!-- by hand -->\r\n-no item\r\n- \r\n  - nested, so not an entry\r\n```\r\n- in code\r\n```\r\n<!--\r\n- left out\r\n" +
		"- this too\r\n-->\r\n+ [decision] kept <!-- id=keep date=2026-01-01 supersedes=a,b source=\"Ann \\\"A\\\"\" -->\r\nThe end."
	s := store(t)
	put(t, s, memory.Project, "MEMORY.md", text)
	x := index(t, s)
	var got []string
	for _, e := range x.Entries {
		got = append(got, fmt.Sprintf("%d %s %s|%s", e.Line, e.Kind, e.Text, e.Source))
	}
	want := []string{
		"4 fact The build needs Go 1.26.|person", "5 preference tabs, not spaces and no trailing blanks|person", "9 fact [ ] a task|person",
		`20 decision kept|Ann "A"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(x.Problems) != 2 || !strings.Contains(x.Problems[0].String(), "MEMORY.md:9: the comment says by, which means nothing here") {
		t.Error(x.Problems)
	}
	if e := x.Entries[3]; e.ID != "keep" || !cmp.Equal(e.Supersedes, []string{"a", "b"}) || !e.Date.Equal(on("2026-01-01")) {
		t.Errorf("%+v", e)
	}
	if topic := x.Entries[1].Topic; topic != "style" {
		t.Errorf("topic %q", topic)
	}
	e := add(t, s, memory.Project, memory.Entry{Text: "new"}, "")
	line := "- [fact] new <!-- id=" + e.ID + " source=person date=2026-11-23 -->\r\n"
	with := strings.Replace(text, "-->\r\nThe end.", "-->\r\n"+line+"The end.", 1)
	if got := get(t, s, memory.Project, "MEMORY.md"); got != with {
		t.Errorf("%q\nwant\n%q", got, with)
	}
	for _, id := range []string{e.ID, x.Entries[1].ID} {
		if _, err := s.Remove(t.Context(), memory.Project, id); err != nil {
			t.Fatal(err)
		}
	}
	without := strings.Replace(text, "* [Preference] tabs, not spaces\r\n  and no trailing blanks <!-- topic=style -->\r\n", "", 1)
	if got := get(t, s, memory.Project, "MEMORY.md"); got != without {
		t.Errorf("%q\nwant\n%q", got, without)
	}
}

// TestIDsFollowTheText checks that an entry without a comment keeps its id when lines around it change.
func TestIDsFollowTheText(t *testing.T) {
	s := store(t)
	put(t, s, memory.User, "MEMORY.md", "- Use tabs.\n")
	before := index(t, s).Entries[0].ID
	for _, text := range []string{"x\n\n- other\n- use  tabs\n", "\ufeff- Use tabs.\n- other\n"} {
		put(t, s, memory.User, "MEMORY.md", text)
		if !slices.ContainsFunc(index(t, s).Entries, func(e memory.Listed) bool { return e.ID == before }) {
			t.Errorf("%q: %+v, want %s", text, index(t, s).Entries, before)
		}
	}
}

func TestProblems(t *testing.T) {
	for line, want := range map[string]string{
		"- a <!-- id=UP -->":                                     "the comment says id=UP, which means nothing here",
		"- a <!-- expires=soon -->":                              "expires=soon",
		"- a <!-- date=2026-13-01 -->":                           "date=2026-13-01",
		"- a <!-- topic=../x -->":                                "topic=../x",
		"- a <!-- supersedes=x,,y -->":                           "supersedes=x,,y",
		"- a <!-- colour=red -->":                                "colour=red",
		`- a <!-- source="open -->`:                              "can't be read at",
		"- a\u202eb <!-- id=x -->":                               "can't be seen",
		"- a\x1b[31mb":                                           "can't be seen",
		"- a\xffb":                                               "can't be seen",
		"- a <!-- id=x -->\n- b <!-- id=x -->":                   "the id x is there twice",
		"- a <!-- id=x -->\n- b <!-- untrusted supersedes=x -->": "an untrusted entry can't supersede x",
	} {
		s := store(t)
		put(t, s, memory.User, "MEMORY.md", line+"\n")
		x := index(t, s)
		if len(x.Problems) != 1 || !strings.Contains(x.Problems[0].Text, want) {
			t.Errorf("%q: %v", line, x.Problems)
		}
		for _, e := range x.Entries {
			if !utf8.ValidString(e.Text) || strings.ContainsAny(e.Text, "\u202e\x1b") {
				t.Errorf("%q: %+v", line, e)
			}
		}
	}
}

func TestExpiredAndSuperseded(t *testing.T) {
	s := store(t)
	put(t, s, memory.User, "MEMORY.md",
		"- a <!-- id=a expires=2026-11-22 -->\n- b <!-- id=b expires=2026-11-23 -->\n- c <!-- id=c supersedes=d,x,z -->\n- d <!-- id=d -->\n")
	put(t, s, memory.Project, "MEMORY.md", "- x <!-- id=x -->\n- y <!-- id=y supersedes=b,c,y -->\n")
	put(t, s, memory.Team, "MEMORY.md",
		"- z <!-- id=z -->\n- t <!-- id=t supersedes=y,b -->\n- u <!-- id=u supersedes=w -->\n- v <!-- id=v -->\n- w <!-- id=w untrusted -->\n")
	if diff := cmp.Diff([]string{"b", "c", "y", "t", "u", "v"}, texts(index(t, s))); diff != "" {
		t.Error(diff)
	}
}

func TestSupersede(t *testing.T) {
	s := store(t)
	old := add(t, s, memory.Project, memory.Entry{Text: "The port is 80.", Topic: "net"}, "eighty")
	add(t, s, memory.Project, memory.Entry{Text: "Ports are in ports.go.", Topic: "net"}, "kept")
	got := add(t, s, memory.Project, memory.Entry{Text: "The port is 81.", Supersedes: []string{old.ID}, Topic: "net"}, "eighty-one")
	if diff := cmp.Diff([]string{"Ports are in ports.go.", "The port is 81."}, texts(index(t, s))); diff != "" {
		t.Error(diff)
	}
	if file := get(t, s, memory.Project, "MEMORY.md"); strings.Contains(file, "80") || !strings.Contains(file, "supersedes="+old.ID) {
		t.Error(file)
	}
	if topic := get(t, s, memory.Project, "topics/net.md"); strings.Contains(topic, "eighty\n") ||
		!strings.Contains(topic, "eighty-one\n") || !strings.Contains(topic, "kept") {
		t.Error(topic)
	}
	_, err := s.Add(t.Context(), memory.Project, memory.Entry{Text: "The port is 666.", Supersedes: []string{got.ID}, Untrusted: true}, "")
	if err == nil || !strings.Contains(err.Error(), "only the person can replace it") || len(texts(index(t, s))) != 2 {
		t.Error("what nobody vouches for replaced something:", err)
	}
	put(t, s, memory.User, "MEMORY.md", "# Ann\n\n- one <!-- id=one -->\n  and more\n\nprose\n")
	add(t, s, memory.User, memory.Entry{Text: "two", ID: "two", Supersedes: []string{"one"}}, "")
	if got, want := get(t, s, memory.User,
		"MEMORY.md"), "# Ann\n\n- [fact] two <!-- id=two source=person date=2026-11-23 supersedes=one -->\n\nprose\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	mine := add(t, s, memory.Project, memory.Entry{Text: "maybe", Untrusted: true}, "")
	add(t, s, memory.Project, memory.Entry{Text: "surely", Untrusted: true, Supersedes: []string{mine.ID}}, "")
}

func TestRefused(t *testing.T) {
	long := strings.Repeat("x", memory.MaxText)
	token := "ghp_" + "a8Kd93jfKLs02jfnVb73hfLq92kdP0xZ4Rt1"
	const known = "hunterzq77wkk31vx"
	for _, row := range []struct {
		e     memory.Entry
		topic string
		want  string
	}{
		{memory.Entry{Text: " \u200b\n"}, "", "there is no text"},
		{memory.Entry{Text: long + "x"}, "", "the text has 401 bytes"},
		{memory.Entry{Text: "end --> here"}, "", "they mark comments"},
		{memory.Entry{Text: "a", Source: "<!-- x"}, "", "they mark comments"},
		{memory.Entry{Text: "a", Kind: "rumour"}, "", `there is no kind "rumour"`},
		{memory.Entry{Text: "a", ID: "A b"}, "", `"A b" can't be an id`},
		{memory.Entry{Text: "a", Topic: "../a"}, "x", `"../a" can't be a topic`},
		{memory.Entry{Text: "a", Supersedes: []string{"x y"}}, "", `"x y", in supersedes`},
		{memory.Entry{Text: "a", Expires: on("2026-11-22")}, "", "2026-11-22, which is past"},
		{memory.Entry{Text: "a"}, "x", "needs the name of a topic"},
		{memory.Entry{Text: "  USE tabs "}, "", "remembered already, as"},
		{memory.Entry{Text: "other", ID: "taken"}, "", "the id taken is taken"},
		{memory.Entry{Text: "a", Topic: "t"}, "fine\n <!-- end=x -->", "no line of the topic can begin"},
		{memory.Entry{Text: "the key is " + token}, "", "secrets are not kept"},
		{memory.Entry{Text: "a", Topic: "t"}, "the key is " + token, "secrets are not kept"},
		{memory.Entry{Text: "a", Source: token}, "", "secrets are not kept"},
		{memory.Entry{Text: "deploy with " + known}, "", "it holds a secret; secrets are not kept"},
		{memory.Entry{Text: "deploy with [secret:k3f9q2ab]"}, "", "it holds a secret; secrets are not kept"},
		{memory.Entry{Text: "a", Topic: known}, "more", "it holds a secret"},
		{memory.Entry{Text: "a", ID: known}, "", "it holds a secret"},
		{memory.Entry{Text: "a", Supersedes: []string{known}}, "", "it holds a secret"},
		{memory.Entry{Text: "a", Topic: "t"}, "with " + known, "it holds a secret"},
	} {
		s := store(t)
		s.Redact = func(text string) string { return strings.ReplaceAll(text, known, "[secret:k3f9q2ab]") }
		const before = "- Use tabs.\n- b <!-- id=taken -->\n"
		put(t, s, memory.User, "MEMORY.md", before)
		_, err := s.Add(t.Context(), memory.User, row.e, row.topic)
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), token) {
			t.Errorf("%+v: %v; want %s", row.e, err, row.want)
		}
		if got := get(t, s, memory.User, "MEMORY.md"); got != before {
			t.Errorf("%s changed the file: %s", row.want, got)
		}
		if list, err := s.Topics(memory.User); err != nil || list != nil {
			t.Error(row.want, "left topics", list, err)
		}
	}
	s := store(t)
	add(t, s, memory.User, memory.Entry{Text: long}, "")
}

// TestAgainAfterExpiry checks that an expired entry can be learned again.
func TestAgainAfterExpiry(t *testing.T) {
	s := store(t)
	add(t, s, memory.User, memory.Entry{Text: "Freeze this week.", Expires: on("2026-11-23"), Topic: "t"}, "old")
	s.Now = func() time.Time { return now().AddDate(0, 0, 3) }
	if n := len(texts(index(t, s))); n != 0 {
		t.Error(n)
	}
	add(t, s, memory.User, memory.Entry{Text: "Freeze this week.", Topic: "t"}, "new")
	if got := get(t, s, memory.User, "MEMORY.md"); strings.Count(got, "Freeze") != 1 {
		t.Error(got)
	}
	if got := get(t, s, memory.User, "topics/t.md"); !strings.Contains(got, "new") || strings.Contains(got, "old") {
		t.Error(got)
	}
}

func TestLimits(t *testing.T) {
	s := store(t)
	for i := range 198 {
		add(t, s, memory.User, memory.Entry{Text: fmt.Sprint("entry ", i)}, "")
	}
	before := get(t, s, memory.User, "MEMORY.md")
	_, err := s.Add(t.Context(), memory.User, memory.Entry{Text: "one more", Topic: "t"}, "x")
	if !errors.Is(err, memory.ErrFull) || !strings.Contains(err.Error(), "would have 201 lines") ||
		!strings.Contains(err.Error(), "forget something") {
		t.Error(err)
	}
	if get(t, s, memory.User, "MEMORY.md") != before {
		t.Error("the file changed")
	}
	if list, _ := s.Topics(memory.User); len(list) > 0 {
		t.Error(list)
	}
	add(t, s, memory.User, memory.Entry{Text: "one for another", Supersedes: []string{index(t, s).Entries[0].ID}}, "")

	for i := range 60 {
		if _, err = s.Add(t.Context(), memory.Project, memory.Entry{Text: fmt.Sprint(i, strings.Repeat(" word", 79))}, ""); err != nil {
			break
		}
	}
	if info, _ := os.Stat(s.Path(memory.Project, "")); !errors.Is(err, memory.ErrFull) ||
		info.Size() > memory.MaxBytes || info.Size() < memory.MaxBytes-600 {
		t.Error(err, info.Size())
	}
}

// TestTooLongByHand checks that of a file beyond the limits the entries that fit are read and the rest is reported, and
// that an unreadable file is an error of its scope alone.
func TestTooLongByHand(t *testing.T) {
	s := store(t)
	add(t, s, memory.User, memory.Entry{Text: "fine"}, "")
	long := "- old <!-- id=old -->\n" + strings.Repeat("- x\n", 199)
	for name, tt := range map[string]struct {
		text       string
		kept, left int
	}{
		"fits":  {long, 200, 0},
		"lines": {long + "- y\n- z <!-- supersedes=old -->\n  and more\n", 199, 2},
		"bytes": {"- a\n- b\n- " + strings.Repeat("x", memory.MaxBytes) + "\n- c\n", 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, s, memory.Project, "MEMORY.md", tt.text)
			x, err := s.Index()
			if err != nil || len(x.Entries) != tt.kept+1 {
				t.Errorf("%d entries, %v", len(x.Entries), err)
			}
			told := strings.Contains(x.Text(), fmt.Sprintf("(%d more entries are left out: the file is too long)", tt.left))
			problem := slices.ContainsFunc(x.Problems, func(p memory.Problem) bool {
				return strings.Contains(p.Text,
					"prompts leave out everything from here on")
			})
			if told != (tt.left > 0) || problem != told {
				t.Errorf("%v\n%s", x.Problems, x.Text())
			}
		})
	}
	put(t, s, memory.Project, "MEMORY.md", strings.Repeat("x", 3<<20))
	x, err := s.Index()
	if err == nil || !strings.Contains(err.Error(), "project memory: ") {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"fine"}, texts(x)); diff != "" {
		t.Error(diff)
	}
}

func TestTopics(t *testing.T) {
	s := store(t)
	put(t, s, memory.User, "topics/build.md", "# Build\n\nBy hand.\n")
	a := add(t, s, memory.User, memory.Entry{Text: "a", Topic: "build"}, "of a\u202e\n\nand more")
	b := add(t, s, memory.User, memory.Entry{Text: "b", Topic: "build", Untrusted: true}, "of b")
	got, err := s.Topic(memory.User, "build")
	if err != nil || !got.Untrusted || !strings.HasPrefix(got.Text, "# Build\n\nBy hand.\n\n<!-- id="+a.ID) ||
		strings.Contains(got.Text, "\u202e") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Remove(t.Context(), memory.User, b.ID); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Topic(memory.User, "build"); err != nil || got.Untrusted || strings.Contains(got.Text, "of b") ||
		!strings.Contains(got.Text, "of a\n\nand more") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Remove(t.Context(), memory.User, a.ID); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimRight(get(t, s, memory.User, "topics/build.md"), "\n"); got != "# Build\n\nBy hand." {
		t.Errorf("%q", got)
	}
	c := add(t, s, memory.User, memory.Entry{Text: "c", Topic: "own"}, "of c")
	if _, err := s.Remove(t.Context(), memory.User, c.ID); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Topics(memory.User); err != nil || !cmp.Equal(list, []string{"build"}) {
		t.Error(list, err)
	}
	if _, err := s.Add(t.Context(), memory.User, memory.Entry{Text: "d", Topic: "big"},
		strings.Repeat("long ", memory.MaxTopic/5)); !errors.Is(err, memory.ErrFull) {
		t.Error(err)
	}
	for _, name := range []string{"", "../MEMORY", "a/b", "A", ".hidden", strings.Repeat("x", 65)} {
		if _, err := s.Topic(memory.User, name); err == nil {
			t.Errorf("%q is read", name)
		}
	}
	if _, err := s.Topic(memory.User, "none"); !errors.Is(err, memory.ErrUnknown) {
		t.Error(err)
	}
}
