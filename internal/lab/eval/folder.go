package eval

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// The files of a run, in the folder evals/ID of the state folder. All except run.json are appended to, one
// write a line.
const (
	runFile    = "run.json"     // the description of the run
	trialsFile = "trials.jsonl" // trials that ended
	claimsFile = "claims.jsonl" // sessions of attempts, each before it begins
	labelsFile = "labels.jsonl" // people's verdicts on trials
	lockFile   = "run.lock"     // locked while a process works on the run
	configDir  = "config"       // the settings of its sessions
	looksFile  = "held-out.jsonl"
	cacheDir   = "cache"
)

// Folder has the runs that are stored on this machine. Safe for concurrent use, even by several processes.
type Folder struct{ Dir string }

// FolderIn returns the folder in a state folder.
func FolderIn(state string) Folder { return Folder{filepath.Join(state, "evals")} }

// header is run.json: the run, and the data to resume it.
type header struct {
	Run
	Source string   `json:"source"` // the path of the suite
	Tasks  []string `json:"tasks"`  // ids
	Repos  string   `json:"repos,omitempty"`
	Flags  []string `json:"flags,omitempty"` // of 'inspan run', for each trial
	Lent   Lent     `json:"lent,omitzero"`
	Open   bool     `json:"open,omitempty"` // the agent may be able to see checkers, which a person has allowed

	// The runner's settings when the run began, which apply unless a later runner has its own.
	Budget float64       `json:"budget,omitempty"`
	Time   time.Duration `json:"time,omitempty"`
	Fresh  bool          `json:"fresh,omitempty"`
}

// Lent is a file that the workspaces of all trials have in addition to those of their tasks. The zero value is
// none.
type Lent struct {
	Path    string `json:"path"` // below the workspace, with slashes
	Content string `json:"content"`
}

func (f Folder) path(parts ...string) string {
	return filepath.Join(append([]string{f.Dir}, parts...)...)
}

// add stores a new run, and gives it an id.
func (f Folder) add(h *header, settings []byte, beside []File) (err error) {
	h.Began = time.Now().UTC().Round(0)
	if h.ID, err = store.NewID(h.Began, rand.Reader); err != nil {
		return err
	}
	if err := keep.MakeDir(f.path(h.ID, configDir)); err != nil {
		return err
	}
	if err := keep.Write(f.path(h.ID, configDir, "config.toml"), settings); err != nil {
		return err
	}
	if err := writeBeside(f.path(h.ID, configDir), beside); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	return keep.Write(f.path(h.ID, runFile), append(raw, '\n'))
}

func readHeader(dir string) (h header, err error) {
	raw, err := keep.Read(filepath.Join(dir, runFile))
	if err == nil {
		err = json.Unmarshal(raw, &h)
	}
	return h, err
}

func (f Folder) header(id string) (h header, err error) {
	h, err = readHeader(f.path(id))
	if err == nil && h.ID != id {
		err = errors.New("it is that of another run")
	}
	if err != nil {
		return h, fmt.Errorf("read run %s: %w", id, err)
	}
	return h, nil
}

// Open reads a run with its trials. An id may be shortened as long as it is unique; "last" is the run that
// began last. If there is none, the error is a [words.Misuse].
func (f Folder) Open(id string) (*Run, error) {
	ids, err := f.IDs()
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(slices.Clone(ids), func(one string) bool { return !strings.HasPrefix(one, id) })
	switch {
	case id == "last" && len(ids) > 0:
		found = ids[len(ids)-1:]
	case slices.Contains(ids, id):
		found = []string{id}
	case len(found) != 1 || id == "":
		return nil, words.Misuse{Err: fmt.Errorf("there is no run %q; see 'inspan eval list'", id)}
	}
	h, err := f.header(found[0])
	if err != nil {
		return nil, err
	}
	h.Trials, err = readLines[Trial](f.path(h.ID, trialsFile))
	return &h.Run, err
}

// IDs returns the ids of the runs, oldest first.
func (f Folder) IDs() (ids []string, err error) {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	began := map[string]time.Time{}
	for _, e := range entries {
		if h, err := f.header(e.Name()); err == nil {
			ids, began[h.ID] = append(ids, h.ID), h.Began
		}
	}
	slices.SortStableFunc(ids, func(a, b string) int { return began[a].Compare(began[b]) })
	return ids, err
}

// readLines reads the complete lines of a file; a missing file has none. A last line without an end was cut by
// a crash: it does not count.
func readLines[T any](path string) (list []T, err error) {
	data, err := keep.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		var one T
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		if err := json.Unmarshal(line, &one); err != nil {
			return list, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		list = append(list, one)
	}
	return list, nil
}

// appendLine appends a line to a file, whole or not at all, and syncs it. Callers in several processes take
// turns.
func appendLine(ctx context.Context, path string, one any) (err error) {
	raw, err := json.Marshal(one)
	if err != nil {
		return err
	}
	lock, err := keep.LockFile(ctx, path+".lock", time.Minute)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := cutTorn(f); err != nil {
		return err
	}
	if _, err := f.Write(append(raw, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// cutTorn removes a last line without an end.
func cutTorn(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return err
	}
	return f.Truncate(int64(bytes.LastIndexByte(data, '\n') + 1))
}

// look records that the held-out tasks of a suite were tried.
type look struct {
	Time   time.Time `json:"time"`
	Run    string    `json:"run"`
	Suite  string    `json:"suite"`
	Digest string    `json:"digest"`
	Config string    `json:"config_digest"`
}

// Looks returns how often held-out tasks of a suite with a name were tried.
func (f Folder) Looks(suite string) (int, error) {
	list, err := readLines[look](f.path(looksFile))
	return len(slices.DeleteFunc(list, func(l look) bool { return l.Suite != suite })), err
}

// cached returns the earlier trial of the same content; nil means there is none.
func (f Folder) cached(key string) *Trial {
	raw, err := keep.Read(f.path(cacheDir, key+".json"))
	if err != nil {
		return nil
	}
	var t Trial
	if json.Unmarshal(raw, &t) != nil {
		return nil
	}
	return &t
}

// keepTrial stores a trial for the same content.
func (f Folder) keepTrial(key string, t Trial) error {
	raw, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := keep.MakeDir(f.path(cacheDir)); err != nil {
		return err
	}
	return keep.Write(f.path(cacheDir, key+".json"), raw)
}

// performer identifies the program that performs trials, as builds of one version can differ, and the servers
// in its environment: models of one name differ between those.
func performer(program string) (string, error) {
	f, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return textDigest(string(sum.Sum(nil)), os.Getenv("INSPAN_BASE_URL"), os.Getenv("OLLAMA_HOST")), err
}

// ReadRun reads the folder of a run, such as one that was copied from another machine, and its planned number of
// tasks; 0 means the folder does not say.
func ReadRun(dir string) (r Run, tasks int, err error) {
	h, err := readHeader(dir)
	if err == nil {
		h.Trials, err = readLines[Trial](filepath.Join(dir, trialsFile))
	}
	if err != nil {
		err = fmt.Errorf("read run %s: %w", dir, err)
	}
	return h.Run, len(h.Tasks), err
}

// Tried returns how many configurations the held-out tasks of a suite, by its name, were tried with here.
func (f Folder) Tried(suite string) (int, error) {
	list, err := readLines[look](f.path(looksFile))
	configs := map[string]bool{}
	for _, l := range list {
		if l.Suite == suite {
			configs[l.Config] = true
		}
	}
	return len(configs), err
}

// HeldOut reports whether a session is a trial of a held-out run.
func (f Folder) HeldOut(session string) (bool, error) {
	ids, err := f.IDs()
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		run, err := f.Open(id)
		if err != nil {
			return false, err
		}
		if run.Split == HeldOut && slices.ContainsFunc(run.Trials, func(t Trial) bool { return t.Session == session }) {
			return true, nil
		}
	}
	return false, nil
}
