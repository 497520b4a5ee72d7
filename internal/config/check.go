package config

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

func (s Sandbox) check() error {
	if _, err := s.Ranges(); err != nil {
		return err
	}
	if e := s.Engine; e != "" && e != "podman" && e != "docker" && filepath.Base(e) == e {
		return fmt.Errorf("engine: %q is neither podman nor docker nor a path", e)
	}
	for _, name := range s.Environment {
		if name == "" || strings.ContainsAny(name, "= \x00") {
			return fmt.Errorf("environment: %q is not the name of a variable", name)
		}
	}
	return cmp.Or(
		checkRange("processes", int64(s.Processes), math.MaxInt64),
		checkRange("cpu_seconds", int64(s.CPU), math.MaxInt64/int64(time.Second)),
		checkRange("memory_mb", s.Memory, mostMegabytes),
		checkRange("file_mb", s.FileSize, mostMegabytes),
	)
}

// mostMegabytes is what fits into a number of bytes.
const mostMegabytes = math.MaxInt64 >> 20

func checkRange(key string, n, most int64) error {
	if n < 0 || n > most {
		return fmt.Errorf("%s: %d is not between 0 and %d", key, n, most)
	}
	return nil
}

func (r *Router) check() error {
	if r == nil {
		return nil
	}
	for _, expr := range r.Private {
		if _, err := regexp.Compile(expr); err != nil {
			return fmt.Errorf("private: %w", err)
		}
	}
	return nil
}

func checkGlobs(globs []string) error {
	for _, g := range globs {
		if _, err := path.Match(g, ""); err != nil || g == "" {
			return fmt.Errorf("protected_branches: %q is not a pattern such as \"release/*\"", g)
		}
	}
	return nil
}

func checkPublic(globs []string) error {
	for _, g := range globs {
		if !doublestar.ValidatePathPattern(g) || g == "" {
			return fmt.Errorf("public: %q is not a pattern such as \"testdata/*.pem\"", g)
		}
	}
	return nil
}

// finite returns an error for a number in settings that is infinite, or none: no
// comparison with it would mean anything.
func finite(at string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); math.IsInf(f, 0) || math.IsNaN(f) {
			return fmt.Errorf("%s: %v is not a finite number", at, f)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return finite(at, v.Elem())
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if err := finite(below(at, field.Tag.Get("toml")), value); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := finite(fmt.Sprintf("%s[%d]", at, i), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for name, value := range v.Seq2() {
			if err := finite(below(at, bare(name.String())), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// below is the path of a key in a table; the fields of an embedded one have none.
func below(table, key string) string {
	return strings.Trim(table+"."+key, ".")
}
