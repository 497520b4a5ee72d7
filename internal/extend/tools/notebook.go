package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// A notebook is the JSON text of a Jupyter notebook and the places of its cells, so that a change touches
// nothing else. The format is nbformat 4: https://nbformat.readthedocs.io/en/latest/format_description.html
type notebook struct {
	raw   []byte
	array span // the list of cells, brackets included
	cells []cell
	ids   bool // cells have ids: nbformat 4.5 and later
}

// span is a part of the text.
type span struct{ from, to int }

type cell struct {
	span
	fields map[string]span // values by their keys
	Type   string
	Source string
	Output []string // texts of the outputs
}

var errNotebook = errors.New("it is not a notebook of format 4")

// parseNotebook finds the cells.
func parseNotebook(data []byte) (*notebook, error) {
	nb := &notebook{raw: data}
	top, err := fieldsOf(data, span{0, len(data)})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotebook, err)
	}
	var major, minor int
	if json.Unmarshal(nb.at(top["nbformat"]), &major) != nil || major != 4 {
		return nil, errNotebook
	}
	_ = json.Unmarshal(nb.at(top["nbformat_minor"]), &minor) // it may be missing
	nb.ids = minor >= 5
	nb.array = top["cells"]
	var items []span
	err = values(data, nb.array, '[', func(_ string, s span) { items = append(items, s) })
	if err != nil {
		return nil, fmt.Errorf("%w: cells: %w", errNotebook, err)
	}
	for i, at := range items {
		c := cell{span: at}
		if c.fields, err = fieldsOf(data, at); err != nil {
			return nil, fmt.Errorf("cell %d: %w", i+1, err)
		}
		if json.Unmarshal(nb.at(c.fields["cell_type"]), &c.Type) != nil {
			return nil, fmt.Errorf("cell %d has no type", i+1)
		}
		c.Source = joined(nb.at(c.fields["source"]))
		c.Output = outputs(nb.at(c.fields["outputs"]))
		nb.cells = append(nb.cells, c)
	}
	return nb, nil
}

func (nb *notebook) at(s span) []byte { return nb.raw[s.from:s.to] }

// fieldsOf finds the values of the object at a place.
func fieldsOf(data []byte, at span) (map[string]span, error) {
	out := map[string]span{}
	err := values(data, at, '{', func(key string, s span) { out[key] = s })
	return out, err
}

// values calls found for each value of the object or list that begins at a place.
func values(data []byte, at span, opening json.Delim, found func(key string, s span)) error {
	dec := json.NewDecoder(bytes.NewReader(data[at.from:at.to]))
	first, err := dec.Token()
	if err != nil {
		return err
	}
	if first != opening {
		return fmt.Errorf("%v stands where %v should", first, opening)
	}
	for dec.More() {
		key := ""
		if opening == '{' {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			key, _ = name.(string)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		end := at.from + int(dec.InputOffset())
		found(key, span{end - len(raw), end})
	}
	_, err = dec.Token() // the closing one
	return err
}

// joined returns a text that is stored as one string or as a list of lines.
func joined(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var lines []string
	_ = json.Unmarshal(raw, &lines) // neither: it shows nothing
	return strings.Join(lines, "")
}

// outputs returns the texts of a cell's outputs, or their kinds if they have no text.
func outputs(raw []byte) []string {
	var list []struct {
		Type  string                     `json:"output_type"`
		Text  json.RawMessage            `json:"text"`
		Data  map[string]json.RawMessage `json:"data"`
		Error string                     `json:"ename"`
		Value string                     `json:"evalue"`
	}
	_ = json.Unmarshal(raw, &list) // a value that is not a list shows nothing
	var out []string
	for _, o := range list {
		switch text := joined(o.Text); {
		case o.Error != "":
			out = append(out, o.Error+": "+o.Value)
		case text != "":
			out = append(out, text)
		case o.Data["text/plain"] != nil:
			out = append(out, joined(o.Data["text/plain"]))
		default:
			out = append(out, "["+o.Type+"]")
		}
	}
	return out
}

const shownOutput = 500 // bytes of the outputs of one cell

// text shows the cells.
func (nb *notebook) text() string {
	var b strings.Builder
	for i, c := range nb.cells {
		fmt.Fprintf(&b, "## Cell %d (%s)\n%s\n", i+1, c.Type, strings.TrimRight(c.Source, "\n"))
		if len(c.Output) > 0 {
			out := strings.TrimRight(strings.Join(c.Output, "\n"), "\n")
			head, tail, dropped := text.CutMiddle(out, shownOutput)
			if dropped > 0 {
				out = fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", head, dropped, tail)
			}
			fmt.Fprintf(&b, "### Output\n%s\n", out)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[%s]", text.Count(len(nb.cells), "cell"))
	return b.String()
}

// replace gives a cell a new source, and a new type unless kind is empty.
func (nb *notebook) replace(i int, kind, source string) ([]byte, error) {
	c := nb.cells[i]
	if kind != "" && kind != c.Type {
		// Other types have other fields, so it becomes a new one.
		fresh, err := nb.fresh(kind, source, i)
		return nb.splice(c.span, fresh), err
	}
	at, ok := c.fields["source"]
	if !ok {
		return nil, fmt.Errorf("cell %d has no source", i+1)
	}
	text, err := nb.encode(lineItems(source), nb.indent(at.from))
	if err != nil {
		return nil, err
	}
	out := nb.splice(at, text)
	if c.Type != "code" {
		return out, nil
	}
	for _, field := range []struct{ name, value string }{{"outputs", "[]"}, {"execution_count", "null"}} {
		now, err := parseNotebook(out)
		if err != nil {
			return nil, err
		}
		if at, ok := now.cells[i].fields[field.name]; ok {
			out = now.splice(at, []byte(field.value))
		}
	}
	return out, nil
}

// insert puts a new cell before number i, from 0.
func (nb *notebook) insert(i int, kind, source string) ([]byte, error) {
	fresh, err := nb.fresh(kind, source, i)
	if err != nil {
		return nil, err
	}
	lead := nb.between()
	switch {
	case len(nb.cells) == 0:
		end := strings.TrimSuffix(lead, nb.unit())
		return nb.splice(nb.array, []byte("["+lead+string(fresh)+end+"]")), nil
	case i == len(nb.cells):
		at := nb.cells[i-1].to
		return nb.splice(span{at, at}, []byte(","+lead+string(fresh))), nil
	}
	at := nb.cells[i].from
	return nb.splice(span{at, at}, []byte(string(fresh)+","+lead)), nil
}

// remove removes a cell, and one of the commas around it.
func (nb *notebook) remove(i int) []byte {
	cut := nb.cells[i].span
	switch {
	case i+1 < len(nb.cells):
		cut.to = nb.cells[i+1].from
	case i > 0:
		cut.from = nb.cells[i-1].to
	default:
		return nb.splice(nb.array, []byte("[]"))
	}
	return nb.splice(cut, nil)
}

func (nb *notebook) splice(at span, text []byte) []byte {
	return slices.Concat(nb.raw[:at.from], text, nb.raw[at.to:])
}

// fresh returns a new cell.
func (nb *notebook) fresh(kind, source string, i int) ([]byte, error) {
	if kind == "" {
		kind = "code"
	}
	// written in the order of their names, as Jupyter does
	fields := map[string]any{"cell_type": kind, "metadata": map[string]any{}, "source": lineItems(source)}
	if kind == "code" {
		fields["execution_count"], fields["outputs"] = nil, []any{}
	}
	if nb.ids {
		fields["id"] = nb.freshID(fmt.Sprint(i, kind, source))
	}
	return nb.encode(fields, strings.TrimPrefix(nb.between(), "\n"))
}

// freshID returns an unused id.
func (nb *notebook) freshID(seed string) string {
	for {
		id := tool.Digest([]byte(seed))[:8]
		if !bytes.Contains(nb.raw, []byte(`"`+id+`"`)) {
			return id
		}
		seed += "."
	}
}

// encode encodes a value in the style of the rest, from an indentation on.
func (nb *notebook) encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if unit := nb.unit(); unit != "" {
		enc.SetIndent(indent, unit)
	}
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// unit returns the indentation of one level; empty if everything is on one line.
func (nb *notebook) unit() string {
	_, rest, ok := bytes.Cut(nb.raw, []byte("\n"))
	if !ok {
		return ""
	}
	return string(rest[:len(rest)-len(bytes.TrimLeft(rest, " \t"))])
}

// between returns the text before a cell: a line end and the indentation.
func (nb *notebook) between() string {
	if nb.unit() == "" {
		return ""
	}
	return "\n" + strings.Repeat(nb.unit(), 2)
}

// indent returns the indentation of the line of a place.
func (nb *notebook) indent(at int) string {
	line := nb.raw[bytes.LastIndexByte(nb.raw[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// lineItems splits a source in the form of notebooks: in lines, each with its end.
func lineItems(source string) []string {
	return slices.AppendSeq([]string{}, strings.Lines(source))
}

// cellOf returns the number, from 1, of the cell with an id. If cells have none, "cell-3" and "3" are the
// fourth.
func cellOf(ctx context.Context, c *tool.Call, path, id string) (int, error) {
	resolved, err := Resolve(ctx, c, path)
	if err != nil {
		return 0, err
	}
	data, err := readWhole(ctx, c, resolved)
	if err != nil {
		return 0, err
	}
	nb, err := parseNotebook(data)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", Shown(c, resolved), err)
	}
	for i, one := range nb.cells {
		var known string
		if at, some := one.fields["id"]; some && json.Unmarshal(data[at.from:at.to], &known) == nil && known == id {
			return i + 1, nil
		}
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(id, "cell-")); err == nil && n >= 0 && n < len(nb.cells) {
		return n + 1, nil
	}
	return 0, fmt.Errorf("there is no cell %q in %s, which has %s", id, Shown(c, resolved), text.Count(len(nb.cells), "cell"))
}
