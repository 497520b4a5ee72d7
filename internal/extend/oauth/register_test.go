package oauth_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// TestRegistration checks the data of our registration, and that we then identify ourselves in the way that the server
// has chosen.
func TestRegistration(t *testing.T) {
	const id, secret = "an id: ü", "a+secret/&"
	full := fmt.Sprintf(`"client_id":%q,"client_secret":%q`, id, secret)
	for _, tt := range []struct {
		name   string
		offers any // of the server; nil means it does not say
		gives  string
		wants  string // what we asked for
		way    string // how we say who we are
	}{
		{"says nothing, gives no secret", nil, fmt.Sprintf(`"client_id":%q`, id), "none", "none"},
		{"says nothing, gives a secret", nil, full, "none", "basic"},
		{"takes clients without secrets", []string{"client_secret_basic", "none"}, full + `,"token_endpoint_auth_method":"none"`, "none", "none"},
		{"takes secrets in the form", []string{"client_secret_post"}, full, "client_secret_post", "post"},
		{"takes secrets in the header", []string{"client_secret_post", "client_secret_basic"}, full, "client_secret_basic", "basic"},
		{"settles on another way", []string{"client_secret_basic"}, full +
			`,"token_endpoint_auth_method":"client_secret_post"`, "client_secret_basic", "post"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t), newClient(t)
			w.server["token_endpoint_auth_methods_supported"] = tt.offers
			var about map[string]any
			w.on["/register"] = func(rw http.ResponseWriter, req *http.Request) {
				_ = json.NewDecoder(req.Body).Decode(&about)
				raw("{"+tt.gives+"}")(rw, req)
			}
			way := ""
			w.on["/token"] = func(rw http.ResponseWriter, req *http.Request) {
				user, password, basic := req.BasicAuth()
				switch {
				case basic && user == "an+id%3A+%C3%BC" && password == "a%2Bsecret%2F%26" && !req.PostForm.Has("client_id"):
					way = "basic"
				case !basic && req.FormValue("client_id") == id && req.FormValue("client_secret") == secret:
					way = "post"
				case !basic && req.FormValue("client_id") == id && !req.PostForm.Has("client_secret"):
					way = "none"
				}
				reply(rw, w.token)
			}
			must(t, w.login(t, c, w.account(), ""))
			if about["token_endpoint_auth_method"] != tt.wants || way != tt.way {
				t.Errorf("asked for %v, used %q", about["token_endpoint_auth_method"], way)
			}
			back, _ := about["redirect_uris"].([]any)
			if about["application_type"] != "native" || about["scope"] != "read" || !slices.Contains(back, any(w.page().Get("redirect_uri"))) {
				t.Error(about)
			}
		})
	}
}
