package managed

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// A skill is an object of the book, and so is each of its versions, whose content is its folder as a zip
// archive. The folders are put into the workspace of a session where inspan looks for skills of a project.

const (
	ofSkill       = "managed.skill"
	versionPrefix = "skillver_"
	skillFile     = "SKILL.md"
	latest        = "latest"
	customSkill   = "custom"

	mostSkills     = 20   // of an agent
	mostSkillFiles = 1000 // of a skill
)

// ofSkillVersion returns the kind of the versions of a skill.
func ofSkillVersion(id string) string { return "managed.skill_version:" + id }

func skillEndpoints() []endpoint {
	const one = "skills/{id}/versions/{version}"
	k := skillKind()
	return []endpoint{
		post("skills", (*door).makeSkill),
		get("skills", (*door).skills, "limit", "page", "source"),
		get("skills/{id}", k.read),
		del("skills/{id}", (*door).deleteSkill),
		post("skills/{id}/versions", (*door).makeSkillVersion),
		get("skills/{id}/versions", (*door).skillVersions, "limit", "page"),
		get(one, (*door).skillVersion),
		get(one+"/content", (*door).downloadSkill),
		del(one, (*door).deleteSkillVersion),
	}
}

// skillRef names a skill of an agent, and its version.
type skillRef struct {
	Type    string `json:"type"`
	ID      string `json:"skill_id"`
	Version string `json:"version"`
}

// keptSkill is a skill in the book.
type keptSkill struct {
	Title  string `json:"title"`
	Name   string `json:"name"` // of its folder, for all versions
	Latest string `json:"latest"`
}

// keptSkillVersion is a version in the book.
type keptSkillVersion struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// folder is an uploaded skill.
type folder struct {
	skill.Skill
	zipped []byte
	digest string
}

var skillName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// skillForm reads the folder of a skill.
func (d *door) skillForm(texts ...string) (f folder, said map[string]string, err error) {
	list, said, err := d.form("files", texts...)
	if err != nil {
		return f, nil, err
	}
	if len(list) == 0 || len(list) > mostSkillFiles {
		return f, nil, invalid("files", fmt.Sprintf("there are %d", len(list)), fmt.Sprintf("1 to %d", mostSkillFiles))
	}
	files, top := map[string][]byte{}, ""
	for _, one := range list {
		if err := checkPlace("files", one.Name, "paths such as my-skill/"+skillFile); err != nil {
			return f, nil, err
		}
		dir, rest, below := strings.Cut(one.Name, "/")
		if top = cmp.Or(top, dir); !below || dir != top {
			return f, nil, invalid("files", "they are not all in one folder", "paths such as my-skill/"+skillFile)
		}
		if files[rest] != nil {
			return f, nil, invalid("files", "one is there twice: "+one.Name, "each once")
		}
		files[rest] = append([]byte{}, one.Data...)
	}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if files[dir] != nil {
				return f, nil, invalid("files", dir+" is a file and a folder", "one of both")
			}
		}
	}
	if files[skillFile] == nil {
		return f, nil, invalid("files", "there is no "+top+"/"+skillFile, "a folder with one")
	}
	if len(files[skillFile]) > skill.MaxSize {
		return f, nil, tooLarge("files", len(files[skillFile]), skill.MaxSize)
	}
	if f.Skill, err = skill.Parse(top, files[skillFile]); err != nil {
		return f, nil, invalid("files", skillFile+" can't be read: "+err.Error(), "front matter with a name and a description")
	}
	if len(f.Name) > 64 || !skillName.MatchString(f.Name) {
		return f, nil, invalid("files", "the skill is called "+words.OneLine(fmt.Sprintf("%q", f.Name), 80),
			"a name such as my-skill, of at most 64 characters")
	}
	if f.Description == "" {
		return f, nil, invalid("files", skillFile+" has no description", "front matter with a name and a description")
	}
	f.zipped, err = zipped(f.Name, files)
	f.digest = tool.Digest(f.zipped)
	return f, said, err
}

// zipped returns a folder as an archive, the same for the same files.
func zipped(top string, files map[string][]byte) ([]byte, error) {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range names {
		f, err := w.Create(path.Join(top, name))
		if err == nil {
			_, err = f.Write(files[name])
		}
		if err != nil {
			return nil, err
		}
	}
	err := w.Close() // it writes the directory of the archive
	return out.Bytes(), err
}

func skillKind() kind[keptSkill, map[string]any] {
	return kind[keptSkill, map[string]any]{ofSkill, "skill_", func(_ *door, o server.Object, k keptSkill) (map[string]any, error) {
		return map[string]any{
			"id": o.ID, "type": "skill", "display_name": k.Title, "latest_version_id": k.Latest, "source": map[string]any{"type": customSkill},
			"created_at": stamp(o.Created), "updated_at": stamp(o.Updated),
		}, nil
	}}
}

func (d *door) makeSkill() (any, error) {
	f, said, err := d.skillForm("display_name")
	if err != nil {
		return nil, err
	}
	title, there := said["display_name"]
	if !there {
		title = f.Name
	}
	if err := named("display_name", title, mostShown); err != nil {
		return nil, err
	}
	o, err := d.MakeStored(ofSkill, "skill_", []any{said, f.digest}, f.zipped, func(e *server.Edit, id string, content server.Content) error {
		k := keptSkill{title, f.Name, versionPrefix + strings.ToLower(rand.Text())}
		if err := e.Put(ofSkill, id, d.Tenant(), k, server.Content{}); err != nil {
			return err
		}
		return e.Put(ofSkillVersion(id), k.Latest, d.Tenant(), keptSkillVersion{f.Name, f.Description}, content)
	})
	if err != nil {
		return nil, err
	}
	return skillKind().view(d, o.ID)
}

func (d *door) makeSkillVersion() (any, error) {
	id := d.r.PathValue("id")
	if _, _, err := objectOf[keptSkill](d.Object, ofSkill, id); err != nil {
		return nil, err
	}
	f, _, err := d.skillForm()
	if err != nil {
		return nil, err
	}
	request := []any{id, f.digest}
	o, err := d.MakeStored(ofSkillVersion(id), versionPrefix, request, f.zipped, func(e *server.Edit, version string, content server.Content) error {
		skill, k, err := objectOf[keptSkill](e.Object, ofSkill, id)
		if err != nil {
			return err
		}
		if k.Name != f.Name {
			return invalid("files", "the skill is called "+f.Name, k.Name+", as it was at first")
		}
		k.Latest = version
		if err := e.Put(ofSkillVersion(id), version, skill.Tenant, keptSkillVersion{f.Name, f.Description}, content); err != nil {
			return err
		}
		return e.Put(ofSkill, id, skill.Tenant, k, server.Content{})
	})
	if err != nil {
		return nil, err
	}
	return keptSkillVersion{f.Name, f.Description}.shown(id, o), nil
}

func (d *door) skills() (any, error) {
	source, err := d.choice("source", customSkill, "anthropic")
	if err != nil {
		return nil, err
	}
	all := newest[keptSkill](d, ofSkill)
	if source == "anthropic" {
		all = nil
	}
	return skillKind().page(d, all, 1000)
}

// deleteSkill deletes a skill with all its versions.
func (d *door) deleteSkill() (any, error) {
	id := d.r.PathValue("id")
	err := d.Edit(func(e *server.Edit) error {
		if _, _, err := objectOf[keptSkill](e.Object, ofSkill, id); err != nil {
			return err
		}
		for _, o := range e.Objects(ofSkillVersion(id)) {
			e.Remove(ofSkillVersion(id), o.ID)
		}
		e.Remove(ofSkill, id)
		return nil
	})
	return map[string]any{"id": id, "type": "skill_deleted"}, err
}

// versionAt returns the version that the request names, or the latest.
func (d *door) versionAt() (server.Object, keptSkillVersion, error) {
	id, version := d.r.PathValue("id"), d.r.PathValue("version")
	_, k, err := objectOf[keptSkill](d.Object, ofSkill, id)
	if err != nil {
		return server.Object{}, keptSkillVersion{}, err
	}
	if version == latest {
		version = k.Latest
	}
	return objectOf[keptSkillVersion](d.Object, ofSkillVersion(id), version)
}

func (k keptSkillVersion) shown(id string, o server.Object) map[string]any {
	return map[string]any{
		"id": o.ID, "type": "skill_version", "skill_id": id, "name": k.Name, "description": k.Description, "created_at": stamp(o.Created),
	}
}

func (d *door) skillVersions() (any, error) {
	id := d.r.PathValue("id")
	if _, _, err := objectOf[keptSkill](d.Object, ofSkill, id); err != nil {
		return nil, err
	}
	return shownPage(d, newest[keptSkillVersion](d, ofSkillVersion(id)), 1000, func(e entry[keptSkillVersion]) (map[string]any, error) {
		return e.kept.shown(id, e.Object), nil
	})
}

func (d *door) skillVersion() (any, error) {
	o, k, err := d.versionAt()
	if err != nil {
		return nil, err
	}
	return k.shown(d.r.PathValue("id"), o), nil
}

func (d *door) downloadSkill() (any, error) {
	o, k, err := d.versionAt()
	if err != nil {
		return nil, err
	}
	data, err := d.Load(o.Content)
	if err != nil {
		return nil, err
	}
	d.attach(k.Name+".zip", "application/zip", data)
	return nil, nil
}

// deleteSkillVersion deletes a version. The newest of the others then is the latest.
func (d *door) deleteSkillVersion() (any, error) {
	gone, _, err := d.versionAt()
	if err != nil {
		return nil, err
	}
	id := d.r.PathValue("id")
	err = d.Edit(func(e *server.Edit) error {
		o, k, err := objectOf[keptSkill](e.Object, ofSkill, id)
		if err != nil {
			return err
		}
		others := slices.DeleteFunc(e.Objects(ofSkillVersion(id)), func(o server.Object) bool { return o.ID == gone.ID })
		if len(others) == 0 {
			return conflict("it is the only version; delete the skill")
		}
		k.Latest = others[len(others)-1].ID
		e.Remove(ofSkillVersion(id), gone.ID)
		return e.Put(ofSkill, id, o.Tenant, k, o.Content)
	})
	return map[string]any{"id": gone.ID, "type": "skill_version_deleted"}, err
}

// checkSkills reports what is wrong with the skills of an agent, and fills in their versions.
func (d *door) checkSkills(list []skillRef) ([]skillRef, error) {
	if len(list) > mostSkills {
		return nil, invalid("skills", fmt.Sprintf("there are %d", len(list)), fmt.Sprintf("at most %d", mostSkills))
	}
	out := []skillRef{}
	for i, r := range list {
		at := fmt.Sprintf("skills.%d", i)
		switch {
		case r.Type == "anthropic":
			return nil, unserved(at+".type", "the vendor's own skills; upload one of type custom")
		case r.Type != customSkill:
			return nil, invalid(at+".type", fmt.Sprintf("it is %q", words.OneLine(r.Type, 40)), customSkill)
		}
		r.Version = cmp.Or(r.Version, latest)
		out = append(out, r)
	}
	_, err := d.pinned(out)
	return out, err
}

// pinned returns skills with their current versions.
func (d *door) pinned(list []skillRef) ([]skillRef, error) {
	out, names := []skillRef{}, map[string]bool{}
	for i, r := range list {
		_, k, err := objectOf[keptSkill](d.Own, ofSkill, r.ID)
		if err != nil {
			return nil, err
		}
		if r.Version == latest {
			r.Version = k.Latest
		}
		if _, err := d.Own(ofSkillVersion(r.ID), r.Version); err != nil {
			return nil, missing("version of skill "+r.ID, r.Version)
		}
		if names[k.Name] {
			return nil, invalid(fmt.Sprintf("skills.%d", i), "there is another skill "+k.Name, "skills with different names")
		}
		names[k.Name] = true
		out = append(out, r)
	}
	return out, nil
}

// placeSkill puts the folder of a skill into a workspace.
func placeSkill(v *server.Visit, r skillRef, dir string) error {
	o, err := v.Object(ofSkillVersion(r.ID), r.Version)
	if err != nil {
		return missing("version of skill "+r.ID, r.Version)
	}
	data, err := v.Load(o.Content)
	if err != nil {
		return err
	}
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for _, f := range files.File {
		if err == nil {
			err = unzip(root, f)
		}
	}
	return errors.Join(err, root.Close())
}

// unzip writes a file of a skill.
func unzip(root *os.Root, f *zip.File) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	data, err := io.ReadAll(from)
	if err := errors.Join(err, from.Close()); err != nil {
		return err
	}
	to := filepath.Join(".inspan", "skills", filepath.FromSlash(f.Name))
	if err := root.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return root.WriteFile(to, data, 0o700)
}
