package mcpserver_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestPrompts offers skills to the person at the client: manual ones too, none that is only for models. Their text is
// judged and redacted like that of a call.
func TestPrompts(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "ask")
		put := func(name, matter, text string) {
			t.Helper()
			if err := os.MkdirAll(filepath.Join(h.Root, ".inspan", "skills", name), 0o755); err != nil {
				t.Fatal(err)
			}
			h.write(".inspan/skills/"+name+"/SKILL.md", "---\nname: "+name+"\ndescription: about "+name+"\n"+matter+"---\n"+text)
		}
		const key = "sk-ant-api03-" + "4Zb9qLr7TnX2vWc8KdYf5HgJs3MpQe6RtUa1BiNo0CxEyGzVhDwFkSjLmPqA"
		put("herons", "disable-model-invocation: true\nargument-hint: which\n", "Count the herons of $ARGUMENTS with "+key)
		put("egrets", "user-invocable: false\n", "Count the egrets")
		c := h.connect(revision, says("n"))
		names := func() (names []string) {
			t.Helper()
			for p, err := range c.Prompts(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				if names = append(names, p.Name); p.Name == "herons" && (p.Description != "about herons" || p.Arguments[0].Description != "which") {
					t.Errorf("%+v", p)
				}
			}
			return names
		}
		if got := names(); !slices.Contains(got, "herons") || slices.Contains(got, "egrets") {
			t.Errorf("offers %v", got)
		}
		get := func(name string) (string, error) {
			res, err := c.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: map[string]string{"args": "the lake"}})
			if err != nil {
				return "", err
			}
			var b strings.Builder
			for _, m := range res.Messages {
				b.WriteString(string(m.Role) + ": " + m.Content.(*sdk.TextContent).Text)
			}
			return b.String(), nil
		}
		if got, err := get("herons"); err != nil || !strings.HasPrefix(got, "user: ") || !strings.Contains(got, "Count the herons of the lake with ") ||
			strings.Contains(got, key) {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := get("egrets"); err == nil {
			t.Errorf("a skill for models: %q", got)
		}
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "prompt", Arguments: map[string]any{"name": "herons"}})
		if err == nil {
			t.Errorf("the client's model invokes it: %s", textOf(res))
		}

		secret := filepath.Join(t.TempDir(), "id_ed25519")
		if err := os.WriteFile(secret, []byte("amber lantern"), 0o600); err != nil {
			t.Fatal(err)
		}
		put("wrens", "", "")
		at := filepath.Join(h.Root, ".inspan", "skills", "wrens", "SKILL.md")
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(secret, at); err != nil {
			t.Fatal(err)
		}
		if got, err := get("wrens"); err == nil {
			t.Errorf("a link out of the workspace is followed: %q", got)
		}
		if err := os.RemoveAll(filepath.Join(h.Root, ".inspan", "skills", "herons")); err != nil {
			t.Fatal(err)
		}
		if got := names(); slices.Contains(got, "herons") {
			t.Errorf("offers %v", got)
		}
	})
}
