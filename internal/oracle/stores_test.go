package oracle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// desk is an agent and an environment to make sessions of.
type desk struct {
	*served
	agent, env string
}

func newDesk(t *testing.T) *desk {
	s := &desk{served: serve(t)}
	s.step("create an agent and an environment", func(ctx context.Context) error {
		agent, err := s.client.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{
			Name: "helper", Model: anthropic.BetaManagedAgentsModelConfigParams{ID: "script"},
			Tools: []anthropic.BetaAgentNewParamsToolUnion{{
				OfAgentToolset20260401: &anthropic.BetaManagedAgentsAgentToolset20260401Params{Type: "agent_toolset_20260401"},
			}},
		})
		if err != nil {
			return err
		}
		env, err := s.client.Beta.Environments.New(ctx, anthropic.BetaEnvironmentNewParams{Name: "box"})
		if err != nil {
			return err
		}
		s.agent, s.env = agent.ID, env.ID
		return nil
	})
	return s
}

// session makes a session with resources.
func (s *desk) session(
	ctx context.Context, resources ...anthropic.BetaSessionNewParamsResourceUnion,
) (*anthropic.BetaManagedAgentsSession, error) {
	return s.client.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{
		Agent: anthropic.BetaSessionNewParamsAgentUnion{OfString: param.NewOpt(s.agent)}, EnvironmentID: s.env, Resources: resources,
	})
}

// ran says something to a session, and returns what its calls have brought.
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

// holds reports an error unless a text holds another.
func holds(text, part string) error {
	return want("whether there is "+part+" in "+text, strings.Contains(text, part), true)
}

// TestStoresByGo has the official Go client run a script of steps against the command: of what
// clients store, and sessions have.
func TestStoresByGo(t *testing.T) {
	s := newDesk(t)
	s.memorySteps()
	t.Logf("%d steps", s.steps)
}

// memorySteps are those of memory stores.
func (s *desk) memorySteps() {
	stores := &s.client.Beta.MemoryStores
	var store *anthropic.BetaManagedAgentsMemoryStore
	var memory *anthropic.BetaManagedAgentsMemory
	var err error
	s.step("create, read, update and list a memory store", func(ctx context.Context) error {
		if store, err = stores.New(ctx, anthropic.BetaMemoryStoreNewParams{Name: "Team Notes", Metadata: map[string]string{"a": "b"}}); err != nil {
			return err
		}
		if store, err = stores.Update(ctx, store.ID, anthropic.BetaMemoryStoreUpdateParams{Description: param.NewOpt("what we know")}); err != nil {
			return err
		}
		got, err := stores.Get(ctx, store.ID, anthropic.BetaMemoryStoreGetParams{})
		if err != nil {
			return err
		}
		list, err := stores.List(ctx, anthropic.BetaMemoryStoreListParams{})
		if err != nil {
			return err
		}
		return errors.Join(want("description", got.Description, "what we know"), want("stores", len(list.Data), 1), want("metadata", got.Metadata["a"], "b"))
	})
	s.step("create, read and update a memory", func(ctx context.Context) error {
		memory, err = stores.Memories.New(ctx, store.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: "/a/one.md", Content: param.NewOpt("first")})
		if err != nil {
			return err
		}
		got, err := stores.Memories.Get(ctx, memory.ID, anthropic.BetaMemoryStoreMemoryGetParams{MemoryStoreID: store.ID})
		if err != nil {
			return err
		}
		update := anthropic.BetaMemoryStoreMemoryUpdateParams{
			MemoryStoreID: store.ID, Content: param.NewOpt("second"), View: "full",
			Precondition: anthropic.BetaManagedAgentsPreconditionParam{Type: "content_sha256", ContentSha256: param.NewOpt(got.ContentSha256)},
		}
		changed, err := stores.Memories.Update(ctx, memory.ID, update)
		if err != nil {
			return err
		}
		_, late := stores.Memories.Update(ctx, memory.ID, update)
		return errors.Join(want("content", got.Content, "first"), want("changed", changed.Content, "second"), refused(late, 409, "changed"))
	})
	s.step("list memories by prefix and depth", func(ctx context.Context) error {
		if _, err := stores.Memories.New(ctx, store.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: "/b.md", Content: param.NewOpt("")}); err != nil {
			return err
		}
		var got []string
		pages := stores.Memories.ListAutoPaging(ctx, store.ID, anthropic.BetaMemoryStoreMemoryListParams{
			Depth: param.NewOpt[int64](1), Limit: param.NewOpt[int64](1),
		})
		for pages.Next() {
			got = append(got, pages.Current().Type+" "+pages.Current().Path)
		}
		return errors.Join(pages.Err(), want("memories", fmt.Sprint(got), "[memory_prefix /a/ memory /b.md]"))
	})
	s.step("an agent reads and writes the store", func(ctx context.Context) error {
		p, err := s.session(ctx, anthropic.BetaSessionNewParamsResourceUnion{OfMemoryStore: &anthropic.BetaManagedAgentsMemoryStoreResourceParam{
			Type: "memory_store", MemoryStoreID: store.ID, Instructions: param.NewOpt("Look here first."),
		}})
		if err != nil {
			return err
		}
		r := p.Resources[0].AsMemoryStore()
		read, err := s.ran(ctx, p.ID, fmt.Sprintf(`call: memory_store {"command":"read","path":"%s/a/one.md"}`, r.MountPath))
		if err != nil {
			return err
		}
		wrote, err := s.ran(ctx, p.ID, fmt.Sprintf(`call: memory_store {"command":"write","path":"%s/c.md","content":"third"}`, r.MountPath))
		if err != nil {
			return err
		}
		versions, err := stores.MemoryVersions.List(ctx, store.ID, anthropic.BetaMemoryStoreMemoryVersionListParams{
			SessionID: param.NewOpt(p.ID), View: "full",
		})
		if err != nil {
			return err
		}
		return errors.Join(want("mount path", r.MountPath, "/mnt/memory/team-notes"), holds(read, "second"), holds(wrote, "Created"),
			want("written", versions.Data[0].Content, "third"), want("by", versions.Data[0].CreatedBy.AsSessionActor().SessionID, p.ID))
	})
	s.step("redact a version, delete a memory, archive and delete a store", func(ctx context.Context) error {
		versions, err := stores.MemoryVersions.List(ctx, store.ID, anthropic.BetaMemoryStoreMemoryVersionListParams{
			MemoryID: param.NewOpt(memory.ID), Operation: "created",
		})
		if err != nil {
			return err
		}
		id := versions.Data[0].ID
		if _, err := stores.MemoryVersions.Redact(ctx, id, anthropic.BetaMemoryStoreMemoryVersionRedactParams{MemoryStoreID: store.ID}); err != nil {
			return err
		}
		v, err := stores.MemoryVersions.Get(ctx, id, anthropic.BetaMemoryStoreMemoryVersionGetParams{MemoryStoreID: store.ID})
		if err != nil {
			return err
		}
		gone, err := stores.Memories.Delete(ctx, memory.ID, anthropic.BetaMemoryStoreMemoryDeleteParams{MemoryStoreID: store.ID})
		if err != nil {
			return err
		}
		archived, err := stores.Archive(ctx, store.ID, anthropic.BetaMemoryStoreArchiveParams{})
		if err != nil {
			return err
		}
		_, full := stores.Memories.New(ctx, store.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: "/d", Content: param.NewOpt("")})
		deleted, err := stores.Delete(ctx, store.ID, anthropic.BetaMemoryStoreDeleteParams{})
		return errors.Join(err, want("content", v.Content, ""), want("redacted", v.RedactedAt.IsZero(), false), want("gone", gone.ID, memory.ID),
			want("archived", archived.ArchivedAt.IsZero(), false), refused(full, 409, "archived"), want("deleted", deleted.ID, store.ID))
	})
}

// TestMemoriesSurvive kills the server at random moments while a client writes a memory: each text
// that was acknowledged is a version, and the memory holds the last one, or the one that was on its
// way.
func TestMemoriesSurvive(t *testing.T) {
	s := newDesk(t)
	ctx, end := context.WithTimeout(t.Context(), 3*time.Minute)
	defer end()
	stores := s.client.Beta.MemoryStores
	store, err := stores.New(ctx, anthropic.BetaMemoryStoreNewParams{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := stores.Memories.New(ctx, store.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: "/a", Content: param.NewOpt("0")})
	if err != nil {
		t.Fatal(err)
	}
	acknowledged, held, n := map[string]bool{"0": true}, "0", 0
	r := rand.New(rand.NewPCG(5, 6))
	address := strings.TrimPrefix(s.url, "http://")
	for range 20 {
		timer := time.AfterFunc(time.Duration(r.IntN(60))*time.Millisecond, func() { _ = s.cmd.Process.Kill() })
		var next string
		for {
			n++
			next = fmt.Sprint(n)
			_, err := stores.Memories.Update(ctx, memory.ID, anthropic.BetaMemoryStoreMemoryUpdateParams{
				MemoryStoreID: store.ID, Content: param.NewOpt(next),
			}, option.WithMaxRetries(0))
			if err != nil {
				break
			}
			held = next
			acknowledged[held] = true
		}
		timer.Stop()
		s.stop()
		s.start(address)
		stores = s.client.Beta.MemoryStores
		got, err := stores.Memories.Get(ctx, memory.ID, anthropic.BetaMemoryStoreMemoryGetParams{MemoryStoreID: store.ID})
		if err != nil {
			t.Fatal(err)
		}
		if got.Content != held && got.Content != next {
			t.Fatalf("the memory holds %q, not %q; %q was on its way", got.Content, held, next)
		}
		held = got.Content
		acknowledged[held] = true
	}
	stored := map[string]bool{}
	pages := stores.MemoryVersions.ListAutoPaging(ctx, store.ID, anthropic.BetaMemoryStoreMemoryVersionListParams{View: "full"})
	for pages.Next() {
		stored[pages.Current().Content] = true
	}
	if pages.Err() != nil {
		t.Fatal(pages.Err())
	}
	for text := range acknowledged {
		if !stored[text] {
			t.Errorf("the version %q is lost", text)
		}
	}
	t.Logf("%d versions, 20 kills", len(stored))
}

// TestStoresByPython has the official Python client run a script of steps against the command.
func TestStoresByPython(t *testing.T) {
	interpreter := python(t)
	s := serve(t)
	out, err := exec.CommandContext(t.Context(), interpreter, filepath.Join("testdata", "stores.py"), s.url, s.token).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, strings.Join(s.said(), "\n"))
	}
	t.Logf("%s", out)
}
