package oauth

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	proofAlg    = "ES256"          // how proofs are signed
	nonceWanted = "use_dpop_nonce" // the error of a server that wants its nonce in a proof
	nonceHeader = "DPoP-Nonce"
	maxNonce    = 4 << 10 // bytes
)

// Pass is an access token, with its key if it is bound to one (DPoP, RFC 9449): a bound token is useless
// without the key. Printing a Pass shows neither. The zero Pass has none.
type Pass struct {
	Token string
	key   *key // nil means anyone with the token may use it
}

// Apply adds the token to a request that is sent next, and a new proof if it is bound to a key. The nonce is the
// server's latest (DPoP-Nonce); empty means it gave none.
func (p Pass) Apply(req *http.Request, nonce string) error {
	if p.Token == "" {
		return nil
	}
	scheme := "Bearer"
	if p.key != nil {
		proof, err := p.key.proof(req.Method, req.URL, nonce, p.Token)
		if err != nil {
			return err
		}
		scheme = "DPoP"
		req.Header.Set("DPoP", proof)
	}
	req.Header.Set("Authorization", scheme+" "+p.Token)
	return nil
}

// Format implements [fmt.Formatter], so that no way of printing shows the token.
func (Pass) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "a pass") }

// key is a private key that tokens are bound to.
type key struct{ private *ecdsa.PrivateKey }

func newKey() (*key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &key{private}, err
}

// MarshalText implements [encoding.TextMarshaler]: PKCS #8 in base64.
func (k key) MarshalText() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	return []byte(base64.StdEncoding.EncodeToString(der)), err
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *key) UnmarshalText(text []byte) error {
	der, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return errors.New("it is not a key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	private, is := parsed.(*ecdsa.PrivateKey)
	if err != nil || !is || private.Curve != elliptic.P256() {
		return errors.New("it is not a key")
	}
	k.private = private
	return nil
}

// public returns the public key as a JWK (RFC 7517), with only the required members.
func (k *key) public() (map[string]string, error) {
	point, err := k.private.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return nil, err
	}
	b64 := base64.RawURLEncoding.EncodeToString
	return map[string]string{"kty": "EC", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])}, nil
}

// thumbprint returns the key's name (RFC 7638): a digest of the JWK with its members in order.
func (k *key) thumbprint() (string, error) {
	public, err := k.public()
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(public)
	return hashed(string(data)), err
}

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// proof proves possession of the key for one request (RFC 9449, section 4.2). Without a token it is for the
// token endpoint.
func (k *key) proof(method string, u *url.URL, nonce, token string) (string, error) {
	public, err := k.public()
	if err != nil {
		return "", err
	}
	at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: cmp.Or(u.Path, "/"), RawPath: u.RawPath}
	claims := jwt.MapClaims{
		"jti": rand.Text(), "htm": cmp.Or(method, http.MethodGet), "htu": at.String(), "iat": time.Now().Unix(),
	}
	if token != "" {
		claims["ath"] = hashed(token)
	}
	if nonce != "" && len(nonce) <= maxNonce {
		claims["nonce"] = nonce
	}
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	t.Header["typ"], t.Header["jwk"] = "dpop+jwt", public
	return t.SignedString(k.private)
}

// prover proves to one server that the requests of a login come from the owner of its key.
type prover struct {
	key   *key
	nonce string // that the server gave last; empty means none
}

// sign adds a proof to a request. A nil prover adds none.
func (p *prover) sign(req *http.Request) error {
	if p == nil {
		return nil
	}
	proof, err := p.key.proof(req.Method, req.URL, p.nonce, "")
	if err == nil {
		req.Header.Set("DPoP", proof)
	}
	return err
}

// learn remembers the nonce of a response.
func (p *prover) learn(resp *http.Response) {
	if nonce := resp.Header.Get(nonceHeader); p != nil && nonce != "" {
		p.nonce = nonce
	}
}

// twice sends a request, and once more if the server refused it because of a nonce that it has now given (RFC
// 9449, section 8).
func (p *prover) twice(send func() (*fields, error)) (*fields, error) {
	had := ""
	if p != nil {
		had = p.nonce
	}
	f, err := send()
	if p != nil && p.nonce != had && refused(err, nonceWanted) {
		return send()
	}
	return f, err
}

// prover makes the key that the tokens of a new login are bound to. Nil means they are not bound.
func (a Account) prover(s server, ch challenge, old kept) (*prover, error) {
	able := a.Resource != "" && slices.Contains(s.proofs, proofAlg) && (len(s.taken) == 0 || slices.Contains(s.taken, proofAlg))
	switch {
	case s.boundOnly && !able:
		return nil, fmt.Errorf("it takes only tokens that are bound to a key (DPoP with %s), which its authorization server does not give",
			proofAlg)
	case !able, !s.boundOnly && !a.takesBound(s, ch, old):
		return nil, nil
	}
	k, err := newKey()
	return &prover{key: k}, err
}

// takesBound reports whether a resource supports bound tokens: many don't although their authorization server
// issues them. Its description counts, then its challenge. Without either, the answer is yes, unless no one can log
// in again: then an existing login keeps its kind.
func (a Account) takesBound(s server, ch challenge, old kept) bool {
	switch {
	case len(s.taken) > 0 || ch.dpop:
		return true
	case ch.bearer:
		return false
	case a.Grant != "" && old.Name != "" && old.bound(a) == nil && same(old.Endpoints.Issuer, s.Issuer):
		return old.Key != nil
	}
	return true
}

// takesProofs reports whether a DPoP challenge accepts our signing algorithm.
func takesProofs(params map[string]string) bool {
	algs := strings.Fields(params["algs"])
	return len(algs) == 0 || slices.Contains(algs, proofAlg)
}
