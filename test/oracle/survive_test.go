package oracle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

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
