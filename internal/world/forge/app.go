package forge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// App is a GitHub app, which gets a token for each project in which it is installed. It is safe for concurrent
// use.
type App struct {
	ID  string // or its client id
	Key []byte // private, in PEM format

	mu   sync.Mutex
	held map[string]pass // by project
}

// pass is a token of an installation.
type pass struct {
	Token string    `json:"token"`
	Until time.Time `json:"expires_at"`
}

// proof returns a token that proves possession of the app's key to GitHub, whose clock may be a little behind.
func (a *App) proof(now time.Time) (string, error) {
	key, err := jwt.ParseRSAPrivateKeyFromPEM(a.Key)
	if err != nil {
		return "", fmt.Errorf("its private key can't be read: %w", err)
	}
	return jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer: a.ID, IssuedAt: jwt.NewNumericDate(now.Add(-time.Minute)), ExpiresAt: jwt.NewNumericDate(now.Add(9 * time.Minute)),
	}).SignedString(key)
}

// token returns a token for a project, valid for some minutes at least.
func (a *App) token(ctx context.Context, c *caller, project string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.held[project]; time.Until(p.Until) > 5*time.Minute {
		return p.Token, nil
	}
	proof, err := a.proof(time.Now())
	if err != nil {
		return "", err
	}
	as := *c
	as.token = proof
	var where struct {
		ID int64 `json:"id"`
	}
	if err := as.get(ctx, "/repos/"+project+"/installation", "", &where); err != nil {
		return "", err
	}
	var p pass
	err = as.try(ctx, func() error {
		return as.post(ctx, fmt.Sprintf("/app/installations/%d/access_tokens", where.ID), nil, &p)
	})
	if err != nil {
		return "", err
	}
	if a.held == nil {
		a.held = map[string]pass{}
	}
	a.held[project] = p
	return p.Token, nil
}
