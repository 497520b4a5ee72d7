package providers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// listTime bounds the request for the model list when a model is missing.
const listTime = 5 * time.Second

// remedied is the cause in an [llm.Error], with advice for a person.
type remedied struct {
	error
	failed, remedy string
}

func (r remedied) Unwrap() error { return r.error }

// Remedy splits the error of a model of [Set] into the failure, in the vendor's words, and advice for a person;
// empty means no advice.
func Remedy(err error) (failed, remedy string) {
	var r remedied
	if errors.As(err, &r) {
		return r.failed, r.remedy
	}
	return err.Error(), ""
}

// advised wraps a model. It adds advice to its errors about a rejected key, a missing model and an unreachable
// address. Runs, the interactive front end and doctor show that text.
type advised struct {
	llm.Model
	set *Set
	of  Provider
	id  string
}

// Stream implements [llm.Model].
func (m *advised) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for chunk, err := range m.Model.Stream(ctx, req) {
			if err != nil {
				err = m.set.advise(ctx, m.of, m.id, llm.AsError(err))
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// AssumedWindow is the context window, in tokens, of a model for which no one states one.
const AssumedWindow = 64_000

// Info implements [llm.Model]. A window that no one states is assumed: without one, no conversation would be
// compacted before the server cuts it.
func (m *advised) Info() llm.Info {
	info := m.Model.Info()
	if info.Window == 0 {
		info.Window, info.Assumed = AssumedWindow, true
	}
	return info
}

// advise adds advice for a person to an error.
func (s *Set) advise(ctx context.Context, p Provider, id string, e *llm.Error) *llm.Error {
	told, remedy := *e, ""
	switch {
	case e.Kind == llm.KindAuth:
		remedy = s.refused(p)
	case e.Kind == llm.KindNoModel && id != "":
		remedy = s.missing(ctx, p, id)
	case e.Status == http.StatusNotFound:
		remedy = fmt.Sprintf("no models at %s; correct providers.%s.base_url in %s", address(p), p.Name, s.ConfigPath)
	case e.Status == 0 && (e.Kind == llm.KindTransient || e.Kind == llm.KindNoReply || e.Kind == llm.KindTimeout && e.Phase == "connect"):
		if failed, todo := s.unreached(p, e); failed != "" {
			told.Message, remedy = failed, todo
		}
	}
	if remedy == "" {
		return e
	}
	if told.Message == "" && e.Err != nil {
		told.Message = e.Err.Error()
	}
	told.Err = remedied{error: e, failed: told.Error(), remedy: remedy}
	told.Message = strings.TrimPrefix(strings.TrimRight(told.Message, ". \n")+". "+capital(remedy), ". ")
	return &told
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// refused returns which key was rejected, its source, and how to change it.
func (s *Set) refused(p Provider) string {
	from := s.Source(p)
	switch {
	case p.OAuth != nil:
		return fmt.Sprintf("log in again: inspan models login %s", p.Name)
	case p.KeyCommand != "":
		return fmt.Sprintf("the key is the output of providers.%s.key_command in %s; correct the command", p.Name, s.ConfigPath)
	case from == "" && p.KeyEnv == "":
		return fmt.Sprintf("no key was sent; set providers.%s.key_env in %s to the variable that holds it", p.Name, s.ConfigPath)
	case from == "":
		return fmt.Sprintf("no key for %s: set %s%s", p.Name, p.KeyEnv, s.orSetup(", or "))
	case from == p.KeyEnv:
		return fmt.Sprintf("the key comes from the variable %s; correct it there%s", from, s.orSetup(", or unset it and "))
	}
	return fmt.Sprintf("the key comes from %s; set %s to use another%s", from, p.KeyEnv, s.orSetup(", or "))
}

// orSetup returns the command that stores a key, after a link; empty if there is none.
func (s *Set) orSetup(link string) string {
	if s.Advice.Setup == "" {
		return ""
	}
	return link + s.Advice.Setup
}

// missing lists the models that a provider offers instead.
func (s *Set) missing(ctx context.Context, p Provider, id string) string {
	all := ""
	if s.Advice.Setup != "" {
		all = "; 'inspan models " + p.Name + "' lists them"
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	found := s.discover(ctx, p)
	if found.Err != nil {
		return fmt.Sprintf("%s has no model %q for this key%s", p.Name, id, all)
	}
	var ids []string
	for _, m := range found.Models {
		ids = append(ids, m.Model)
	}
	if slices.Contains(ids, id) {
		return fmt.Sprintf("%s lists %q, but does not serve it to this key%s", p.Name, id, all)
	}
	near := words.Near(id, ids)
	if len(near) == 0 {
		near = ids[:min(3, len(ids))]
	}
	for i := range near {
		near[i] = words.OneLine(near[i], 80)
	}
	has := fmt.Sprintf("%s has no model %q; ", p.Name, id)
	switch {
	case len(ids) == 0 && p.Kind == "ollama":
		return has + "it has none yet: ollama pull " + id
	case len(ids) == 0:
		return has + "it lists none"
	case p.Kind == "ollama":
		all = "; 'ollama pull " + id + "' gets it"
	}
	if more := len(ids) - len(near); more > 0 {
		return has + fmt.Sprintf("it has %s and %d more%s", strings.Join(near, ", "), more, all)
	}
	return has + "it has " + strings.Join(near, ", ") + all
}

// unreached explains why an address can't be reached, instead of the system's message, and the remedy; empty means
// the error is another.
func (s *Set) unreached(p Provider, e *llm.Error) (failed, remedy string) {
	host := address(p)
	var name *net.DNSError
	var op *net.OpError
	var unknown x509.UnknownAuthorityError
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.As(e.Err, &unknown):
		return fmt.Sprintf("the certificate of %s is not trusted here (%v)", host, unknown),
			"if a proxy inspects traffic, name its certificate in SSL_CERT_FILE"
	case errors.As(e.Err, &unverified):
		return fmt.Sprintf("the certificate of %s is not valid (%v)", host, unverified.Err),
			"check the address, and the clock of this machine"
	case errors.As(e.Err, &op) && op.Op == "proxyconnect":
		return fmt.Sprintf("the proxy of HTTPS_PROXY, HTTP_PROXY or ALL_PROXY does not answer (%v)", op.Err), "correct the variable"
	case errors.As(e.Err, &name):
		return fmt.Sprintf("the name %s can't be looked up (%s)", name.Name, name.Err), "check the network; behind a proxy, set HTTPS_PROXY"
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		start := "start it"
		if p.Kind == "ollama" {
			start += " with 'ollama serve'"
		}
		return fmt.Sprintf("no server listens at %s (connection refused)", host),
			fmt.Sprintf("%s, or correct providers.%s.base_url in %s", start, p.Name, s.ConfigPath)
	case op != nil:
		return fmt.Sprintf("%s can't be reached (%v)", host, op.Err), "check the network; behind a proxy, set HTTPS_PROXY"
	case e.Kind == llm.KindTimeout:
		return host + " can't be reached", "check the network; behind a proxy, set HTTPS_PROXY"
	}
	return "", ""
}

// address returns the host of a provider, for people.
func address(p Provider) string {
	if u, err := url.Parse(p.BaseURL); err == nil && u.Host != "" {
		return u.Host
	}
	return "the server of " + p.Name
}
