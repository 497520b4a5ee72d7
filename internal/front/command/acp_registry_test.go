package command

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan"
)

// registryRules are the constraints of agent.schema.json, and of the checks in build_registry.py and CONTRIBUTING.md, of
// github.com/agentclientprotocol/registry, as of commit 655791de. A checksum of an archive is optional.
const registryRules = `{
	"type": "object",
	"required": ["id", "name", "version", "description", "license_url", "distribution"],
	"additionalProperties": false,
	"properties": {
		"id": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
		"name": {"type": "string", "minLength": 1},
		"version": {"type": "string", "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+$"},
		"description": {"type": "string", "minLength": 1},
		"repository": {"type": "string", "pattern": "^https://"},
		"website": {"type": "string", "pattern": "^https://"},
		"authors": {"type": "array", "items": {"type": "string"}},
		"license": {"type": "string"},
		"license_url": {"type": "string", "pattern": "^https://"},
		"distribution": {
			"type": "object",
			"required": ["binary"],
			"additionalProperties": false,
			"properties": {"binary": {
				"type": "object",
				"propertyNames": {"enum": [
					"darwin-aarch64", "darwin-x86_64", "linux-aarch64", "linux-x86_64", "windows-aarch64", "windows-x86_64"
				]},
				"additionalProperties": {
					"type": "object",
					"required": ["archive", "cmd"],
					"additionalProperties": false,
					"properties": {
						"archive": {"type": "string", "pattern": "^https://"},
						"sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
						"cmd": {"type": "string"},
						"args": {"type": "array", "items": {"type": "string"}},
						"env": {"type": "object", "additionalProperties": {"type": "string"}}
					}
				}
			}}
		}
	}
}`

// registryEntry is an agent.json of the registry of ACP agents.
type registryEntry struct {
	ID           string `json:"id"`
	Version      string `json:"version"`
	Repository   string `json:"repository"`
	License      string `json:"license"`
	Distribution struct {
		Binary map[string]struct {
			Archive string   `json:"archive"`
			Command string   `json:"cmd"`
			Args    []string `json:"args"`
		} `json:"binary"`
	} `json:"distribution"`
}

// TestRegistryEntry holds our entry of the registry of ACP agents against the registry's rules, our releases and the
// command.
func TestRegistryEntry(t *testing.T) {
	dir := "../../../deploy/acp-registry/inspan"
	raw, err := os.ReadFile(filepath.Join(dir, "agent.json"))
	if err != nil {
		t.Fatal(err)
	}
	fits(t, raw)
	var e registryEntry
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	if e.ID != path.Base(dir) || e.Version != inspan.Version || e.License != "Apache-2.0" {
		t.Errorf("the entry is %s %s, %s", e.ID, e.Version, e.License)
	}
	script, err := os.ReadFile("../../../scripts/release")
	if err != nil {
		t.Fatal(err)
	}
	_, targets, _ := strings.Cut(string(script), "TARGETS=${*:-")
	targets, _, _ = strings.Cut(targets, "}")
	built := strings.Fields(targets)
	if len(built) != len(e.Distribution.Binary) {
		t.Errorf("%d systems of %v", len(e.Distribution.Binary), built)
	}
	for _, target := range built {
		system, processor, _ := strings.Cut(target, "/")
		b, ok := e.Distribution.Binary[system+"-"+map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[processor]]
		if !ok {
			t.Errorf("%s is missing", target)
		}
		folder, archive, binary := fmt.Sprintf("inspan_%s_%s_%s", e.Version, system, processor), ".tar.gz", "inspan"
		if system == "windows" {
			archive, binary = ".zip", "inspan.exe"
		}
		want := e.Repository + "/releases/download/v" + e.Version + "/" + folder + archive
		if b.Archive != want || b.Command != "./"+folder+"/"+binary || !slices.Equal(b.Args, []string{"acp"}) {
			t.Errorf("%s: %+v, want %s", target, b, want)
		}
		logsIn(t, b.Args)
	}
	icon, err := os.ReadFile(filepath.Join(dir, "icon.svg"))
	if err != nil {
		t.Fatal(err)
	}
	fitsIcon(t, icon)
}

// fits holds an entry against the rules of the registry.
func fits(t *testing.T, raw []byte) {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(registryRules), &s); err != nil {
		t.Fatal(err)
	}
	rules, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var entry any
	if err := json.Unmarshal(raw, &entry); err != nil {
		t.Fatal(err)
	}
	if err := rules.Validate(entry); err != nil {
		t.Error(err)
	}
	for _, word := range strings.Split(string(raw), `"`) {
		if u, err := url.Parse(word); strings.HasPrefix(word, "https:") && (err != nil || u.Host == "" || strings.Contains(word, "/latest/")) {
			t.Errorf("%s is no lasting address", word)
		}
	}
}

// fitsIcon holds an icon against the rules of the registry: 16 by 16, in the colour of the text around it.
func fitsIcon(t *testing.T, raw []byte) {
	t.Helper()
	coloured := false
	dec := xml.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range start.Attr {
			switch a.Name.Local {
			case "fill", "stroke":
				coloured = coloured || a.Value == "currentColor"
				if !slices.Contains([]string{"currentColor", "none", "inherit"}, a.Value) {
					t.Errorf("the icon has the colour %s", a.Value)
				}
			case "width", "height":
				if start.Name.Local == "svg" && a.Value != "16" {
					t.Errorf("the %s of the icon is %s", a.Name.Local, a.Value)
				}
			case "style":
				t.Errorf("the icon has the style %s", a.Value)
			}
		}
	}
	if !coloured {
		t.Error("the icon does not use currentColor")
	}
}

// logsIn checks, as the registry does, that the command offers a login in the first answer where nothing is set up,
// and that the command takes the options of that login.
func logsIn(t *testing.T, args []string) {
	t.Helper()
	for _, set := range os.Environ() {
		if name, _, _ := strings.Cut(set, "="); strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("INSPAN_CONFIG_DIR", t.TempDir())
	t.Setenv("INSPAN_STATE_DIR", t.TempDir())
	var out, said bytes.Buffer
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true,"auth":{"terminal":true}}}}` + "\n"
	if code := (Program{}).Main(args, strings.NewReader(in), &out, &said); code != 0 {
		t.Fatalf("%v: code %d, %s", args, code, said.String())
	}
	var answer struct {
		Result struct {
			AuthMethods []struct {
				Type string   `json:"type"`
				Args []string `json:"args"`
			} `json:"authMethods"`
		} `json:"result"`
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	ways := 0
	for _, way := range answer.Result.AuthMethods {
		switch way.Type {
		case "", "agent":
		case "terminal":
			ways++
			for _, args := range [][]string{slices.Concat(args, way.Args), way.Args} { // clients add them, or replace args
				code, _, errs := prints(t, args...)
				if code == 0 || !strings.Contains(errs, "inspan setup needs a terminal") {
					t.Errorf("%v: code %d, %s", args, code, errs)
				}
			}
		default:
			t.Errorf("the registry knows no login of type %q", way.Type)
		}
	}
	if ways != 1 {
		t.Errorf("%d logins in a terminal: %s", ways, out.String())
	}
}
