package skill

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/tool"
)

// Sources of roles.
const (
	FromProject = "project" // they came with the workspace
	FromUser    = "user"    // they are the person's own
)

const (
	// MaxRoles is how many role files of one folder are read.
	MaxRoles = 200

	mostRoleName = 64  // bytes
	mostModel    = 200 // bytes
)

//go:embed roles/*.md
var builtinRoles embed.FS

// Role is a kind of subagent. Its texts except Prompt are one line each, without invisible characters. Don't
// modify it.
type Role struct {
	Name        string // letters, digits, - and _
	Description string // when to use it
	// Tools are the tools it gets, as written: "Read", "bash", "Agent(worker)". Nil means all; empty, but not
	// nil, means none.
	Tools   []string
	Without []string // tools that it does not get, as written
	// Model is empty or "inherit" for the parent's model; otherwise as written: "haiku", "sonnet", "opus",
	// "small", or a route such as "provider/model".
	Model      string
	Mode       tool.Mode // plan, ask or edit; empty means the parent's
	MaxTurns   int       // zero means no limit of its own
	Effort     string    // low, medium or high; empty means the parent's
	Skills     []string  // skills whose instructions it gets at the start
	Isolation  string    // worktree, sandbox, or empty for none
	Background bool      // the parent does not wait
	Throwaway  bool      // its commands may run in throwaway copies of the workspace; Mode is plan
	Prompt     string    // its instructions
	Hooks      []byte    // a settings file of Claude Code with its hooks; nil if it has none
	Source     string    // where it is from, for people
	Problems   []string  // what the file asks for and does not get
}

// Roles reads the roles of folders, and the built-in ones, sorted by name. Of several with the same name, the one
// in the first folder counts. Links and subfolders are ignored. The warnings name the files that can't be used.
func Roles(folders []Folder) (roles []Role, warnings []string) {
	s := shelf{kind: "kind of agent"}
	m := markdown[Role]{files: "kinds of agents", most: MaxRoles, depth: 1, parse: ParseRole, name: func(r Role) string { return r.Name }}
	roles = m.find(&s, folders)
	for _, r := range BuiltinRoles() {
		if s.put(r.Name, spot{}) {
			roles = append(roles, r)
		}
	}
	slices.SortStableFunc(roles, func(a, b Role) int { return strings.Compare(a.Name, b.Name) })
	return roles, s.warnings
}

// BuiltinRoles returns the built-in roles by name: explore, plan, reviewer and worker.
func BuiltinRoles() (roles []Role) {
	entries, err := builtinRoles.ReadDir("roles")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, e := range entries {
		data, err := builtinRoles.ReadFile("roles/" + e.Name())
		if err != nil {
			panic(err)
		}
		r, err := ParseRole(e.Name(), builtIn, data)
		if err != nil {
			panic(err)
		}
		roles = append(roles, r)
	}
	return roles
}

// ParseRole reads a file in the format of Claude Code's agents/*.md. File is its name or path, with slashes; it
// names the role if the front matter has no usable name.
//
// A file can only narrow what an agent may do. Requests for more rights than the parent has are ignored and
// reported as a problem. If a restriction can't be understood, the file is unusable.
func ParseRole(file, source string, data []byte) (Role, error) {
	head, body, failed, err := read(data)
	p := parser{head: map[string]any{}, role: Role{Source: source, Prompt: body}}
	switch {
	case err != nil:
		return Role{}, err
	case len(head) == 0 && failed != nil:
		return Role{}, failed
	case head["name"] == nil && head["description"] == nil:
		return Role{}, errors.New("its front matter has no name and no description, so it is not a kind of agent")
	case body == "":
		return Role{}, errors.New("it has no text")
	case failed != nil:
		p.problem("%v", failed)
	}
	return p.parse(head, path.Base(file))
}

// ReadKinds reads kinds of agents from a JSON object, as --agents of Claude Code takes it: by name, the fields of
// the front matter, with the text in the field prompt. They are sorted by name.
func ReadKinds(data []byte) (kinds []Role, err error) {
	var byName map[string]map[string]any
	if err := foreign.Unmarshal(data, &byName); err != nil {
		return nil, fmt.Errorf(`want JSON such as {"reviewer": {"description": "...", "prompt": "..."}}: %w`, err)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		head := byName[name]
		prompt, _ := head["prompt"].(string)
		if strings.TrimSpace(prompt) == "" || line(head["description"]) == "" {
			return nil, fmt.Errorf("the agent %q needs a description and a prompt", text.Cut(name, mostRoleName))
		}
		delete(head, "prompt")
		head["name"] = name
		p := parser{head: map[string]any{}, role: Role{Source: FromUser, Prompt: prompt}}
		kind, err := p.parse(head, name)
		if err == nil && kind.Name != name {
			err = fmt.Errorf("use at most %d letters, digits, - and _", mostRoleName)
		}
		if err != nil {
			return nil, fmt.Errorf("the agent %q: %w", text.Cut(name, mostRoleName), err)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// Over returns the kinds of both lists. Those of the first replace others of the same name.
func Over(first, others []Role) []Role {
	return slices.Concat(first, slices.DeleteFunc(slices.Clone(others), func(other Role) bool {
		return slices.ContainsFunc(first, func(r Role) bool { return strings.EqualFold(r.Name, other.Name) })
	}))
}

// parse reads the front matter of a file, whose text is in the role.
func (p *parser) parse(head map[string]any, file string) (Role, error) {
	p.fold(head)
	if err := p.name(file); err != nil {
		return Role{}, err
	}
	p.texts()
	p.limits()
	p.mode()
	p.throwaway()
	p.memory()
	return p.role, cmp.Or(p.isolation(), p.hooks(), p.servers())
}

// parser fills a role.
type parser struct {
	head map[string]any // by key in lower case, without - and _
	role Role
}

func (p *parser) problem(format string, args ...any) {
	p.role.Problems = append(p.role.Problems, text.Line(fmt.Sprintf(format, args...)))
}

// fold normalises keys as others write them, and reports unknown ones.
func (p *parser) fold(head map[string]any) {
	known := []string{
		"name", "description", "tools", "disallowedtools", "model", "permissionmode", "maxturns", "effort", "skills", "isolation", "background",
		"throwaway", "hooks", "mcpservers", "memory",
		"color", "initialprompt", // about its looks, and about agents that no one starts
	}
	for _, key := range slices.Sorted(maps.Keys(head)) {
		folded := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(key))
		switch _, twice := p.head[folded]; {
		case !slices.Contains(known, folded):
			p.problem("inspan ignores %s", key)
		case twice:
			p.problem("%s is there twice", key)
		default:
			p.head[folded] = head[key]
		}
	}
}

// name takes the name from the front matter, or else from the file.
func (p *parser) name(file string) error {
	stem := strings.TrimSuffix(path.Base(file), ".md")
	name := Line(p.head["name"])
	switch {
	case roleName(name):
		p.role.Name = name
	case !roleName(stem):
		return fmt.Errorf("%q is not the name of a kind of agent; use at most %d letters, digits, - and _", cmp.Or(name, stem), mostRoleName)
	default:
		p.role.Name = stem
		if name != "" {
			p.problem("%q is not a valid name, so it is called %s", name, stem)
		}
	}
	return nil
}

func roleName(name string) bool {
	return name != "" && len(name) <= mostRoleName && madeOf(name, "-_")
}

func (p *parser) texts() {
	r := &p.role
	whole := described(p.head["description"], r.Prompt)
	if line(p.head["description"]) == "" {
		p.problem("it has no description of when to use it")
	}
	if r.Description = text.Clip(whole, mostDescription); r.Description != whole {
		p.problem("its description has more than %d characters", mostDescription)
	}
	if v, given := p.head["tools"]; given && v != nil {
		r.Tools = lines(v)
		if _, is := v.([]any); is && r.Tools == nil {
			r.Tools = []string{}
		}
		if slices.Contains(r.Tools, "*") {
			r.Tools = nil
		}
	}
	r.Without, r.Skills = lines(p.head["disallowedtools"]), lines(p.head["skills"])
	if r.Model = line(p.head["model"]); len(r.Model) > mostModel || strings.Contains(r.Model, " ") {
		p.problem("%.100q is not a model, so it gets the model of its parent", r.Model)
		r.Model = ""
	}
}

func (p *parser) limits() {
	r := &p.role
	if text := line(p.head["maxturns"]); text != "" {
		n, err := strconv.Atoi(text)
		if r.MaxTurns = max(n, 0); err != nil || n < 1 {
			r.MaxTurns = 0
			p.problem("%.100q is not a number of turns", text)
		}
	}
	switch text := strings.ToLower(line(p.head["effort"])); text {
	case "", "low", "medium", "high", "xhigh", "max":
		r.Effort = text
	default:
		p.problem("effort %.100q is not low, medium, high, xhigh or max", text)
	}
	r.Background = p.yes("background")
}

// yes returns a key that is true or false.
func (p *parser) yes(key string) bool {
	v, given := p.head[key]
	if !given || v == nil {
		return false
	}
	yes, ok := Bool(v)
	if !ok {
		p.problem("%s %.100q is not true or false", key, line(v))
	}
	return yes
}

// throwaway is for agents that only read: other agents can run commands anyway, as far as their parent can. A
// file that came with a repository can't have it, since it allows commands that would ask there.
func (p *parser) throwaway() {
	switch r := &p.role; {
	case !p.yes("throwaway"):
	case r.Mode != "plan":
		p.problem("throwaway has a meaning only with permissionMode plan")
	case r.Source == FromProject:
		p.problem("a file of the workspace can't set throwaway; move it to your own agents")
	default:
		r.Throwaway = true
	}
}

// memory is the same for all agents here, so an agent that requests it gets the tool.
func (p *parser) memory() {
	if r := &p.role; line(p.head["memory"]) != "" && r.Tools != nil && !slices.Contains(r.Tools, "memory") {
		r.Tools = append(r.Tools, "memory")
	}
}

// hooks guard the agent, so without them the role is unusable.
func (p *parser) hooks() error {
	v := p.head["hooks"]
	switch table, ok := v.(map[string]any); {
	case v == nil || ok && len(table) == 0:
		return nil
	case !ok:
		return errors.New("its hooks are not a table of moments")
	}
	data, err := json.Marshal(map[string]any{"hooks": v})
	p.role.Hooks = data
	return err
}

// servers refuses an agent with an MCP server of its own. It has the servers of the session anyway.
func (p *parser) servers() error {
	list, _ := p.head["mcpservers"].([]any)
	for _, v := range list {
		if _, named := v.(string); !named {
			return errors.New("it defines an MCP server (mcpServers): add the server to your settings or .mcp.json, and name it here")
		}
	}
	if _, table := p.head["mcpservers"].(map[string]any); table {
		return errors.New("it defines MCP servers (mcpServers): add them to your settings or .mcp.json, and name them here")
	}
	return nil
}

// mode translates permission modes. Modes that give an agent more rights than its parent are ignored.
func (p *parser) mode() {
	switch text := line(p.head["permissionmode"]); text {
	case "", "default":
	case "plan", "ask", "edit":
		p.role.Mode = tool.Mode(text)
	case "acceptEdits":
		p.role.Mode = "edit"
	default:
		p.problem("permissionMode %.100q gives no rights here, so it gets at most those of its parent", text)
	}
}

// isolation refuses unknown values, since the agent would run with less isolation than its author expects.
func (p *parser) isolation() error {
	switch text := line(p.head["isolation"]); text {
	case "", "none":
	case "worktree", "sandbox":
		p.role.Isolation = text
	default:
		return fmt.Errorf("isolation %.100q is not worktree or sandbox", text)
	}
	return nil
}
