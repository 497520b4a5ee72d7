package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
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

// Show opens the page of a server, signed in by a code, and prints its address. The browser gets the code from a
// private file, because the list of processes shows command lines. If no browser can be opened, it prints how to
// sign in. If the server listens on all addresses of this machine, it also prints those for other devices.
func (w Web) Show(ctx context.Context, state, address, code string) {
	here, devices := ReachedAt(address)
	page := "http://" + here + "/"
	file := filepath.Join(state, signInName)
	err := keep.Write(file, fmt.Appendf(nil, "<!doctype html>\n<title>inspan</title>\n<script>location.replace(%q)</script>\n", page+"#code="+code))
	switch to := (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String(); {
	case err == nil && !w.Quiet && connect.Browse(ctx, to) == nil:
		w.Tell("the page is open in your browser: " + page + " (by way of " + file + "; if your browser can't read that, run 'inspan web --no-open')")
	case w.Private:
		w.Tell("open " + pages(devices, "#code="+code) + " within a minute; it signs one browser in")
		return
	case err == nil:
		w.Tell("the page is at " + page + "; open " + file + " in a browser within a minute, which signs it in")
	default:
		w.Tell("the page is at " + page + ", but no browser can be signed in: " + err.Error())
	}
	if devices[0] != here {
		w.Tell("other devices reach it at " + pages(devices, "") + "; 'inspan web --no-open' in a terminal prints a link that signs one in")
	}
}

// ReachedAt returns the addresses for this machine and other devices to reach a server. Both are the address that
// it listens at, unless that stands for all addresses of the machine. Then here is the loopback address, and
// devices has the machine's IPv4 addresses, or the IPv6 addresses if there are no others.
func ReachedAt(listens string) (here string, devices []string) {
	all, err := netip.ParseAddrPort(listens)
	if err != nil || !all.Addr().IsUnspecified() {
		return listens, []string{listens}
	}
	at := func(ip netip.Addr) string { return netip.AddrPortFrom(ip, all.Port()).String() }
	here = at(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	var sixes []string
	own, _ := net.InterfaceAddrs() // without them, this machine still reaches the server
	for _, a := range own {
		prefix, err := netip.ParsePrefix(a.String())
		switch ip := prefix.Addr().Unmap(); {
		case err != nil || !ip.IsGlobalUnicast():
		case ip.Is4():
			devices = append(devices, at(ip))
		default:
			sixes = append(sixes, at(ip))
		}
	}
	switch {
	case len(devices) > 0:
		return here, devices
	case len(sixes) > 0:
		return here, sixes
	}
	return here, []string{here}
}

// pages returns the links to the page at some addresses, one a line.
func pages(addresses []string, fragment string) string {
	var links []string
	for _, a := range addresses {
		links = append(links, "http://"+a+"/"+fragment)
	}
	return strings.Join(links, "\nor ")
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
	here, _ := ReachedAt(address)
	var made signInCode
	r := Remote{URL: "http://" + here, Token: token}
	if err := r.Call(ctx, http.MethodPost, "/api/v1/codes", nil, &made); err != nil {
		return err
	}
	w.Show(ctx, state, address, made.Code)
	return nil
}
