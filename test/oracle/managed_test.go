package oracle

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/inspan/inspan/internal/testkit"
)

// served is the command as it serves, and the official client of it.
type served struct {
	t       *testing.T
	bin     string // the command
	dir     string
	url     string
	token   string
	client  anthropic.Client
	answers recorder // to the client
	cmd     *exec.Cmd

	mu     sync.Mutex
	warned []string // what it has said
}

// serve starts the server of the command with the offline model.
func serve(t *testing.T) *served {
	t.Helper()
	s := &served{t: t, bin: testkit.Command(t), dir: t.TempDir()}
	s.start("127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

var servesAt = regexp.MustCompile(`serving tasks at (http://[^/]+)/`)

func (s *served) start(listen string) {
	s.t.Helper()
	s.cmd = exec.Command(s.bin, "serve", "--model", "script", "--mode", "auto", "--listen", listen, "--drain", "1s",
		"--folder", s.folder(), "--webhook-to", "127.0.0.1")
	s.cmd.Env = append(os.Environ(), "INSPAN_CONFIG_DIR="+filepath.Join(s.dir, "config"), "INSPAN_STATE_DIR="+filepath.Join(s.dir, "state"))
	s.cmd.Dir = s.dir
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			s.mu.Lock()
			s.warned = append(s.warned, lines.Text())
			s.mu.Unlock()
			if m := servesAt.FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
		}
		close(address)
	}()
	s.url = <-address
	token, err := os.ReadFile(filepath.Join(s.dir, "state", "server.token"))
	if err != nil || s.url == "" {
		s.t.Fatalf("the server does not begin: %q, %v", s.url, err)
	}
	s.token = strings.TrimSpace(string(token))
	s.client = anthropic.NewClient(option.WithBaseURL(s.url), option.WithAPIKey(s.token), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: &s.answers}))
}

// folder is one of this machine that tasks may use.
func (s *served) folder() string {
	dir := filepath.Join(s.dir, "folder")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

func (s *served) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

type sessionEvent = anthropic.BetaManagedAgentsStreamSessionEventsUnion

func message(text string) anthropic.BetaManagedAgentsEventParamsUnion {
	return anthropic.BetaManagedAgentsEventParamsUnion{OfUserMessage: &anthropic.BetaManagedAgentsUserMessageEventParams{
		Type: anthropic.BetaManagedAgentsUserMessageEventParamsTypeUserMessage,
		Content: []anthropic.BetaManagedAgentsUserMessageEventParamsContentUnion{{
			OfText: &anthropic.BetaManagedAgentsTextBlockParam{Type: anthropic.BetaManagedAgentsTextBlockTypeText, Text: text},
		}},
	}}
}

// send sends events to a session.
func (s *served) send(ctx context.Context, session string, events ...anthropic.BetaManagedAgentsEventParamsUnion) error {
	_, err := s.client.Beta.Sessions.Events.Send(ctx, session, anthropic.BetaSessionEventSendParams{Events: events})
	return err
}

// until reads a stream until an event of a type comes, and returns all up to it.
func until(stream *ssestream.Stream[sessionEvent], kind string) (out []sessionEvent, err error) {
	for stream.Next() {
		e := stream.Current()
		if fields := lacking(e); len(fields) > 0 {
			return out, fmt.Errorf("event %s: %s", e.Type, strings.Join(fields, "; "))
		}
		if out = append(out, e); e.Type == kind {
			return out, nil
		}
	}
	return out, fmt.Errorf("the stream ends before %s: %v; it had %v", kind, stream.Err(), kinds(out))
}

func kinds(events []sessionEvent) (out []string) {
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// find is the first event of a type.
func find(events []sessionEvent, kind string) sessionEvent {
	for _, e := range events {
		if e.Type == kind {
			return e
		}
	}
	return sessionEvent{}
}

// settled waits until a session has handled its input, and returns the types of its events.
func (s *served) settled(ctx context.Context, session string) (all []string, err error) {
	events := &s.client.Beta.Sessions.Events
	for last := ""; last != "session.status_idle"; {
		page, err := events.List(ctx, session, anthropic.BetaSessionEventListParams{
			Limit: param.NewOpt[int64](1), Order: anthropic.BetaSessionEventListParamsOrderDesc,
		})
		if err != nil {
			return nil, err
		}
		for _, e := range page.Data {
			last = e.Type
		}
	}
	pages := events.ListAutoPaging(ctx, session, anthropic.BetaSessionEventListParams{Limit: param.NewOpt[int64](1000)})
	for pages.Next() {
		all = append(all, pages.Current().Type)
	}
	return all, pages.Err()
}

// pixel is a picture.
var pixel = base64.StdEncoding.EncodeToString(
	[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"),
)

// pythonClient is the official Python client, with the package that checks signatures.
const pythonClient = "anthropic[webhooks]"

// pythonVersion is the one that the server is known to satisfy.
const pythonVersion = "2.14.0"

// newest says that the newest clients are to be tried, instead of those that the server is known to satisfy.
func newest() bool { return os.Getenv("INSPAN_SDK") == "newest" }

// python is an interpreter that has the official client.
func python(t *testing.T) string {
	t.Helper()
	if newest() {
		return pythonWith(t, "anthropic-webhooks-newest", "", pythonClient)
	}
	return pythonWith(t, "anthropic-webhooks-"+pythonVersion, "import anthropic, standardwebhooks", pythonClient+"=="+pythonVersion)
}

// pythonWith is an interpreter that has a package, from a folder of the user's cache. The package is installed unless
// the interpreter can run the check; it always is if that is empty.
func pythonWith(t *testing.T, folder, check, wanted string) string {
	t.Helper()
	base, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIPPED: %s is not tried, because there is no python3", wanted)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	venv := filepath.Join(cache, "inspan-oracle", folder)
	python := filepath.Join(venv, "bin", "python")
	if check != "" && exec.CommandContext(t.Context(), python, "-c", check).Run() == nil {
		return python
	}
	for _, args := range [][]string{{base, "-m", "venv", "--clear", venv}, {python, "-m", "pip", "install", "--quiet", wanted}} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: %s is not tried, because it can't be installed: %v\n%s", wanted, err, out)
		}
	}
	return python
}

// said is the warnings of the server.
func (s *served) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.warned)
}

// desk is an agent and an environment to make sessions of.
type desk struct {
	*served
	agent, env string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	s := &desk{served: serve(t)}
	agent, err := s.client.Beta.Agents.New(t.Context(), anthropic.BetaAgentNewParams{
		Name: "helper", Model: model("script"), Tools: []anthropic.BetaAgentNewParamsToolUnion{{OfAgentToolset20260401: toolset()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	env, err := s.client.Beta.Environments.New(t.Context(), anthropic.BetaEnvironmentNewParams{Name: "box"})
	if err != nil {
		t.Fatal(err)
	}
	s.agent, s.env = agent.ID, env.ID
	return s
}

// session makes a session with resources.
func (s *desk) session(
	ctx context.Context, resources ...anthropic.BetaSessionNewParamsResourceUnion,
) (*anthropic.BetaManagedAgentsSession, error) {
	return s.client.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{Agent: of(s.agent), EnvironmentID: s.env, Resources: resources})
}

// ran sends a session a message, and returns the results of its calls.
func (s *desk) ran(ctx context.Context, session, text string) (string, error) {
	stream := s.client.Beta.Sessions.Events.StreamEvents(ctx, session, anthropic.BetaSessionEventStreamParams{})
	defer stream.Close()
	if err := s.send(ctx, session, message(text)); err != nil {
		return "", err
	}
	got, err := until(stream, "session.status_idle")
	var out strings.Builder
	for _, e := range got {
		if e.Type == "agent.tool_result" {
			out.WriteString(e.RawJSON())
		}
	}
	return out.String(), err
}

// TestManagedReconnects cuts a stream at events at random and resumes it after the last that came: none is lost and
// none comes twice. INSPAN_RUNS says another number of runs.
func TestManagedReconnects(t *testing.T) {
	s := serve(t)
	c := &s.client
	runs, err := strconv.Atoi(os.Getenv("INSPAN_RUNS")) // each has some six cuts
	switch {
	case err == nil:
	case testing.Short():
		runs = 4
	default:
		runs = 12
	}
	ctx, end := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(runs)*3*time.Second)
	defer end()
	agent, err := c.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{
		Name:  "helper",
		Model: anthropic.BetaManagedAgentsModelConfigParams{ID: "script"},
		Tools: []anthropic.BetaAgentNewParamsToolUnion{
			{OfAgentToolset20260401: &anthropic.BetaManagedAgentsAgentToolset20260401Params{Type: "agent_toolset_20260401"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	env, err := c.Beta.Environments.New(ctx, anthropic.BetaEnvironmentNewParams{Name: "box"})
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.Beta.Sessions.New(
		ctx,
		anthropic.BetaSessionNewParams{Agent: anthropic.BetaSessionNewParamsAgentUnion{OfString: param.NewOpt(agent.ID)}, EnvironmentID: env.ID},
	)
	if err != nil {
		t.Fatal(err)
	}
	talked := make(chan error, 1)
	talk := func() {
		var err error
		for i := 0; i < runs && err == nil; i++ {
			if err = s.send(ctx, session.ID, message(strings.Repeat("bash: true\n", 5)+"say: over")); err == nil {
				_, err = s.settled(ctx, session.ID)
			}
		}
		talked <- err
	}
	r := rand.New(rand.NewPCG(1, 2))
	var got []string
	cuts, idle := 0, 0
	for idle < runs {
		var resume []option.RequestOption
		if len(got) > 0 {
			resume = append(resume, option.WithHeader("Last-Event-ID", got[len(got)-1]))
		}
		stream := c.Beta.Sessions.Events.StreamEvents(ctx, session.ID, anthropic.BetaSessionEventStreamParams{
			EventDeltas: []anthropic.BetaManagedAgentsDeltaType{"agent.message"},
		}, resume...)
		if cuts == 0 {
			go talk()
		}
		for n := r.IntN(6); n >= 0 && idle < runs && stream.Next(); {
			e := stream.Current()
			if e.ID == "" {
				continue // a preview
			}
			got = append(got, e.ID)
			if e.Type == "session.status_idle" {
				idle++
			}
			n--
		}
		if stream.Err() != nil {
			t.Fatal(stream.Err())
		}
		stream.Close()
		cuts++
	}
	if err := <-talked; err != nil {
		t.Fatal(err)
	}
	var all []string
	pages := c.Beta.Sessions.Events.ListAutoPaging(ctx, session.ID, anthropic.BetaSessionEventListParams{Limit: param.NewOpt[int64](1000)})
	for pages.Next() {
		all = append(all, pages.Current().ID)
	}
	if pages.Err() != nil {
		t.Fatal(pages.Err())
	}
	if !slices.Equal(all, got) {
		t.Errorf("%d events came, of %d", len(got), len(all))
	}
	t.Logf("%d cuts, %d events, none lost and none twice", cuts, len(got))
}
