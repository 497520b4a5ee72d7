package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/connect"
	"github.com/inspan/inspan/internal/netguard"
	"github.com/inspan/inspan/store"
)

// recordName is the file in the state folder that has the address of the server of that folder.
const recordName = "server.address"

// Web opens the web page in the browser of whoever uses this machine.
type Web struct {
	Quiet bool // only tell the address; no browser is opened
	Tell  func(string)
}

// Show opens the page of a server, signed in by a code, and tells its address. Where no browser can be
// opened, the address that it tells signs one in.
func (w Web) Show(ctx context.Context, address, code string) {
	page := "http://" + address + "/"
	if !w.Quiet && connect.Browse(ctx, page+"#code="+code) == nil {
		w.Tell("the page is open in your browser: " + page)
		return
	}
	w.Tell("open " + page + "#code=" + code + " within a minute; it signs one browser in")
}

// Elsewhere shows the page of the server that another process runs over the same state folder, if that is
// why one did not start here. Any other reason it returns.
func (w Web) Elsewhere(ctx context.Context, why error, state, tokenFile string) error {
	if !errors.Is(why, store.ErrBusy) {
		return why
	}
	raw, err := os.ReadFile(filepath.Join(state, recordName))
	if err != nil {
		return fmt.Errorf("a server runs on this state folder, but where is not known: %w", err)
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
	w.Show(ctx, address, made.Code)
	return nil
}
