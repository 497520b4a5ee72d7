package oracle

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-github/v75/github"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/install/schedule"
	"github.com/inspan/inspan/internal/kernel/session"
)

// TestHooks has the libraries of the field sign calls of our webhooks, or agree with who does.
func TestHooks(t *testing.T) {
	state := &config.Installation{StateDir: t.TempDir()}
	set := &schedule.Set{Table: &running.Table{Installation: state, Sessions: &session.Store{Dir: state.SessionsDir()}}}
	one, err := set.Add(t.Context(), schedule.Schedule{
		Root: t.TempDir(), Task: "work", Overlap: schedule.Queue, Hook: &schedule.Hook{Secret: schedule.NewSecret()},
	})
	if err != nil {
		t.Fatal(err)
	}
	takes := func(call schedule.Call) {
		t.Helper()
		if what, err := set.Called(t.Context(), one.ID, call); what != "the run begins" || err != nil {
			t.Errorf("%q, %v", what, err)
		}
	}
	body, now := []byte(`{"action":"opened","n":1}`), time.Now()

	wh, err := standardwebhooks.NewWebhook(one.Hook.Secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := wh.Sign("msg_1", now, body)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set(standardwebhooks.HeaderWebhookID, "msg_1")
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, signature)
	if err := wh.Verify(body, h); err != nil {
		t.Fatal(err)
	}
	takes(schedule.Call{Header: h, Body: body})

	m := hmac.New(sha256.New, []byte(one.Hook.Secret))
	m.Write(body)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(github.EventTypeHeader, "issues")
	r.Header.Set(github.SHA256SignatureHeader, "sha256="+hex.EncodeToString(m.Sum(nil)))
	if payload, err := github.ValidatePayload(r, []byte(one.Hook.Secret)); !bytes.Equal(payload, body) || err != nil {
		t.Fatal(err)
	}
	takes(schedule.Call{Header: r.Header, Body: body})
}
