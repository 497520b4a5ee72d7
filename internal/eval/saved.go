package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// ReadRun reads the folder of a run, such as one that was copied from another machine.
func ReadRun(dir string) (Run, error) {
	var r Run
	raw, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read run %s: %w", dir, err)
	}
	raw, err = os.ReadFile(filepath.Join(dir, "trials.jsonl"))
	if err != nil {
		return r, fmt.Errorf("read run %s: %w", dir, err)
	}
	n := 0
	for line := range bytes.Lines(raw[:bytes.LastIndexByte(raw, '\n')+1]) { // the last one may be on its way
		var t Trial
		if n++; json.Unmarshal(line, &t) != nil {
			return r, fmt.Errorf("read run %s: line %d of its trials is not a trial", dir, n)
		}
		r.Trials = append(r.Trials, t)
	}
	return r, nil
}
