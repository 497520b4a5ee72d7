// Package cloud holds the credentials of the clouds that serve models: requests
// signed for AWS, access tokens for Google Cloud. It plugs into an
// [llm.Endpoint]:
//
//	bedrock := llm.Endpoint{HTTP: &cloud.AWS{}, BaseURL: "https://bedrock-runtime.eu-west-1.amazonaws.com", ...}
//	vertex := llm.Endpoint{Key: new(cloud.Google).Key, Bearer: true, ...}
//
// It knows only what models need. For other services of these clouds use their SDKs.
package cloud

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/inspan/inspan/llm"
)

// AWS is a transport that signs every request with Signature Version 4, or adds the bearer token that replaces a
// signature. It signs the final body, so nothing may change a request after it. The zero value works for Bedrock.
// It is safe for concurrent use if Credentials and HTTP are.
//
// Errors before anything was sent are [*llm.Error]: KindAuth without credentials, KindInvalid without a region.
type AWS struct {
	// Region the request is signed for; empty means the one in the host's name, as in
	// "bedrock-runtime.eu-west-1.amazonaws.com".
	Region string
	// Service the request is signed for; empty means "bedrock".
	Service string
	// Credentials returns the keys to sign with, once for each request. Nil means those of this machine, from
	// AWS_BEARER_TOKEN_BEDROCK, else AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else the keys of
	// the profile AWS_PROFILE.
	Credentials func(ctx context.Context) (Credentials, error)
	// HTTP sends the requests; nil means [http.DefaultTransport].
	HTTP http.RoundTripper
}

// Credentials are the keys of one AWS identity, or the bearer token of a Bedrock API key, which takes precedence.
type Credentials struct {
	AccessKey string
	SecretKey string
	Session   string // token of a temporary session; empty for permanent keys
	Bearer    string
}

// RoundTrip implements [http.RoundTripper].
func (a *AWS) RoundTrip(r *http.Request) (*http.Response, error) {
	signed, err := a.sign(r, time.Now())
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	if a.HTTP != nil {
		return a.HTTP.RoundTrip(signed)
	}
	return http.DefaultTransport.RoundTrip(signed)
}

// sign returns a copy of r with its signature and its body.
func (a *AWS) sign(r *http.Request, now time.Time) (*http.Request, error) {
	credentials := a.Credentials
	if credentials == nil {
		credentials = localAWS
	}
	c, err := credentials(r.Context())
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindAuth, Message: "no AWS credentials: " + err.Error(), Err: err}
	}
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read body to sign: %w", err)
		}
	}
	out := r.Clone(r.Context())
	setBody(out, body)
	if c.Bearer != "" {
		out.Header.Set("Authorization", "Bearer "+c.Bearer)
		return out, nil
	}
	region := a.region(r.URL.Hostname())
	if region == "" {
		return nil, &llm.Error{Kind: llm.KindInvalid, Message: "no AWS region is set, and the host " + r.URL.Hostname() + " names none"}
	}
	service := a.Service
	if service == "" {
		service = "bedrock"
	}
	sum := sha256.Sum256(body)
	keys := aws.Credentials{AccessKeyID: c.AccessKey, SecretAccessKey: c.SecretKey, SessionToken: c.Session}
	unsent := func(_ string, values []string) bool { return len(values) == 0 } // only for the transport
	maps.DeleteFunc(out.Header, unsent)
	if err := v4.NewSigner().SignHTTP(r.Context(), keys, out, hex.EncodeToString(sum[:]), service, region, now); err != nil {
		return nil, fmt.Errorf("sign request: %w", err)
	}
	for name, values := range r.Header {
		if unsent(name, values) {
			out.Header[name] = values
		}
	}
	return out, nil
}

func setBody(r *http.Request, body []byte) {
	if body == nil {
		return
	}
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
}

var regional = regexp.MustCompile(`(?:^|\.)bedrock[a-z-]*\.([a-z]{2}(?:-[a-z]+)+-\d+)\.`)

func (a *AWS) region(host string) string {
	if a.Region != "" {
		return a.Region
	}
	if m := regional.FindStringSubmatch(host); m != nil {
		return m[1]
	}
	return ""
}
