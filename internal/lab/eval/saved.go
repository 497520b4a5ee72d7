package eval

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/internal/base/keep"
)

// ReadRun reads the folder of a run, such as one that was copied from another machine, and its planned number of
// tasks; 0 means the folder does not say.
func ReadRun(dir string) (r Run, tasks int, err error) {
	var h header
	raw, err := keep.Read(filepath.Join(dir, runFile))
	if err == nil {
		err = json.Unmarshal(raw, &h)
	}
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
