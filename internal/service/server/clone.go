package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
)

// The client chooses the address of a repository, and the server reaches more of the network than a client may.
// So:
//
//   - One parser reads the address, and git gets the parsed form.
//   - A host is accepted if its addresses are public, or the operator has named it. It is looked up once: git
//     connects to an address that was checked.
//   - Git follows no redirect, speaks no other protocol, and runs no filter that fetches.

// origin is the parsed address of a repository, in the form that git gets.
type origin struct {
	url  *url.URL
	host string
	port int
}

// origin parses the address of a repository.
func (r *Repository) origin() (origin, error) {
	bad := Wrong("url", "not an address that git can clone", "https://..., ssh://... or file:///...")
	u, err := url.Parse(r.URL)
	if err != nil {
		return origin{}, bad
	}
	if u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path) {
		return origin{url: u}, nil
	}
	if _, secret := u.User.Password(); secret {
		return origin{}, Wrong("url", "it contains a password, which would be stored",
			"an address without it; configure git's credentials on the server")
	}
	if u.Scheme != "https" && u.Scheme != "ssh" || strings.HasPrefix(u.User.Username(), "-") {
		return origin{}, bad
	}
	plain := *u
	plain.User, plain.Scheme = nil, "https"
	checked, err := netguard.Check(plain.String())
	if err != nil || checked.RawQuery != "" || checked.Fragment != "" {
		return origin{}, bad
	}
	checked.Scheme, checked.User = u.Scheme, u.User
	return origin{url: checked, host: checked.Hostname(), port: cmp.Or(netguard.Port(checked), 22)}, nil
}

// addresses returns the allowed addresses of the host of a repository; none: the operator has named the host,
// and git may look it up itself.
func (s *Server) addresses(ctx context.Context, from origin) ([]netip.Addr, error) {
	if from.host == "" || s.CloneFrom.Match(from.host, from.port) {
		return nil, nil
	}
	guard := s.Guard
	if guard == nil {
		guard = &netguard.Guard{}
	}
	found, err := guard.Addresses(ctx, from.host, from.port)
	if err != nil { // the error may reveal names and addresses in the server's network
		return nil, Wrong("url", "the server finds no public address of "+words.OneLine(from.host, 80),
			"a public host; the operator opens others with --clone-from")
	}
	out := make([]netip.Addr, len(found))
	for i, at := range found {
		out[i] = at.Addr()
	}
	// IPv4 comes first, because it works more often.
	slices.SortStableFunc(out, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) })
	return out, nil
}

// checkOrigin reports what is wrong with an origin, without looking up its host.
func (s *Server) checkOrigin(ctx context.Context, from origin) error {
	if _, err := netip.ParseAddr(from.host); err == nil || netguard.Loopback(from.host) {
		_, err := s.addresses(ctx, from)
		return err
	}
	return nil
}

// Checkout is a repository that a door clones into a workspace.
type Checkout struct {
	Repository

	Commit string // to check out; empty means the branch
	Token  string // for the host of the repository; empty means none
}

// CheckCheckout reports what is wrong with a repository to clone.
func (v *Visit) CheckCheckout(c Checkout) error {
	from, err := v.checkRepository(v, &c.Repository)
	switch {
	case err != nil:
		return err
	case c.Token != "" && from.url.Scheme != "https":
		return Wrong("authorization_token", "the repository is not reached by https", "an https address")
	case c.Token != "" && v.State == "":
		return Wrong("authorization_token", "this server keeps no secrets", "a public repository")
	}
	return nil
}

// Clone clones a repository into a folder that does not exist yet.
func (v *Visit) Clone(c Checkout, dir string) error { return v.clone(v, c, dir) }

// clone clones a repository into a folder. Git gets a token in a file that is removed before clone returns, so
// the token is in no argument and no setting of the workspace.
func (s *Server) clone(ctx context.Context, r Checkout, dir string) (err error) {
	from, err := r.origin()
	if err != nil {
		return err
	}
	ips, err := s.addresses(ctx, from)
	if err != nil {
		return err
	}
	calm := []string{"-c", "filter.lfs.smudge=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false"}
	args := append([]string{
		"-c", "protocol.allow=never", "-c", "protocol." + from.url.Scheme + ".allow=always", "-c", "http.followRedirects=false",
	}, calm...)
	if len(ips) > 0 {
		args = append(args, s.pinned(ctx, from, ips)...)
	}
	if r.Token != "" {
		file, err := s.tokenFile(from, r.Token)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(file)) }()
		args = append(args, "-c", "include.path="+file)
	}
	args = append(args, "clone", "--quiet", "-c", "core.hooksPath="+os.DevNull)
	if r.Ref != "" {
		args = append(args, "--branch", r.Ref)
	}
	if out, err := s.Git(ctx, s.Dir, append(args, "--", from.url.String(), dir)...); err != nil {
		if strings.Contains(strings.ToLower(err.Error()+out), syscall.ENOSPC.Error()) {
			err = errors.Join(err, syscall.ENOSPC)
		}
		return fmt.Errorf("git clone: %w %s", err, strings.TrimSpace(out))
	}
	if r.Commit != "" {
		if out, err := s.Git(ctx, dir, append(calm, "checkout", "--quiet", "--detach", r.Commit)...); err != nil {
			return fmt.Errorf("git checkout: %w %s", err, strings.TrimSpace(out))
		}
	}
	_, err = s.Git(ctx, dir, "config", "--unset", "core.hooksPath")
	return err
}

const tokenFiles = "clone-token-" // in the state folder

// tokenFile writes git settings that send a token to the host of a repository, and to no other.
func (s *Server) tokenFile(from origin, token string) (string, error) {
	path := filepath.Join(s.State, tokenFiles+rand.Text())
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
	host := url.URL{Scheme: from.url.Scheme, Host: from.url.Host, Path: "/"}
	return path, keep.Write(path, fmt.Appendf(nil, "[http %q]\n\textraHeader = Authorization: Basic %s\n", host.String(), basic))
}

// sweepTokens removes files of [Server.tokenFile] that a crash has left.
func (s *Server) sweepTokens() error {
	left, err := filepath.Glob(filepath.Join(s.State, tokenFiles+"*"))
	if s.State == "" {
		return nil
	}
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// pinned returns the settings that make git connect to the checked addresses, and to no others.
func (s *Server) pinned(ctx context.Context, from origin, ips []netip.Addr) []string {
	if from.url.Scheme == "ssh" {
		ssh, err := s.Git(ctx, s.Dir, "config", "--get", "core.sshCommand")
		if ssh = strings.TrimSpace(ssh); err != nil || ssh == "" {
			ssh = "ssh"
		}
		name := from.host
		if from.port != 22 {
			name = fmt.Sprintf("[%s]:%d", from.host, from.port) // the form of known_hosts
		}
		return []string{"-c", fmt.Sprintf("core.sshCommand=%s -o HostName=%s -o HostKeyAlias='%s'", ssh, ips[0], name)}
	}
	var list []string
	for _, ip := range ips {
		text := ip.String()
		if ip.Is6() {
			text = "[" + text + "]"
		}
		list = append(list, text)
	}
	return []string{"-c", fmt.Sprintf("http.curloptResolve=%s:%d:%s", from.host, from.port, strings.Join(list, ","))}
}
