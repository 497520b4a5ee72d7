package server

import (
	"errors"
	"io"
	"net/http"
	"reflect"

	"github.com/inspan/inspan/internal/install/schedule"
	"github.com/inspan/inspan/store"
)

const hooksPath = "/hooks/"

// hookResult is the result of a webhook call.
type hookResult struct {
	Status string `json:"status" jsonschema:"what came of the call, in words"`
}

// hooks returns the endpoint of webhooks that begin runs, or answer steps that wait for them. The signature
// identifies the caller.
func (s *Server) hooks() endpoint {
	e := plain("callHook", hooksPath+"{name}", "", "Call a webhook of a schedule, with the signature of Standard Webhooks or GitHub.",
		map[int]reflect.Type{http.StatusAccepted: reflect.TypeFor[hookResult]()}, s.hook)
	e.method, e.in = http.MethodPost, reflect.TypeFor[hookName]()
	return e
}

// hookName is the path of a call of a webhook. Its body is for the schedule.
type hookName struct {
	Name string `json:"-" path:"name"`
}

func (s *Server) hook(w http.ResponseWriter, r *http.Request) {
	what, err := s.called(r)
	if err != nil {
		RefuseWith(w, err)
		return
	}
	Reply(w, http.StatusAccepted, hookResult{what})
}

// called handles a call, and returns its result.
func (s *Server) called(r *http.Request) (string, error) {
	session := r.URL.Query().Get("session")
	if session != "" && !store.IsID(session) {
		return "", Wrong("session", "it is not the whole id of a session", "one that waits for the webhook, or none")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, schedule.MaxEvent+1))
	if err != nil {
		return "", &Problem{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "the body was cut off"}
	}
	what, err := "", schedule.ErrSignature
	if s.Schedules != nil {
		what, err = s.Schedules.Called(r.Context(), r.PathValue("name"), schedule.Call{Header: r.Header, Body: body, Session: session})
	}
	switch {
	case errors.Is(err, schedule.ErrSignature):
		return "", &Problem{Status: http.StatusUnauthorized, Type: "authentication_error", Message: err.Error()}
	case errors.Is(err, schedule.ErrLarge):
		return "", BodyTooLarge()
	case errors.Is(err, schedule.ErrFull):
		return "", &Problem{Status: http.StatusServiceUnavailable, Type: "overloaded_error", Message: err.Error(), Retry: 60}
	}
	return what, err
}
