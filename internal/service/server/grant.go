package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Grant lets the holder of its token do the things that a door allows for one object, and nothing else. The
// server does not store grants: it recognizes its own by their signature, and the door sees from Nth whether a
// later one has replaced it.
type Grant struct {
	Of     string `json:"of"` // kind of the object
	ID     string `json:"id"`
	Nth    int    `json:"nth"`
	Tenant string `json:"tenant,omitempty"`
}

const grantMark = "grant_" // prefix of principals that are grants; no id of an identity has a _

// Token returns the token of a grant; empty means the server has no owner, so it can't sign one.
func (s *Server) Token(g Grant) string {
	raw, err := json.Marshal(g)
	if err != nil || s.owned().key == "" {
		return ""
	}
	body := hex.EncodeToString(raw)
	return tokenMark + grantMark + body + "_" + s.signature(body)
}

func (s *Server) signature(body string) string {
	mac := hmac.New(sha256.New, []byte("inspan grant\x00"+s.owned().key))
	_, _ = mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// grantee returns the principal of a grant's token.
func (s *Server) grantee(token string) (principal string, ok bool) {
	text, is := strings.CutPrefix(token, tokenMark+grantMark)
	body, signed, _ := strings.Cut(text, "_")
	same := hmac.Equal([]byte(signed), []byte(s.signature(body)))
	return grantMark + body, is && same && s.owned().key != ""
}

// grantOf returns the grant of a principal; nil means it has none.
func grantOf(principal string) *Grant {
	body, is := strings.CutPrefix(principal, grantMark)
	raw, err := hex.DecodeString(body)
	g := &Grant{}
	if !is || err != nil || json.Unmarshal(raw, g) != nil {
		return nil
	}
	return g
}

// Grant returns the grant of the visitor; nil means it has a role.
func (v *Visit) Grant() *Grant { return v.who.grant }

// NeedsWorker returns an error if the visitor may not do the work of workers.
func (v *Visit) NeedsWorker() error {
	if v.who.role == Worker || v.who.role.atLeast(Operator) {
		return nil
	}
	return Forbidden("this needs role " + string(Worker) + " or " + string(Operator) + "; your token has role " + string(v.who.role))
}
