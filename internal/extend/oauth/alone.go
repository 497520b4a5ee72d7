package oauth

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Grant is a way to get tokens without a person's login.
type Grant string

// Grants.
const (
	// ClientCredentials uses the client's id with its secret or its key (RFC 6749, section 4.4; RFC 7523,
	// section 2.2).
	ClientCredentials Grant = "client_credentials"
	// JWTBearer uses a token that an issuer trusted by the server has given to this workload (RFC 7523, section
	// 2.1).
	JWTBearer Grant = "jwt_bearer"
	// IDJAG uses a grant that an organisation's identity provider issues for one of its ID tokens (identity
	// assertion JWT authorization grant).
	IDJAG Grant = "id_jag"
)

const (
	bearerGrant   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	// proofTime is how long a proof of the client's identity is valid.
	proofTime = time.Minute
)

// orAlone gets a token without a person, if the account allows it, where a login would be needed.
func (c *Client) orAlone(ctx context.Context, a Account, fine func(kept) bool, ch challenge, pass Pass, err error) (Pass, error) {
	if a.Grant == "" || !errors.Is(err, ErrLogin) {
		return pass, err
	}
	unlock, err := c.lock(ctx, a.Name)
	if err != nil {
		return Pass{}, err
	}
	defer unlock()
	if k, err := c.usable(ctx, a); err == nil && fine(k) {
		return k.pass(), nil // another process was faster
	}
	t, err := c.attempt(ctx, a, Person{}, ch)
	if err != nil {
		return Pass{}, fmt.Errorf("%s: %w", a.Name, err)
	}
	k, err := t.alone(ctx)
	if err != nil {
		return Pass{}, fmt.Errorf("%s: get a token: %w", a.Name, err)
	}
	return k.pass(), c.save(ctx, k)
}

// alone gets a token without a person.
func (t attempt) alone(ctx context.Context) (kept, error) {
	form := url.Values{"grant_type": {string(ClientCredentials)}}
	if t.a.Grant == ClientCredentials && t.a.ClientSecret == "" && t.a.KeyFile == "" {
		return kept{}, errors.New("the client has no secret and no key (is the variable with the secret set?)")
	}
	if t.a.Grant != ClientCredentials {
		said, err := t.assertion(ctx)
		if err != nil {
			return kept{}, err
		}
		form = url.Values{"grant_type": {bearerGrant}, "assertion": {said}}
	}
	if len(t.scopes) > 0 {
		form.Set("scope", strings.Join(t.scopes, " "))
	}
	k, err := t.trade(ctx, t.machine(), form)
	k.Refresh = "" // the next one comes the same way
	return k, err
}

// assertion returns the token that authorizes us at the authorization server.
func (t attempt) assertion(ctx context.Context) (string, error) {
	text, err := credential(t.a.AssertionFile)
	if err != nil {
		return "", err
	}
	said := strings.TrimSpace(string(text))
	if t.a.Grant == IDJAG {
		return t.identityGrant(ctx, said)
	}
	return said, nil
}

// vouch adds the client's signed proof of identity to a form, if it has a key. Each request needs a new one: a
// server may accept a signed proof only once.
func (t attempt) vouch(form url.Values) error {
	if t.a.Grant == "" || t.a.KeyFile == "" {
		return nil
	}
	proof, err := t.proof()
	if err != nil {
		return err
	}
	form.Set("client_assertion_type", assertionType)
	form.Set("client_assertion", proof)
	return nil
}

// proof is the client's identity, signed with its key (RFC 7523, section 3).
func (t attempt) proof() (string, error) {
	text, err := credential(t.a.KeyFile)
	if err != nil {
		return "", err
	}
	key, method, err := signer(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.a.KeyFile, err)
	}
	now, audience := time.Now(), t.s.Issuer
	if audience == "" {
		audience = t.s.Token
	}
	return jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Issuer: t.a.ClientID, Subject: t.a.ClientID, Audience: jwt.ClaimStrings{audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(proofTime)),
	}).SignedString(key)
}

// signer reads a private key and returns its signing method.
func signer(text []byte) (crypto.Signer, jwt.SigningMethod, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, errors.New("it is not a key in PEM format")
	}
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKCS8PrivateKey,
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
	} {
		key, err := parse(block.Bytes)
		if err != nil {
			continue
		}
		switch key := key.(type) {
		case *ecdsa.PrivateKey:
			if method := map[int]jwt.SigningMethod{
				256: jwt.SigningMethodES256, 384: jwt.SigningMethodES384,
				521: jwt.SigningMethodES512,
			}[key.Curve.Params().BitSize]; method != nil {
				return key, method, nil
			}
		case *rsa.PrivateKey:
			return key, jwt.SigningMethodRS256, nil
		case ed25519.PrivateKey:
			return key, jwt.SigningMethodEdDSA, nil
		}
	}
	return nil, nil, errors.New("it is not a private key that can sign")
}

// credential reads a file again each time, because its content may change at any time.
func credential(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s is not a file", path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxToken || len(strings.TrimSpace(string(data))) == 0:
		return nil, fmt.Errorf("%s is empty or too big", path)
	}
	return data, nil
}
