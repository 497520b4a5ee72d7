package shell

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// verdict collects the findings about one segment. The zero value is a proven read.
type verdict struct {
	class   Class // empty means Read
	why     string
	effects []tool.Effect
	noRule  bool // no rule may allow it
	opens   bool // no rule may allow it because of redirects, which are proven
}

// full marks it as not proven. The first reason counts.
func (v *verdict) full(why string) {
	if v.class != Full {
		v.class, v.why = Full, why
	}
}

func (v *verdict) network(host string) {
	v.effects = append(v.effects, tool.Effect{Kind: tool.Network, Text: host})
}

func (v *verdict) add(e tool.Effect) {
	if !slices.Contains(v.effects, e) {
		v.effects = append(v.effects, e)
	}
}

// join adds the findings of another verdict.
func (v *verdict) join(o verdict) {
	for _, e := range o.effects {
		v.add(e)
	}
	if o.class != "" && higher(v.class, o.class) != v.class {
		v.class, v.why = o.class, o.why
	}
	v.noRule, v.opens = v.noRule || o.noRule, v.opens || o.opens
}

// settle writes a verdict into its segment.
func (j *judge) settle(at int, v verdict, prefix []string) {
	seg := &j.segments[at]
	seg.Class, seg.Why, seg.Effects = higher(Read, v.class), v.why, v.effects
	if seg.Class == Full {
		seg.Effects = append([]tool.Effect{{Kind: tool.Execute, Text: seg.Text}}, v.effects...)
	}
	switch {
	case v.noRule:
	case v.opens:
		seg.Redirected, seg.Apart = true, prefix
	default:
		seg.Prefix, seg.Exact = prefix, seg.Argv != nil
	}
}

// read records that the files named by a word are read.
func (j *judge) read(w word, s scope, v *verdict) {
	paths := j.places(w, s)
	if paths == nil {
		v.add(effect(tool.Read, "/"))
	}
	for _, p := range paths {
		if strings.HasPrefix(p, "/dev/") && !quiet(p) && !slices.Contains([]string{
			"/dev/stdin",
			"/dev/zero", "/dev/urandom", "/dev/random", "/dev/fd/0",
		}, p) {
			v.full("reading the device " + p + " can do more than read")
		}
		v.add(effect(tool.Read, p))
	}
}

// places lists the absolute paths that a word can mean, or folders above them. Nil means any.
func (j *judge) places(w word, s scope) []string {
	if w.paths == nil {
		return nil
	}
	out := []string{}
	for _, p := range w.paths {
		abs := resolve(s.cwds, p)
		if abs == nil {
			return nil
		}
		out = append(out, abs...)
	}
	return out
}

// write records that the file named by a word is written by what. It is proven only for known paths inside the
// root.
func (j *judge) write(w word, s scope, v *verdict, what string) {
	paths := j.places(w, s)
	if !w.known || w.text == "" || len(paths) == 0 {
		v.full(what + " writes to a path that can't be known")
		return
	}
	for _, p := range paths {
		if quiet(p) {
			continue
		}
		v.add(effect(tool.Write, p))
		switch {
		case !j.at.inside(p):
			v.full(what + " writes outside the workspace: " + p)
		case inGit(p) && !places.GitLock(p):
			v.full(what + " writes inside .git, which can name programs to run")
		default:
			v.join(verdict{class: Workspace, why: what + " writes " + p})
		}
	}
}

// inside reports whether a path is in the workspace or one of its further folders.
func (p Place) inside(path string) bool {
	return text.Inside(p.Root, path) || slices.ContainsFunc(p.Also, func(dir string) bool { return text.Inside(dir, path) })
}

// inGit reports whether a path leads inside a repository, even on case-insensitive file systems.
func inGit(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(name, ".git") {
			return true
		}
	}
	return false
}

func hasAnyPrefix(text string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}
