package managed

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
)

// upload is a file of a form.
type upload struct {
	Name string // with the client's folders
	Type string // empty means not given
	Data []byte
}

// form reads a form: the files of one field, and the texts of others. The gate limits its size.
func (d *door) form(files string, texts ...string) (list []upload, said map[string]string, err error) {
	parts, err := d.r.MultipartReader()
	if err != nil {
		return nil, nil, invalid("body", "it is not a form", "multipart/form-data")
	}
	said = map[string]string{}
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return list, said, nil
		}
		var data []byte
		if err == nil {
			data, err = io.ReadAll(part)
		}
		if _, big := errors.AsType[*http.MaxBytesError](err); big {
			return nil, nil, server.BodyTooLarge()
		}
		if err != nil {
			return nil, nil, invalid("body", "the form can't be read", "multipart/form-data")
		}
		name := strings.TrimSuffix(part.FormName(), "[]")
		_, there := said[name]
		switch {
		case name == files:
			_, params, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			list = append(list, upload{params["filename"], part.Header.Get("Content-Type"), data})
		case there:
			return nil, nil, invalid(name, "it is there twice", "one value")
		case slices.Contains(texts, name):
			said[name] = string(data)
		default:
			return nil, nil, invalid(words.OneLine(name, 80), "unknown field", strings.Join(append([]string{files}, texts...), ", "))
		}
	}
}

const mostPlace = 1024 // bytes of a path

// checkPlace reports what is wrong with a path in a workspace, which must be relative with slashes.
func checkPlace(field, place, want string) error {
	switch {
	case place == "" || place == "." || path.Clean(place) != place || !filepath.IsLocal(place):
		return invalid(field, "it is not the path of a file", want)
	case len(place) > mostPlace:
		return invalid(field, "it is too long", "a shorter path")
	case text.Holds(place, text.Hidden) || strings.Contains(place, "\\"):
		return invalid(field, "it has characters that can't be in a path", want)
	}
	for part := range strings.SplitSeq(place, "/") {
		if strings.EqualFold(part, ".git") {
			return invalid(field, "it is in a folder of git itself", want)
		}
		if len(part) > 255 {
			return invalid(field, "a name in it is too long", "names of at most 255 bytes")
		}
	}
	return nil
}
