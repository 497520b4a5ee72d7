package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/safety/netguard"
)

// Releases is the address of the release list on GitHub.
const Releases = "https://api.github.com/repos/inspan/inspan/releases"

const (
	releasesTime = 10 * time.Second
	maxReleases  = 4 << 20 // bytes of the list
)

// Version returns the version of this build: that of its tag, if it was built or installed by a version,
// otherwise that of the source.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return inspan.Version
	}
	return versionOf(info.Main.Version)
}

// versionOf returns the version of a build whose main module has a version.
func versionOf(mod string) string {
	if !semver.IsValid(mod) || module.IsPseudoVersion(mod) || semver.Build(mod) != "" {
		return inspan.Version
	}
	return strings.TrimPrefix(mod, "v")
}

// Release is an entry of the release list.
type Release struct {
	Tag        string `json:"tag_name"`
	Page       string `json:"html_url"`
	Draft      bool   `json:"draft"`
	Prerelease bool   `json:"prerelease"`
}

// Newest returns the newest release of the list at url. It sends one GET that identifies neither the version
// nor the machine.
func Newest(ctx context.Context, url string) (Release, error) {
	list, err := releases(ctx, url)
	if err != nil {
		return Release{}, fmt.Errorf("look for a newer release: %w", err)
	}
	var newest Release
	for _, r := range list {
		if !r.Draft && !r.Prerelease && semver.IsValid(r.Tag) && (newest.Tag == "" || semver.Compare(r.Tag, newest.Tag) > 0) {
			newest = r
		}
	}
	if newest.Tag == "" {
		return Release{}, fmt.Errorf("%s lists no release yet", url)
	}
	return newest, nil
}

// guardOf returns a guard for the request. A list at another address may be on this machine or network.
func guardOf(url string) *netguard.Guard {
	g := &netguard.Guard{Timeout: releasesTime, MaxBytes: 2 * maxReleases} // twice the limit, so that our own error reports a long list
	if url != Releases {
		g.Local = netguard.Anywhere()
	}
	return g
}

func releases(ctx context.Context, url string) (list []Release, err error) {
	ctx, cancel := context.WithTimeout(ctx, releasesTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "inspan") // GitHub requires a name
	resp, err := guardOf(url).Client().Do(req)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%s did not answer within %s", url, releasesTime)
		}
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s does not exist (404)", url)
	case http.StatusForbidden, http.StatusTooManyRequests:
		return nil, fmt.Errorf("%s limits requests (%d); try again in an hour", url, resp.StatusCode)
	default:
		return nil, fmt.Errorf("%s answered %s", url, resp.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxReleases+1))
	if err == nil && len(raw) > maxReleases {
		err = errors.New("the list of releases is too long")
	}
	if err == nil && json.Unmarshal(raw, &list) != nil {
		err = fmt.Errorf("%s sent no list of releases", url)
	}
	return list, err
}

// Newer reports whether a release is newer than a version.
func (r Release) Newer(version string) bool { return semver.Compare(r.Tag, "v"+version) > 0 }
