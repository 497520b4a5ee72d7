package lsp

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// maxText bounds a text from a server, in bytes.
const maxText = 2000

// capabilities are the server's capabilities. Most may be a bool or an object.
type capabilities struct {
	PositionEncoding   string          `json:"positionEncoding"`
	Sync               json.RawMessage `json:"textDocumentSync"`
	Definition         json.RawMessage `json:"definitionProvider"`
	TypeDefinition     json.RawMessage `json:"typeDefinitionProvider"`
	Implementation     json.RawMessage `json:"implementationProvider"`
	References         json.RawMessage `json:"referencesProvider"`
	Hover              json.RawMessage `json:"hoverProvider"`
	DocumentSymbol     json.RawMessage `json:"documentSymbolProvider"`
	WorkspaceSymbol    json.RawMessage `json:"workspaceSymbolProvider"`
	Rename             json.RawMessage `json:"renameProvider"`
	DocumentDiagnostic json.RawMessage `json:"diagnosticProvider"`
}

// offer returns the capability that a method needs.
func (c capabilities) offer(method string) json.RawMessage {
	switch method {
	case "textDocument/definition":
		return c.Definition
	case "textDocument/typeDefinition":
		return c.TypeDefinition
	case "textDocument/implementation":
		return c.Implementation
	case "textDocument/references":
		return c.References
	case "textDocument/hover":
		return c.Hover
	case "textDocument/documentSymbol":
		return c.DocumentSymbol
	case "workspace/symbol":
		return c.WorkspaceSymbol
	case "textDocument/rename":
		return c.Rename
	case "textDocument/diagnostic":
		return c.DocumentDiagnostic
	}
	return nil
}

// saving says whether a server wants notifications of saved files, and their text.
type saving struct{ wanted, text bool }

func (c capabilities) saving() saving {
	var sync struct {
		Save json.RawMessage `json:"save"`
	}
	var save struct {
		IncludeText bool `json:"includeText"`
	}
	if json.Unmarshal(c.Sync, &sync) != nil {
		return saving{} // a number doesn't mention saving
	}
	_ = json.Unmarshal(sync.Save, &save) // a bool doesn't mention the text
	return saving{offered(sync.Save), save.IncludeText}
}

// folder is a workspace folder.
type folder struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
}

// wireLocation is a Location or a LocationLink.
type wireLocation struct {
	URI       string    `json:"uri"`
	Range     wireRange `json:"range"`
	TargetURI string    `json:"targetUri"`
	Target    wireRange `json:"targetSelectionRange"`
}

func (l wireLocation) place() (string, wireRange) {
	if l.TargetURI != "" {
		return l.TargetURI, l.Target
	}
	return l.URI, l.Range
}

// oneOrMany decodes null, one value or a list.
func oneOrMany[T any](raw json.RawMessage) ([]T, error) {
	raw = bytes.TrimSpace(raw)
	if !given(raw) {
		return nil, nil
	}
	if raw[0] != '[' {
		raw = append(append([]byte{'['}, raw...), ']')
	}
	var list []T
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New("its answer can't be understood")
	}
	return list, nil
}

// wireSymbol is a DocumentSymbol, a SymbolInformation or a WorkspaceSymbol.
type wireSymbol struct {
	Name      string       `json:"name"`
	Detail    string       `json:"detail"`
	Kind      int          `json:"kind"`
	Range     wireRange    `json:"range"`
	Selection *wireRange   `json:"selectionRange"`
	Children  []wireSymbol `json:"children"`
	Container string       `json:"containerName"`
	Location  wireLocation `json:"location"`
}

// kind returns the name of a kind of symbol.
func kind(n int) string {
	names := [...]string{
		"", "file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum", "interface",
		"function", "variable", "constant", "string", "number", "boolean", "array", "object", "key", "null", "enum member",
		"struct", "event", "operator", "type parameter",
	}
	if n > 0 && n < len(names) {
		return names[n]
	}
	return "symbol"
}

// wireDiagnostic is a diagnostic in the protocol's format.
type wireDiagnostic struct {
	Range    wireRange       `json:"range"`
	Severity int             `json:"severity"`
	Code     json.RawMessage `json:"code"`
	Source   string          `json:"source"`
	Message  string          `json:"message"`
}

func severity(n int) string {
	switch n {
	case 2:
		return Warning
	case 3:
		return "info"
	case 4:
		return "hint"
	}
	return Error // if it is missing, the client chooses
}

// code returns a number or a string as text.
func code(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return endsOf(text, 100)
	}
	if !given(raw) || len(raw) > 40 {
		return ""
	}
	return string(raw)
}

// workspaceEdit is the changes of a rename.
type workspaceEdit struct {
	Changes  map[string][]textEdit `json:"changes"`
	Document []struct {
		Kind     string `json:"kind"` // set for operations other than text edits
		Document struct {
			URI string `json:"uri"`
		} `json:"textDocument"`
		Edits []textEdit `json:"edits"`
	} `json:"documentChanges"`
}

// hoverText returns the text of a MarkupContent, a MarkedString or a list of these.
func hoverText(raw json.RawMessage) string {
	parts, err := oneOrMany[json.RawMessage](raw)
	if err != nil {
		return ""
	}
	var texts []string
	for _, part := range parts {
		var text string
		var object struct {
			Value string `json:"value"`
		}
		if json.Unmarshal(part, &text) != nil && json.Unmarshal(part, &object) == nil {
			text = object.Value
		}
		if text = strings.TrimSpace(text); text != "" {
			texts = append(texts, text)
		}
	}
	return unfence(strings.Join(texts, "\n\n"))
}

// unfence removes the fences of code blocks.
func unfence(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "```") {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}

// endsOf returns a server's text without its middle, if it is long.
func endsOf(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	head, tail, dropped := text.CutMiddle(s, limit)
	if dropped == 0 {
		return head
	}
	return head + " … " + tail
}

// Error codes that ask for repeating a request.
const (
	codeContentModified = -32801
	codeServerCancelled = -32802
)

// given reports whether a field exists and is not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// offered reports whether a capability, a bool or an object, exists.
func offered(raw json.RawMessage) bool { return given(raw) && string(raw) != "false" }
