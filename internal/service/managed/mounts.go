package managed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/service/server"
)

// Files and repositories are in the workspace of their session: the client's path /workspace/a is a there, and
// /mnt/b is mnt/b.

const (
	fileType         = "file"
	repositoryType   = "github_repository"
	uploads          = "/mnt/session/uploads/"
	checkouts        = "/workspace/"
	secretOfResource = "resource/"
	branchCheckout   = "branch"
	commitCheckout   = "commit"
)

// place returns the path of a resource in the workspace; empty means none.
func (r resource) place() string {
	if r.Type != fileType && r.Type != repositoryType {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(r.MountPath, checkouts), "/")
}

func (r resource) secretName() string { return secretOfResource + r.ID }

// checkout is the part of a repository to check out.
type checkout struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	SHA  string `json:"sha,omitempty"`
}

// fileResource reads a request for a file.
func (d *door) fileResource(at string, in newResource) (resource, error) {
	r := resource{Type: in.Type, File: in.File, MountPath: in.MountPath.value}
	if r.MountPath == "" {
		r.MountPath = uploads + r.File
	}
	if _, _, err := d.found(in.File); err != nil {
		return r, err
	}
	if _, err := d.Own(ofFile, in.File); err != nil {
		return r, missing("file", in.File)
	}
	return r, r.checkMount(at)
}

// repositoryResource reads a request for a repository, with its token.
func (d *door) repositoryResource(at string, in newResource) (resource, error) {
	r := resource{Type: in.Type, URL: in.URL, MountPath: in.MountPath.value, Checkout: in.Checkout, token: in.Token, Secret: in.Token != ""}
	if r.MountPath == "" {
		r.MountPath = checkouts + strings.TrimSuffix(path.Base(strings.TrimRight(in.URL, "/")), ".git")
	}
	if c := in.Checkout; c != nil {
		switch {
		case c.Type == branchCheckout && c.Name != "" && c.SHA == "":
		case c.Type == commitCheckout && c.Name == "" && strings.Trim(c.SHA, "0123456789abcdef") == "" && len(c.SHA) >= 7 && len(c.SHA) <= 64:
		default:
			return r, invalid(at+".checkout", "it is neither a branch nor a commit",
				`{"type": "branch", "name": "main"} or {"type": "commit", "sha": "7 to 64 hexadecimal digits"}`)
		}
	}
	if err := d.CheckCheckout(r.checkedOut(in.Token)); err != nil {
		return r, server.Within(at, err)
	}
	return r, r.checkMount(at)
}

// checkedOut returns the repository in the form for cloning.
func (r resource) checkedOut(token string) server.Checkout {
	c := server.Checkout{Repository: server.Repository{URL: r.URL}, Token: token}
	if r.Checkout != nil {
		c.Ref, c.Commit = r.Checkout.Name, r.Checkout.SHA
	}
	return c
}

func (r resource) checkMount(at string) error {
	const want = "a path such as /workspace/data/a.csv"
	if !strings.HasPrefix(r.MountPath, "/") {
		return invalid(at+".mount_path", "it does not begin with /", want)
	}
	return checkPlace(at+".mount_path", r.place(), want)
}

// collide reports two resources with conflicting paths. A file may be in a repository.
func collide(at string, r resource, others []resource) error {
	mine := r.place()
	for _, other := range others {
		place := other.place()
		below := strings.HasPrefix(mine, place+"/") && (other.Type == fileType || r.Type == repositoryType)
		above := strings.HasPrefix(place, mine+"/") && (r.Type == fileType || other.Type == repositoryType)
		if mine != "" && place != "" && (mine == place || below || above) {
			return invalid(at+".mount_path", "something else is at "+other.MountPath, "another path")
		}
	}
	return nil
}

// furnish puts the files and repositories of a session into its new workspace.
func (k *secrets) furnish(v *server.Visit, t server.Task, dir string) error {
	s, is, err := sessionOf(v, t.ID)
	if err != nil || !is {
		return err
	}
	list := slices.Clone(s.Resources)
	slices.SortStableFunc(list, func(a, b resource) int { return strings.Compare(b.Type, a.Type) }) // files may be in repositories
	for _, r := range list {
		switch r.Type {
		case repositoryType:
			err = k.clone(v, r, dir)
		case fileType:
			err = placeFile(v, r, dir)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.MountPath, err)
		}
	}
	for _, r := range s.Agent.Skills {
		if err := placeSkill(v, r, dir); err != nil {
			return fmt.Errorf("skill %s: %w", r.ID, err)
		}
	}
	return nil
}

// clone clones a repository into a new workspace that no agent has used yet.
func (k *secrets) clone(v *server.Visit, r resource, dir string) error {
	token := ""
	if r.Secret {
		if err := v.Secret(v, r.secretName(), &token); err != nil {
			return err
		}
	}
	to := filepath.Join(dir, filepath.FromSlash(r.place()))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return v.Clone(r.checkedOut(token), to)
}

// placeFile writes a file into a workspace.
func placeFile(v *server.Visit, r resource, dir string) error {
	o, err := v.Object(ofFile, r.File)
	if err != nil {
		return missing("file", r.File)
	}
	data, err := v.Load(o.Content)
	if err != nil {
		return err
	}
	return inside(dir, r, func(root *os.Root, place string) error {
		if err := root.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			return err
		}
		if err := root.Remove(place); err != nil && !os.IsNotExist(err) {
			return err
		}
		return root.WriteFile(place, data, 0o600)
	})
}

// removeFile removes a file from a workspace, unless it is already gone.
func removeFile(r resource, dir string) error {
	return inside(dir, r, func(root *os.Root, place string) error {
		if err := root.Remove(place); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	})
}

// inside calls f with the place of a resource in a workspace. No link leads out of the workspace there.
func inside(dir string, r resource, f func(root *os.Root, place string) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(f(root, filepath.FromSlash(r.place())), root.Close())
}

// sessionOf returns the session of a task; the task may be of another door.
func sessionOf(v *server.Visit, task string) (k keptSession, is bool, err error) {
	o, err := v.Object(ofSession, task)
	if err != nil {
		return k, false, nil //nolint:nilerr // it is one of another door
	}
	return k, true, json.Unmarshal(o.Value, &k)
}

// forgetTokens removes the tokens of a session when it has its workspace, or is over.
func (k *secrets) forgetTokens(ctx context.Context, id string) {
	v, err := k.s.For(ctx, id, "")
	if err != nil {
		return
	}
	_, err = v.Wait(id, func(t server.Task) bool { return t.Session != "" || isOver(t) })
	if err != nil {
		return // the server ends; the next one continues
	}
	var names []string
	_, _, err = changed(&door{Visit: v}, ofSession, id, func(s *keptSession) error {
		for i := range s.Resources {
			if s.Resources[i].Secret {
				names = append(names, s.Resources[i].secretName())
				s.Resources[i].Secret = false
			}
		}
		return nil
	})
	if err == nil {
		for _, name := range names {
			k.s.ForgetSecret(name)
		}
	}
}

// mounted returns the prompt's text about files and repositories.
func mounted(list []resource) string {
	var b strings.Builder
	for _, r := range list {
		if place := r.place(); place != "" {
			fmt.Fprintf(&b, "\n- %s", place)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "# Files of this session\n\nThese are in the workspace for you. " +
		"What the user calls /workspace/a is a in the workspace, and /mnt/b is mnt/b.\n" + b.String()
}
