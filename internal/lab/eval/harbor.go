package eval

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/config"
)

// The parts of a task folder of Harbor, which Terminal-Bench has too.
const (
	harborTests  = "tests"
	harborScript = "test.sh"
	harborEnv    = "environment"
	harborReward = "reward.txt"
)

// harborSpec has the parts of Harbor's task.toml that we need. The rest is for Harbor: this is the one foreign
// format, so unknown keys are not an error.
type harborSpec struct {
	Metadata struct {
		Tags     []string `toml:"tags"`
		Category string   `toml:"category"`
	} `toml:"metadata"`
	Agent struct {
		Timeout float64 `toml:"timeout_sec"`
	} `toml:"agent"`
	Verifier struct {
		Timeout float64 `toml:"timeout_sec"`
	} `toml:"verifier"`
	Environment struct {
		Image string `toml:"docker_image"`
	} `toml:"environment"`
}

// openHarbor reads a task folder of Harbor. Its environment is an image, or the files next to a Dockerfile whose
// only steps copy them; for all others use the adapter for Harbor.
func openHarbor(dir string) (*Task, error) {
	at := filepath.Join(dir, taskFile)
	data, err := config.ReadAtMost(at, mostSpec)
	if err != nil {
		return nil, err
	}
	var spec harborSpec
	if err := config.Decode(at, data, &spec); err != nil {
		return nil, err
	}
	prompt, err := config.ReadAtMost(filepath.Join(dir, askFile), mostText)
	if err != nil {
		return nil, err
	}
	t := &Task{
		ID: filepath.Base(dir), Tags: spec.Metadata.Tags, Prompt: strings.TrimSpace(string(prompt)),
		Image: spec.Environment.Image, MaxTime: seconds(spec.Agent.Timeout), Moved: true,
		Check: Checker{
			Folder: filepath.Join(dir, harborTests), Commands: [][]string{{"bash", "$CHECK/" + harborScript}},
			MaxTime: seconds(spec.Verifier.Timeout), Reward: harborReward,
		},
	}
	if spec.Metadata.Category != "" {
		t.Tags = append(t.Tags, spec.Metadata.Category)
	}
	if err := t.harborFiles(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := t.validate(); err != nil {
		return nil, config.Faulty(at, err)
	}
	t.Digest, err = folderDigest(dir, nil)
	return t, err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// harborFiles reads the files in the environment of the task.
func (t *Task) harborFiles(dir string) error {
	folder := filepath.Join(dir, harborEnv)
	text, err := keep.Read(filepath.Join(folder, "Dockerfile"))
	if err != nil {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			t.Files = folder
		}
		return nil
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		switch step := strings.ToUpper(words[0]); {
		case step == "FROM":
			t.Image = cmp.Or(t.Image, words[1])
		case step == "WORKDIR":
		case (step == "COPY" || step == "ADD") && len(words) == 3 && (words[1] == "." || words[1] == "./"):
			t.Files = folder
		default:
			return errors.New("its Dockerfile does more than copy files; run it by Harbor with our adapter, deploy/harbor")
		}
	}
	return nil
}
