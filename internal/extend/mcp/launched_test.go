//go:build linux

package mcp_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
)

// walled is a Manager whose servers run in the walls of a session, for a person with a
// home of their own. The registries are reached wherever they are.
func walled(t *testing.T, servers func(home string) []mcp.Server) (h *house, home string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home = filepath.Join(dir, "home")
	for _, name := range []string{home, filepath.Join(dir, "ws")} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	guard := &netguard.Guard{MaxBytes: 1 << 30}
	for _, host := range []string{"pypi.org", "files.pythonhosted.org", "registry.npmjs.org"} {
		addresses, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", host)
		if err != nil {
			t.Skip(err)
		}
		for _, at := range addresses {
			guard.Local = append(guard.Local, netip.PrefixFrom(at.Unmap(), at.Unmap().BitLen()))
		}
	}
	state := filepath.Join(home, ".local", "state", "inspan")
	env, err := sandbox.Local(filepath.Join(dir, "ws"), nil, sandbox.Options{
		Self: self, Map: places.Map{Home: home, Settings: filepath.Join(home, ".config", "inspan"), State: []string{state}}.Indexed(),
		State: state, Guard: guard,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	if !env.Walls.Workspace {
		t.Skip("no walls here: " + env.Walls.Why)
	}
	h = &house{t: t}
	h.Manager = &mcp.Manager{Env: env, Servers: servers(home)}
	t.Cleanup(h.Close)
	return h, home
}

// does runs a program as the person does, who has no walls.
func does(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Skipf("%s %q: %v: %s", program, args, err, out)
	}
}

// TestUvx starts a published server by uvx, for a person who has used uv before.
func TestUvx(t *testing.T) {
	bin := testkit.Uv(t)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	h, home := walled(t, func(string) []mcp.Server {
		return []mcp.Server{{Name: "time", Source: mcp.User, Command: []string{"uvx", "mcp-server-time", "--local-timezone", "Europe/Lisbon"}}}
	})
	does(t, filepath.Join(bin, "uvx"), "pycowsay", "hello")
	tools := filepath.Join(home, ".local", "share", "uv", "tools")
	if _, err := os.Stat(tools); err != nil {
		t.Fatal(err)
	}
	h.ready("time")
	res, err := h.call(t.Context(), "mcp__time__get_current_time", `{"timezone":"Europe/Lisbon"}`)
	if err != nil || !strings.Contains(text(res), "Europe/Lisbon") {
		t.Errorf("%s, %v, %+v", text(res), err, h.status("time"))
	}
	if left, err := filepath.Glob(filepath.Join(tools, "mcp*")); err != nil || len(left) > 0 {
		t.Errorf("the box has written %q, %v", left, err)
	}
}

// ready starts a server and waits until it is there, or tells why it is not.
func (h *house) ready(name string) {
	h.t.Helper()
	h.Start()
	h.until(name, func() bool { s := h.status(name).State; return s == mcp.Ready || s == mcp.Failed })
	if s := h.status(name); s.State != mcp.Ready {
		h.t.Errorf("%+v", s)
	}
}

// fill writes files below a folder.
func fill(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestQuickstarts starts servers as the tutorials of the protocol have people write them,
// in folders of their homes.
func TestQuickstarts(t *testing.T) {
	modules, bin := peers(t), testkit.Uv(t)
	node := filepath.Join(modules, ".bin", "node22")
	var project string
	h, home := walled(t, func(home string) []mcp.Server {
		project = filepath.Join(home, "src", "w")
		return []mcp.Server{
			{Name: "node", Source: mcp.User, Command: []string{node, filepath.Join(home, "src", "weather", "build", "index.js")}},
			{Name: "uv", Source: mcp.User, Command: []string{"uv", "--directory", project, "run", "weather.py"}},
			{Name: "venv", Source: mcp.User, Command: []string{
				filepath.Join(project, ".venv", "bin", "mcp-server-time"),
				"--local-timezone", "UTC",
			}},
			{Name: "linked", Source: mcp.User, Command: []string{filepath.Join(home, ".local", "bin", "timed"), "--local-timezone", "UTC"}},
			{Name: "found", Source: mcp.User, Command: []string{"timed", "--local-timezone", "UTC"}},
			{
				Name: "memory", Source: mcp.User, Command: npm(modules, "memory"),
				Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(home, "notes", "memory.json")}, Write: []string{filepath.Join(home, "notes")},
			},
		}
	})
	t.Setenv("PATH", filepath.Join(home, ".local", "bin")+":"+bin+":"+os.Getenv("PATH"))
	weather := filepath.Join(home, "src", "weather")
	fill(t, home, map[string]string{
		"notes/readme": "", "src/weather/package.json": `{"name":"weather","type":"module"}`,
		"src/weather/build/index.js": "import { McpServer } from \"@modelcontextprotocol/sdk/server/mcp.js\";\n" +
			"import { StdioServerTransport } from \"@modelcontextprotocol/sdk/server/stdio.js\";\n" +
			"const server = new McpServer({ name: \"weather\", version: \"1\" });\n" +
			"server.tool(\"forecast\", async () => ({ content: [{ type: \"text\", text: \"rain\" }] }));\n" +
			"await server.connect(new StdioServerTransport());\n",
		"src/w/pyproject.toml": "[project]\nname = \"w\"\nversion = \"0.1.0\"\nrequires-python = \">=3.10\"\n",
		"src/w/weather.py": "from mcp.server.fastmcp import FastMCP\n\nmcp = FastMCP(\"weather\")\n\n@mcp.tool()\ndef forecast() -> str:\n" +
			"    return \"rain\"\n\nmcp.run()\n",
	})
	does(t, "npm", "install", "--prefix", weather, "--no-fund", "--no-audit", "@modelcontextprotocol/sdk@1")
	does(t, filepath.Join(bin, "uv"), "--directory", project, "add", "mcp<2", "mcp-server-time")
	if err := errors.Join(os.MkdirAll(filepath.Join(home, ".local", "bin"), 0o755),
		os.Symlink(filepath.Join(project, ".venv", "bin", "mcp-server-time"), filepath.Join(home, ".local", "bin", "timed"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node", "uv", "venv", "linked", "found", "memory"} {
		h.ready(name)
	}
	for _, name := range []string{"mcp__node__forecast", "mcp__uv__forecast"} {
		if res, err := h.call(t.Context(), name, `{}`); err != nil || !strings.Contains(text(res), "rain") {
			t.Errorf("%s: %s, %v", name, text(res), err)
		}
	}
	if res, err := h.call(t.Context(), "mcp__memory__create_entities",
		`{"entities":[{"name":"heron","entityType":"bird","observations":["it wades"]}]}`); err != nil {
		t.Errorf("%s, %v", text(res), err)
	}
	if kept, err := os.ReadFile(filepath.Join(home, "notes", "memory.json")); err != nil || !strings.Contains(string(kept), "wades") {
		t.Errorf("%q, %v", kept, err)
	}
}

// TestWhyItFails checks that a program's error is visible wherever it is in the output, and how a folder is opened to
// it.
func TestWhyItFails(t *testing.T) {
	h, _ := walled(t, func(string) []mcp.Server {
		noisy := "echo Cannot find module first >&2; i=0; while [ $i -lt 3000 ]; do echo '    at noise.js' >&2; i=$((i+1)); done; echo Node " +
			"v22 >&2; exit 1"
		return []mcp.Server{
			{Name: "noisy", Source: mcp.User, Command: []string{"sh", "-c", noisy}},
			{Name: "plain", Source: mcp.User, Command: []string{"sh", "-c", "echo bad configuration >&2; exit 1"}},
		}
	})
	h.Start()
	h.until("the ends", func() bool { return h.status("noisy").State == mcp.Failed && h.status("plain").State == mcp.Failed })
	why := h.status("noisy").Why
	for _, want := range []string{"Cannot find module first", "Node v22", "--read", "--write"} {
		if !strings.Contains(why, want) {
			t.Errorf("there is no %q in %s", want, why)
		}
	}
	if why := h.status("plain").Why; strings.Contains(why, "--read") || !strings.Contains(why, "bad configuration") {
		t.Error(why)
	}
}
