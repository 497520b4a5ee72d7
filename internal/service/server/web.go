package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/store"
)

// recordName is the file in the state folder that has the address of the server of that folder.
const recordName = "server.address"

// signInName is the file in the state folder that opens the page with a code.
const signInName = "sign-in.html"

// Web opens the web page in the browser of this machine's user.
type Web struct {
	Quiet   bool // only print the page's address; no browser is opened
	Private bool // others can't read the printed text, as in a terminal
	Tell    func(string)
}

// Show opens the page of a server, signed in by a code, and prints its address. The browser gets the code from
// a private file, as the list of processes shows command lines. If no browser can be opened, it prints how to
// sign in.
func (w Web) Show(ctx context.Context, state, address, code string) {
	page := "http://" + address + "/"
	file := filepath.Join(state, signInName)
	err := keep.Write(file, fmt.Appendf(nil, "<!doctype html>\n<title>inspan</title>\n<script>location.replace(%q)</script>\n", page+"#code="+code))
	switch to := (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String(); {
	case err == nil && !w.Quiet && connect.Browse(ctx, to) == nil:
		w.Tell("the page is open in your browser: " + page + " (by way of " + file + "; if your browser can't read that, run 'inspan web --no-open')")
	case w.Private:
		w.Tell("open " + page + "#code=" + code + " within a minute; it signs one browser in")
	case err == nil:
		w.Tell("the page is at " + page + "; open " + file + " in a browser within a minute, which signs it in")
	default:
		w.Tell("the page is at " + page + ", but no browser can be signed in: " + err.Error())
	}
}

// Elsewhere shows the page of the server that another process runs with the same state folder, if that is why
// one did not start here. It returns any other error.
func (w Web) Elsewhere(ctx context.Context, why error, state, tokenFile string) error {
	if !errors.Is(why, store.ErrBusy) {
		return why
	}
	raw, err := keep.Read(filepath.Join(state, recordName))
	if err != nil {
		return fmt.Errorf("a server uses this state folder, but its address is unknown: %w", err)
	}
	token, err := netguard.Token(tokenFile)
	if err != nil {
		return err
	}
	address := strings.TrimSpace(string(raw))
	var made madeCode
	r := Remote{URL: "http://" + address, Token: token}
	if err := r.Call(ctx, http.MethodPost, "/api/v1/codes", nil, &made); err != nil {
		return err
	}
	w.Show(ctx, state, address, made.Code)
	return nil
}
