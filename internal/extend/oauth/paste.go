package oauth

import (
	"context"
	"errors"
	"strings"
	"unicode"
)

// maxPastes is how often a person may paste something that will not do.
const maxPastes = 5

// maxPaste bounds what is pasted, in bytes.
const maxPaste = 32 << 10

// pasted shows the person the page and takes what they bring back from it.
func (t attempt) pasted(ctx context.Context, at, state string) (response, error) {
	if err := t.show(at); err != nil {
		return response{}, err
	}
	if t.p.Tell != nil {
		t.p.Tell("Then paste the address that the browser was led to, even if it shows no page there.")
	}
	for range maxPastes {
		text, err := t.p.Paste(ctx)
		if ctx.Err() != nil {
			return response{}, ctx.Err()
		}
		if err != nil {
			return response{}, err
		}
		r, problem := readPaste(text, state)
		if problem == "" && t.s.saysIss && r.iss == "" {
			problem = "That is not all of it: paste the whole address."
		}
		if problem == "" {
			return r, nil
		}
		if t.p.Tell != nil {
			t.p.Tell(problem)
		}
	}
	return response{}, errors.New("what was pasted would not do")
}

// readPaste reads an address that a browser was led to, its query, or the code alone,
// with the state behind a # as some servers show it. White space comes from terminals
// that wrap. A code alone has no state; then the server's check of the PKCE verifier
// is what keeps the code of somebody else out.
func readPaste(text, state string) (r response, problem string) {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, text[:min(len(text), maxPaste)])
	text = strings.Trim(text, `"'<>`)
	if text == "" {
		return response{}, "Nothing was pasted."
	}
	if !strings.ContainsAny(text, "?=&/") {
		code, after, has := strings.Cut(text, "#")
		switch {
		case code == "":
			return response{}, "There is no code in it."
		case has && !equal(after, state):
			return response{}, "That belongs to another login."
		}
		return response{code: code, state: state}, ""
	}
	if _, query, found := strings.Cut(text, "?"); found {
		text = query
	}
	query, _, _ := strings.Cut(text, "#")
	r, err := readResponse(query)
	switch {
	case err != nil || r.code == "" && r.failure == "":
		return response{}, "That is not an address that the login leads to."
	case !equal(r.state, state):
		return response{}, "That belongs to another login."
	}
	return r, ""
}
