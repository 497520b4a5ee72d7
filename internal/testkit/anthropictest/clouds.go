package anthropictest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// AccessKey is the access key whose secret a Server knows.
const AccessKey = "AKID"

var (
	bedrockPath = regexp.MustCompile(`^/model/([^/:]+)/invoke-with-response-stream$`)
	vertexPath  = regexp.MustCompile(`^/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/([^/:]+):streamRawPredict$`)
	credential  = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=[0-9a-f]{64}$`)
)

// model returns the requested model: a cloud has it in the path.
func (s *Server) model(r *http.Request, body []byte) string {
	switch s.Dialect {
	case "bedrock", "vertex":
		for _, path := range []*regexp.Regexp{bedrockPath, vertexPath} {
			if m := path.FindStringSubmatch(r.URL.EscapedPath()); m != nil {
				id, _ := url.PathUnescape(m[1]) // the server has unescaped it before
				return id
			}
		}
	}
	var v struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &v) // validated before
	return v.Model
}

func (s *Server) refuseBedrock(r *http.Request, body []byte) *Answer {
	switch {
	case r.Method != http.MethodPost || !bedrockPath.MatchString(r.URL.EscapedPath()):
		return &Answer{Status: 404, Type: "UnknownOperationException", Message: "unknown operation"}
	case s.Secret != "" && !s.signed(r, body):
		return &Answer{
			Status: 403, Type: "InvalidSignatureException",
			Message: "The request signature we calculated does not match the signature you provided.",
		}
	case s.Secret == "" && s.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.Key:
		return &Answer{Status: 403, Type: "AccessDeniedException", Message: "Authentication failed: Please make sure your API Key is valid."}
	case r.Header.Get("Content-Type") != "application/json":
		return &Answer{Status: 400, Type: "ValidationException", Message: "The content type is not supported."}
	case len(body) > 25_000_000:
		return &Answer{
			Status: 400, Type: "ValidationException",
			Message: "1 validation error detected: Value at 'body' failed to satisfy constraint: Member must have length less than or equal to " +
				"25000000",
		}
	}
	if err := s.judge.Hear(validate("bedrock", body)); err != nil {
		return &Answer{Status: 400, Type: "ValidationException", Message: err.Error()}
	}
	return nil
}

func (s *Server) refuseVertex(r *http.Request, body []byte) *Answer {
	switch {
	case r.Method != http.MethodPost || !vertexPath.MatchString(r.URL.EscapedPath()):
		return &Answer{Status: 404, Type: "NOT_FOUND", Message: "The requested URL was not found on this server."}
	case s.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.Key:
		return &Answer{Status: 401, Type: "UNAUTHENTICATED", Message: "Request had invalid authentication credentials."}
	}
	if err := s.judge.Hear(validate("vertex", body)); err != nil {
		return &Answer{Status: 400, Type: "invalid_request_error", Message: err.Error()}
	}
	return nil
}

// signed reports whether a request has the signature of the vendor's own signer.
func (s *Server) signed(r *http.Request, body []byte) bool {
	m := credential.FindStringSubmatch(r.Header.Get("Authorization"))
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if m == nil || err != nil || m[1] != AccessKey || m[3] != "bedrock" || time.Since(at).Abs() > 5*time.Minute {
		return false
	}
	again := r.Clone(r.Context())
	again.URL.Host = r.Host
	again.Header = http.Header{}
	for name := range strings.SplitSeq(m[4], ";") {
		if values := r.Header.Values(name); values != nil {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	sum := sha256.Sum256(body)
	keys := aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: s.Secret}
	err = v4.NewSigner().SignHTTP(r.Context(), keys, again, hex.EncodeToString(sum[:]), m[3], m[2], at)
	return err == nil && again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

// Frame returns one event of the vendor's in a frame of Bedrock's.
func Frame(data []byte) []byte {
	payload := `{"bytes":"` + base64.StdEncoding.EncodeToString(data) + `","p":"abcdefgh"}`
	return Message([]byte(payload), ":event-type", "chunk", ":content-type", "application/json", ":message-type", "event")
}

// Exception returns the frame that reports an exception of this type.
func Exception(kind, message string) []byte {
	payload, err := json.Marshal(map[string]string{"message": message})
	if err != nil {
		panic(err) // strings always marshal
	}
	if kind != "" {
		kind = strings.ToLower(kind[:1]) + kind[1:]
	}
	return Message(payload, ":exception-type", kind, ":content-type", "application/json", ":message-type", "exception")
}

// Message returns a frame with these headers, name after value.
func Message(payload []byte, headers ...string) []byte {
	m := eventstream.Message{Payload: payload}
	for i := 0; i < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}
