package permission

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
)

// Variable is a secret for commands. They see a stand-in, which is replaced by the value in requests that leave
// the sandbox.
type Variable struct {
	Name, StandIn, Value string
	Hosts                []string // that it is sent to; nil means every host that a command may reach
	Header, Body         bool     // where it is replaced
}

// Outlet replaces stand-ins in the requests of a session's commands. Nil means requests are not changed.
type Outlet struct {
	swap *netguard.Swap
	dir  string   // for the certificates that commands trust
	vars []string // set for each command
}

// NewOutlet returns an outlet for variables, or for rules that open package registries; nil if there are
// neither. Close it after the last command.
func NewOutlet(vars []Variable, rules []inspan.Rule) (*Outlet, error) {
	known, err := parsed(rules)
	if err != nil {
		return nil, err
	}
	if open, _, _ := policy.Registries(known); len(vars)+len(open) == 0 {
		return nil, nil //nolint:nilnil // nothing to replace
	}
	o := &Outlet{}
	var secrets []netguard.Secret
	for _, v := range vars {
		secrets = append(secrets, netguard.Secret{StandIn: v.StandIn, Value: v.Value, Hosts: v.Hosts, Header: v.Header, Body: v.Body})
		o.vars = append(o.vars, v.Name+"="+v.StandIn)
	}
	if o.swap, err = netguard.NewSwap(secrets); err != nil {
		return nil, err
	}
	if o.dir, err = os.MkdirTemp("", "inspan-trust-"); err != nil {
		return nil, err
	}
	if o.dir, err = filepath.EvalSymlinks(o.dir); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	trust := filepath.Join(o.dir, "certificates") // not named *.pem, which no command could read
	certificates := append(system(), o.swap.PEM()...)
	java := filepath.Join(o.dir, "java") // which reads no PEM, and no variable but options for each program
	if err := errors.Join(os.WriteFile(trust, certificates, 0o600), os.WriteFile(java, javaTrust(certificates), 0o600)); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	for _, name := range trusting() {
		o.vars = append(o.vars, name+"="+trust)
	}
	o.vars = append(o.vars, processes.WithOptions(os.Environ(), processes.MavenOptions, "-Djavax.net.ssl.trustStore="+java))
	return o, nil
}

// javaTrust returns a key store of Java with the certificates of a PEM file, in the format JKS of
// sun.security.provider.JavaKeyStore, version 2. Java reads one without a password if it is given none.
func javaTrust(certificates []byte) []byte {
	var entries []byte
	n := uint32(0)
	for block, rest := pem.Decode(certificates); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		n++
		entries = binary.BigEndian.AppendUint32(entries, 2) // a trusted certificate
		entries = appendJava(entries, strconv.Itoa(int(n))) // its alias
		entries = binary.BigEndian.AppendUint64(entries, 0) // when it was made
		entries = appendJava(entries, "X.509")
		entries = binary.BigEndian.AppendUint32(entries, uint32(len(block.Bytes)))
		entries = append(entries, block.Bytes...)
	}
	store := binary.BigEndian.AppendUint32(nil, 0xfeedfeed)
	store = binary.BigEndian.AppendUint32(store, 2) // the version
	store = append(binary.BigEndian.AppendUint32(store, n), entries...)
	sum := sha1.Sum(append([]byte("Mighty Aphrodite"), store...)) // with an empty password before it
	return append(store, sum[:]...)
}

// appendJava appends an ASCII string as Java's DataOutput.writeUTF does.
func appendJava(to []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(to, uint16(len(text))), text...)
}

// trusting returns the variables that name the file of trusted certificates for programs.
func trusting() []string {
	return []string{
		"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "PIP_CERT",
		"CARGO_HTTP_CAINFO", "DENO_CERT", "npm_config_cafile",
	}
}

// Trusts reports whether a variable names the certificates that programs trust.
func Trusts(name string) bool { return slices.Contains(trusting(), name) }

// system returns the certificates that programs on this machine trust, if they are in one file.
func system() []byte {
	for _, path := range []string{
		os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/ssl/cert.pem",
	} {
		if raw, err := keep.Read(path); err == nil && path != "" {
			return append(bytes.TrimRight(raw, "\n"), '\n')
		}
	}
	return nil
}

// Close removes the certificate file of the outlet.
func (o *Outlet) Close() error {
	if o == nil {
		return nil
	}
	return os.RemoveAll(o.dir)
}
