package server_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

// as is the process for the holder of another token.
func (p *process) as(token string) *process {
	v := *p
	v.token = token
	return &v
}

// call sends a request that must be answered with a status, and decodes the answer.
func (p *process) call(method, path string, body any, status int, into any) {
	p.t.Helper()
	got, raw, err := p.send(method, path, "", body)
	if err != nil || got != status {
		p.t.Fatalf("%s %s: %d %s, want %d: %v\n%s", method, path, got, raw, status, err, p.printed)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			p.t.Fatalf("%s %s: %v: %s", method, path, err, raw)
		}
	}
}

// identity makes an identity and returns the process for it.
func (p *process) identity(tenant string, role server.Role) *process {
	p.t.Helper()
	var made struct{ Token string }
	name := "ann-" + rand.Text() // a tenant has each name once
	p.call("POST", "/api/v1/identities", map[string]any{"name": name, "tenant": tenant, "role": role}, http.StatusCreated, &made)
	return p.as(made.Token)
}

func (p *process) submit(spec server.Spec) (id string) {
	p.t.Helper()
	var task server.Task
	p.call("POST", "/api/v1/tasks", spec, http.StatusCreated, &task)
	return task.ID
}

// attend waits until a task is completed, and meanwhile approves everything it may.
func (p *process) attend(id string) server.Task {
	p.t.Helper()
	for {
		task := p.until(id, server.StageCompleted, server.StageWaiting)
		if task.Stage == server.StageCompleted {
			return task
		}
		p.approve(id)
	}
}

func (p *process) until(id string, stages ...event.Stage) (task server.Task) {
	p.t.Helper()
	testkit.WaitFor(p.t, fmt.Sprintf("task %s to be %v", id, stages), func() bool {
		p.call("GET", "/api/v1/tasks/"+id, nil, http.StatusOK, &task)
		return slices.Contains(stages, task.Stage)
	}, func() string { return fmt.Sprintf("it is %s (%s)", task.Stage, task.Why) }, p.stacks)
	return task
}

// said is the whole log of a session, and of those that work for it: everything that its models have seen.
func (p *process) said(session string) (all string) {
	p.t.Helper()
	logs, err := filepath.Glob(filepath.Join(p.home, "state", "sessions", session+"*", "log.jsonl"))
	if err != nil || len(logs) == 0 {
		p.t.Fatal("no log of session ", session, err)
	}
	for _, path := range logs {
		raw, err := os.ReadFile(path)
		if err != nil {
			p.t.Fatal(err)
		}
		all += string(raw)
	}
	return all
}

// treasure is a text that an agent of another tenant must not see. It is written in two parts, so that no prompt
// contains it.
const treasure = "TREASURE-of-red"

// TestWalls checks that no agent reaches the workspace of another task, or its memory: not by file tools, not by
// commands that are proven to only read, not in the sandbox, and not with the approval of its tenant. The owner's token
// is closed in the same way, wherever its file is. Without a sandbox for commands, a tenant can't approve any, and mode
// yolo is for tasks without a tenant.
func TestWalls(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.token = treasure + "-and-of-nobody-else-in-the-world"
	if err := os.WriteFile(p.tokenFile(), []byte(p.token), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start("--keep", "always", "--mode", "yolo", "--token-file", p.tokenFile())
	p.tryWalls(tool.ModeAuto, tool.ModeAsk, "")
	p.identity("green", server.Admin).call("POST", "/api/v1/tasks", server.Spec{Prompt: "x", Mode: tool.ModeYolo}, http.StatusBadRequest, nil)
	p.kill()
	p.settings("[sandbox]\noff = true\n")
	p.start("--keep", "always", "--token-file", p.tokenFile())
	if !strings.Contains(p.printed.String(), "commands run without a sandbox: it is switched off") {
		t.Errorf("the operator is told %q", p.printed)
	}
	p.tryWalls(tool.ModeAuto)
}

// tokenFile is a file for the owner's token that is not where the server keeps it.
func (p *process) tokenFile() string { return filepath.Join(p.home, "card.txt") }

// settings writes the settings file.
func (p *process) settings(text string) {
	p.t.Helper()
	path := filepath.Join(p.home, "config", "config.toml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// tryWalls has the agents of one tenant try to reach another tenant's files, in all modes.
func (p *process) tryWalls(modes ...tool.Mode) {
	t := p.t.(*testing.T)
	t.Helper()
	red, blue := p.identity("red", server.Admin), p.identity("blue", server.Admin)
	arg := func(name string, args map[string]any) string {
		raw, _ := json.Marshal(args)
		return "call: " + name + " " + string(raw)
	}
	p.attend(red.submit(server.Spec{Prompt: arg("memory", map[string]any{"action": "remember", "scope": "user", "text": treasure})}))
	theirs := p.attend(red.submit(server.Spec{Prompt: "bash: git init -q . && echo TREASURE'-of-'red > safe.txt && git add . && " +
		"git -c user.name=a -c user.email=a@b.c commit -qm TREASURE'-of-'red"}))
	dir := theirs.Workspace
	safe := filepath.Join(dir, "safe.txt")
	if raw, err := os.ReadFile(safe); err != nil || string(raw) != treasure+"\n" {
		t.Fatalf("%v: %q", err, raw)
	}
	up, copies := filepath.Dir(dir), filepath.Join(p.home, ".cache", "inspan", "worktrees")
	if err := os.MkdirAll(filepath.Join(copies, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(copies, "x", "safe.txt"), []byte(treasure), 0o600); err != nil {
		t.Fatal(err)
	}
	ways := map[string]string{
		"read tool":      "read: " + safe,
		"relative":       "read: ../" + filepath.Base(dir) + "/safe.txt",
		"search tool":    arg("search_files", map[string]any{"pattern": "TREAS", "path": dir}),
		"search above":   arg("search_files", map[string]any{"pattern": "TREAS", "path": up}),
		"list tool":      arg("list_files", map[string]any{"path": dir}),
		"list above":     arg("list_files", map[string]any{"path": up}),
		"find tool":      arg("find_files", map[string]any{"pattern": "**/safe.txt", "path": up}),
		"write tool":     arg("write_file", map[string]any{"path": safe, "content": "mine"}),
		"delete tool":    arg("delete_file", map[string]any{"path": safe}),
		"git tool":       arg("git", map[string]any{"args": []string{"-C", dir, "log"}}),
		"cat":            "bash: cat " + safe,
		"grep":           "bash: grep -r TREAS " + up,
		"ls":             "bash: ls -la " + dir,
		"find":           "bash: find " + up + " -name 'safe*'",
		"find from root": "bash: find / -name 'safe.txt' -exec cat {} +",
		"git -C":         "bash: git -C " + dir + " log",
		"git --git-dir":  "bash: git --git-dir " + dir + "/.git show",
		"git alternates": "bash: git init -q . && echo " +
			dir + "/.git/objects > .git/objects/info/alternates; git log --all; cat .git/objects/info/alternates",
		"git file":         "bash: echo 'gitdir: " + dir + "/.git' > .git; git log",
		"git clone":        "bash: git clone -q " + dir + " got; cat got/safe.txt",
		"cp":               "bash: cp " + safe + " got.txt; cat got.txt",
		"cp -r above":      "bash: cp -r " + up + " got; cat got/*/safe.txt",
		"tar":              "bash: tar cf - " + dir + " | cat",
		"a link and read":  "bash: ln -s " + dir + " link\nread: link/safe.txt",
		"a link and cat":   "bash: ln -s " + safe + " link; cat link",
		"a link and write": "bash: ln -s " + safe + " link; echo mine > link",
		"a hard link":      "bash: ln " + safe + " link; cat link",
		"an interpreter":   "bash: python3 -c \"print(open('" + safe + "').read())\"",
		"a redirect":       "bash: while read l; do echo $l; done < " + safe,
		"overwrite":        "bash: echo mine > " + safe,
		"cd":               "bash: cd " + dir + " && cat safe.txt",
		"of a process":     "bash: cat /proc/*/cwd/safe.txt /proc/*/root" + safe,
		"outside":          arg("bash", map[string]any{"command": "cat " + safe, "outside_sandbox": true}),
		"copies of agents": "read: " + filepath.Join(copies, "x", "safe.txt"),
		"copies, cat":      "bash: cat " + filepath.Join(copies, "x", "safe.txt"),
		"token, read":      "read: " + p.tokenFile(),
		"token, cat":       "bash: cat " + p.tokenFile(),
		"token, python":    "bash: python3 -c \"print(open('" + p.tokenFile() + "').read())\"",
		"past sessions":    arg("memory", map[string]any{"action": "search", "query": "TREAS*"}),
		"memory":           arg("memory", map[string]any{"action": "list"}),
		"state":            "bash: cat " + filepath.Join(p.home, "state", "sessions", theirs.Session, "log.jsonl"),
	}
	tried := map[string]string{}
	for name, way := range ways {
		for _, mode := range modes {
			tried[fmt.Sprint(name, " ", mode)] = blue.submit(server.Spec{Prompt: way, Mode: mode})
		}
	}
	for name, id := range tried {
		t.Run(name, func(t *testing.T) {
			b := *blue
			b.t = t
			task := b.attend(id)
			if strings.Contains(b.said(task.Session), treasure) {
				t.Error("it saw what another tenant has")
			}
			if raw, err := os.ReadFile(safe); err != nil || string(raw) != treasure+"\n" {
				t.Fatalf("%v: it changed what another tenant has: %q", err, raw)
			}
		})
	}
}

// TestOthersProcesses checks that no command sees other processes of the machine and their arguments, in the boxes of
// any mode.
func TestOthersProcesses(t *testing.T) {
	p := newProcess(t)
	p.start("--keep", "always")
	blue := p.identity("blue", server.Admin)
	const all = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
	for _, mode := range []tool.Mode{tool.ModePlan, tool.ModeAuto} {
		for _, way := range []string{"bash: " + all, "bash: ps -ef", "bash: touch x; " + all} {
			said := blue.said(blue.attend(blue.submit(server.Spec{Prompt: way, Mode: mode})).Session)
			if strings.Contains(said, p.addr) {
				t.Errorf("%s in mode %s shows the arguments of the server", way, mode)
			}
		}
	}
}

// approve has the tenant approve everything it may, and deny the rest.
func (p *process) approve(task string) {
	p.t.Helper()
	var list struct{ Approvals []server.Approval }
	p.call("GET", "/api/v1/approvals", nil, http.StatusOK, &list)
	for _, a := range list.Approvals {
		if a.Task != task {
			continue
		}
		path := "/api/v1/approvals/" + task + "/" + a.ID
		status, raw, err := p.send("POST", path, "", map[string]any{"decision": "allow"})
		if err == nil && status == http.StatusForbidden {
			status, raw, err = p.send("POST", path, "", map[string]any{"decision": "deny"})
		}
		if err != nil || status != http.StatusOK {
			p.t.Fatalf("%d %s: %v", status, raw, err)
		}
	}
}

// TestOwnWorkspace checks that the walls leave an agent its own workspace, with git, with agents that work for it in a
// copy, and with the machine's public files.
func TestOwnWorkspace(t *testing.T) {
	p := newProcess(t)
	p.start("--keep", "always")
	blue := p.identity("blue", server.Admin)
	for name, way := range map[string]string{
		"file tools": "call: write_file {\"path\":\"a.txt\",\"content\":\"mi\\nne\\n\"}\n" +
			"read: a.txt\ncall: search_files {\"pattern\":\"mi\"}\nbash: printf MI; echo NE",
		"git": "bash: git init -q .\nbash: echo x > a; git add . && git -c user.name=a -c user.email=a@b.c commit -qm first\n" +
			"bash: git log | grep -q first && printf MI; echo NE",
		"system":   "bash: cat /etc/os-release > /dev/null && go version > /dev/null && printf MI; echo NE",
		"a folder": "bash: mkdir -p a/b && cd a/b && echo x > c\nbash: cat c && ls .. && cat ../b/c && printf MI; echo NE",
		"agent in a copy": "bash: git init -q .\nbash: echo x > a; git add . && git -c user.name=a -c user.email=a@b.c commit -qm first\n" +
			"call: spawn_agent {\"task\":\"bash: git log | grep -q first && cat a && printf MI; echo NE\",\"isolation\":\"worktree\"}",
	} {
		t.Run(name, func(t *testing.T) {
			b := *blue
			b.t = t
			task := b.attend(b.submit(server.Spec{Prompt: way}))
			if said := b.said(task.Session); !strings.Contains(said, "MINE") {
				t.Errorf("it can't work in its workspace:\n%s", said)
			}
		})
	}
}
