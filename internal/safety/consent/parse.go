package consent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/inspan/inspan/internal/safety/foreign"
)

// node is a value of a settings file. JSON preserves all of several equal keys: parsers differ on which one
// counts, so people see each.
type node struct {
	key    string
	scalar string // text of a string, number or boolean
	list   bool
	kids   []node // elements of a list or an object
}

// maxNesting bounds the nesting of values.
const maxNesting = 64

var errNesting = fmt.Errorf("more than %d values in one another", maxNesting)

// parse parses JSON, with optional comments and trailing commas, or TOML.
func parse(ext string, data []byte) (node, error) {
	if len(data) > maxParsed {
		return node{}, fmt.Errorf("it is longer than %d bytes", maxParsed)
	}
	if ext == ".toml" {
		var top map[string]any
		if err := toml.Unmarshal(data, &top); err != nil {
			return node{}, errors.New("it is not TOML")
		}
		return fromTOML("", top, maxNesting)
	}
	data, err := foreign.Plain(data)
	if err != nil {
		return node{}, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	top, err := fromJSON(d, maxNesting)
	if err != nil {
		return node{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return node{}, errors.New("something follows its end")
	}
	return top, nil
}

func fromTOML(key string, value any, left int) (node, error) {
	n := node{key: key}
	if left == 0 {
		return n, errNesting
	}
	add := func(key string, value any) error {
		kid, err := fromTOML(key, value, left-1)
		n.kids = append(n.kids, kid)
		return err
	}
	var errs []error
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			errs = append(errs, add(k, v[k]))
		}
	case []map[string]any:
		n.list = true
		for _, each := range v {
			errs = append(errs, add("", each))
		}
	case []any:
		n.list = true
		for _, each := range v {
			errs = append(errs, add("", each))
		}
	default:
		n.scalar = fmt.Sprint(v)
	}
	return n, errors.Join(errs...)
}

func fromJSON(d *json.Decoder, left int) (n node, err error) {
	t, err := d.Token()
	if err != nil {
		return n, errors.New("it is not JSON")
	}
	delim, nested := t.(json.Delim)
	if !nested {
		n.scalar = fmt.Sprint(t)
		if t == nil {
			n.scalar = ""
		}
		return n, nil
	}
	if left == 0 {
		return n, errNesting
	}
	n.list = delim == '['
	for d.More() {
		key := ""
		if !n.list {
			t, err := d.Token()
			if err != nil {
				return n, errors.New("it is not JSON")
			}
			key = fmt.Sprint(t)
		}
		kid, err := fromJSON(d, left-1)
		if err != nil {
			return n, err
		}
		kid.key = key
		n.kids = append(n.kids, kid)
	}
	if _, err := d.Token(); err != nil {
		return n, errors.New("it is not JSON")
	}
	return n, nil
}
