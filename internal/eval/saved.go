package eval

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// ReadRun reads the folder of a run, such as one that was copied from another machine.
func ReadRun(dir string) (Run, error) {
	var r Run
	raw, err := os.ReadFile(filepath.Join(dir, runFile))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read run %s: %w", dir, err)
	}
	if r.Trials, err = readLines[Trial](filepath.Join(dir, trialsFile)); err != nil {
		return r, fmt.Errorf("read run %s: %w", dir, err)
	}
	return r, nil
}
