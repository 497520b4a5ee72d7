package oauth

import (
	"context"
	"errors"
	"strings"
	"unicode"
)

// maxPastes is how often a person may paste something unusable.
const maxPastes = 5

// maxPaste bounds pasted text, in bytes.
const maxPaste = 32 << 10

// pasted shows the person the page and reads the response that they paste.
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
	return response{}, errors.New("the pasted text is not the address or code of this login")
}

// readPaste reads the redirect address, its query, or the code alone, or the code and state joined by # as some
// servers show them. Terminals that wrap lines add white space. A code alone has no state; then the server's
// check of the PKCE verifier keeps out a code of someone else.
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
