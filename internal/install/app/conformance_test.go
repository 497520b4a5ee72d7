package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

var update = flag.Bool("update", false, "write the record of the conformance suite anew")

// TestClientConformance holds our MCP client against the official suite: a program does with each server of the suite
// what a session would. The number of passed checks counts, since the suite is content with a client that does nothing.
func TestClientConformance(t *testing.T) {
	dir := testkit.Dir(t)
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	bin := filepath.Join(dir, "node_modules", ".bin")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "node22"),
		filepath.Join(bin, "conformance"), "client", "--command", me+" drive", "--suite", "all", "-o", out)
	cmd.Dir = t.TempDir()
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the suite is not content: %v", err)
	}
	testkit.Hold(t, out, filepath.Join("testdata", "conformance-client.txt"), *update, string(said))
}

// drive does with a server of the suite what a session would, and what the scenario expects.
func drive(url string) error {
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		PrivateKey   string `json:"private_key_pem"`
		Workload     string `json:"valid_jwt"`
		IDPClientID  string `json:"idp_client_id"`
		IDToken      string `json:"idp_id_token"`
		IDPIssuer    string `json:"idp_issuer"`
		ToolCalls    []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "drive-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("CONFORMANCE_SECRET", given.ClientSecret); err != nil {
		return err
	}
	login := config.OAuth{ClientID: given.ClientID, SecretEnv: "CONFORMANCE_SECRET"}
	switch os.Getenv("MCP_CONFORMANCE_SCENARIO") {
	case "auth/client-credentials-basic":
		login.Grant = string(oauth.ClientCredentials)
	case "auth/client-credentials-jwt":
		login.Grant, login.KeyFile = string(oauth.ClientCredentials), filepath.Join(dir, "key.pem")
		err = os.WriteFile(login.KeyFile, []byte(given.PrivateKey), 0o600)
	case "auth/wif-jwt-bearer":
		login.Grant, login.AssertionFile = string(oauth.JWTBearer), filepath.Join(dir, "token")
		err = os.WriteFile(login.AssertionFile, []byte(given.Workload), 0o600)
	case "auth/enterprise-managed-authorization":
		login.Grant, login.AssertionFile = string(oauth.IDJAG), filepath.Join(dir, "token")
		login.IDPIssuer, login.IDPClientID = given.IDPIssuer, given.IDPClientID
		err = os.WriteFile(login.AssertionFile, []byte(given.IDToken), 0o600)
	}
	if err != nil {
		return err
	}
	server := config.MCPServer{URL: url, Kind: mcp.HTTP, OAuth: login}
	settings := config.Config{MCP: config.MCP{
		Servers:  map[string]config.MCPServer{"peer": server},
		Document: "https://conformance-test.local/client-metadata.json",
	}}
	d := &driver{app: app.New(&config.Installation{Config: settings, StateDir: dir})}
	d.hub = d.app.Hubs.OpenOne("peer", server, tool.Env{Root: dir}, func(string) {})
	defer d.hub.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	if err := d.ready(ctx); err != nil {
		return err
	}
	for _, c := range given.ToolCalls {
		d.call(ctx, c.Name, c.Arguments)
	}
	if len(given.ToolCalls) == 0 {
		d.callAll(ctx)
	}
	if list, err := d.hub.Resources(ctx, "peer"); err == nil && len(list) > 0 {
		_, _ = d.hub.Read(ctx, "peer", list[0].URI)
	}
	if list := d.hub.Prompts(); len(list) > 0 {
		_, _ = d.hub.Prompt(ctx, "peer", list[0].Name, nil)
	}
	return nil
}

type driver struct {
	app *app.App
	hub *connect.Hub
}

// ready waits until the server is connected, and logs in as often as it wants.
func (d *driver) ready(ctx context.Context) error {
	for range 3 { // a person would not do it more often
		d.hub.Settle(ctx)
		s := d.hub.Status()[0]
		fmt.Fprintf(os.Stderr, "%+v\n", s)
		if s.State != mcp.Login {
			if s.State != mcp.Ready {
				return errors.New(s.Why)
			}
			return nil
		}
		if err := d.logIn(ctx); err != nil {
			return err
		}
	}
	return errors.New("it wants a login again and again")
}

// logIn is a person whose browser agrees to everything.
func (d *driver) logIn(ctx context.Context) error {
	var browsing sync.WaitGroup
	defer browsing.Wait()
	return d.app.Logins.Server(ctx, d.hub.Manager, "peer", connect.Login{Way: oauth.Browser, Person: oauth.Person{
		Open: func(url string) error {
			browsing.Go(func() {
				resp, err := http.Get(url)
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
			return nil
		},
		Tell: func(text string) { fmt.Fprintln(os.Stderr, text) },
	}})
}

// call calls a tool by the server's name for it, again after a login for more.
func (d *driver) call(ctx context.Context, name string, args json.RawMessage) {
	for range 3 {
		if !d.once(ctx, name, args) || d.logIn(ctx) != nil {
			return
		}
		d.hub.Settle(ctx)
	}
}

// once calls a tool, and reports whether a login is wanted for it.
func (d *driver) once(ctx context.Context, name string, args json.RawMessage) bool {
	for _, t := range d.hub.Tools() {
		if !strings.HasSuffix(t.Name, "__"+name) {
			continue
		}
		res, err := t.Run(ctx, &tool.Call{Name: t.Name, Args: args, Progress: func(string) {}, Ask: answer})
		fmt.Fprintf(os.Stderr, "%s: %s %v\n", name, res.Parts.Text(), err)
		for err != nil && strings.Contains(err.Error(), "inspan mcp login") && ctx.Err() == nil {
			if d.hub.Status()[0].State == mcp.Login {
				return true
			}
			runtime.Gosched()
		}
	}
	return false
}

// callAll calls all tools, with arguments that the scenarios have in mind.
func (d *driver) callAll(ctx context.Context) {
	now, _, _ := d.hub.Definitions("peer")
	for _, def := range now {
		args := json.RawMessage(`{}`)
		switch def.Name {
		case "add_numbers":
			args = json.RawMessage(`{"a":5,"b":3}`)
		case "json_schema_echo":
			for _, other := range now {
				if other.Name == "json_schema_2020_12_tool" {
					args = json.RawMessage(`{"schema":` + string(other.Schema) + `}`)
				}
			}
		default:
			if strings.Contains(string(def.Schema), `"region"`) {
				args = json.RawMessage(`{"region":"us-west1"}`)
			}
		}
		d.call(ctx, def.Name, args)
	}
}

// answer is a person who chooses the usual values, and agrees.
func answer(_ context.Context, question string, options []string) (string, error) {
	fmt.Fprintf(os.Stderr, "asked %q %q\n", question, options)
	if usual := regexp.MustCompile(`usually "?([^"\]]*)"?\]`).FindStringSubmatch(question); usual != nil {
		return usual[1], nil
	}
	if len(options) > 0 {
		return options[0], nil
	}
	return "true", nil
}
