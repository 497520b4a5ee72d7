package corpus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/web"
	"github.com/inspan/inspan/tool"
)

// Fixed returns the sources of a new session, in the form for its log. The text of a page becomes a blob of the
// session, if may allows its hosts, so a place in it never changes, and the agent needs no network. The same holds
// for input, which the name [Input] stands for. Env is the world of the session.
func Fixed(ctx context.Context, env tool.Env, names []string, input io.Reader, may func([]tool.Effect) error) (out []event.Source, err error) {
	for _, name := range names {
		src := event.Source{Name: name}
		if name == Input {
			if src.Blob, err = piped(ctx, env, input); err != nil {
				return nil, fmt.Errorf("standard input: %w", err)
			}
		}
		if IsPage(name) {
			u, err := web.Address(name)
			if err == nil {
				err = may(pageEffects(u))
			}
			if err == nil {
				src.Blob, err = fetched(ctx, env, u)
				if err != nil && ctx.Err() == nil { // on one line: a server may have written something that looks like an answer
					err = errors.New(words.OneLine(err.Error(), mostTold))
				}
			}
			if err != nil {
				return nil, fmt.Errorf("source %q: %w", name, err)
			}
		}
		out = append(out, src)
	}
	return out, nil
}

// Input is the name of standard input as a source.
const Input = "-"

var errNoInput = errors.New("standard input is not a source of this session")

// piped stores the text of standard input as a blob.
func piped(ctx context.Context, env tool.Env, input io.Reader) (blob string, err error) {
	switch {
	case input == nil:
		return "", errNoInput
	case env.Blobs == nil:
		return "", errNoBlobs
	}
	raw, err := io.ReadAll(io.LimitReader(input, mostVariable+1))
	if err != nil {
		return "", err
	}
	if len(raw) > mostVariable {
		return "", fmt.Errorf("it has more than %d bytes; save it as a file", mostVariable)
	}
	if strings.TrimSpace(string(raw)) == "" {
		return "", errors.New("it is empty")
	}
	return env.Blobs.Put(ctx, strings.NewReader(cleaned(env.Clean, string(raw))))
}

const mostTold = 400 // bytes of the error of a page

// IsPage reports whether a source is named like a page.
func IsPage(name string) bool {
	kind, _ := kindOf(name)
	return kind == kindPage
}

// pageEffects returns the hosts that a page is fetched from.
func pageEffects(u *url.URL) (out []tool.Effect) {
	for _, host := range web.Hosts(u) {
		out = append(out, tool.Effect{Kind: tool.Network, Text: host})
	}
	return out
}

// fetched fetches a page, and returns the blob with its text. A page that is too long is not stored, because its
// beginning could be mistaken for the whole.
func fetched(ctx context.Context, env tool.Env, u *url.URL) (blob string, err error) {
	switch {
	case env.HTTP == nil:
		return "", errors.New("no server can be reached from here")
	case env.Blobs == nil:
		return "", errNoBlobs
	}
	page, err := web.Fetch(ctx, env.HTTP, u)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(page.Text) == "" {
		return "", fmt.Errorf("%s has no text", u)
	}
	if page.Cut {
		return "", fmt.Errorf("%s is longer than pages that are read; save it as a file, and open that", u)
	}
	return env.Blobs.Put(ctx, strings.NewReader(cleaned(env.Clean, page.Text)))
}
