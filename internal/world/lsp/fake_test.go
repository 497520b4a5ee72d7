package lsp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fakeServer is a language server that behaves well or badly, by its kind.
type fakeServer struct {
	kind string
	in   *bufio.Reader
	held []json.RawMessage // ids of requests that are not answered yet
	said []string          // what the client answered
	text string            // of the document that was opened last
}

type fakeMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// fake runs one until its input ends.
func fake(kind string) {
	f := &fakeServer{kind: kind, in: bufio.NewReader(os.Stdin)}
	started, err := os.OpenFile("started", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(started, os.Getpid())
	started.Close()
	switch kind {
	case "garbage":
		fmt.Print("Welcome!\nThis is no protocol.\r\n\r\n")
	case "huge":
		fmt.Print("Content-Length: 99999999999\r\n\r\n")
	case "endless":
		for {
			if _, err := fmt.Print(strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	case "deaf":
		time.Sleep(time.Minute) // it reads nothing
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGPIPE)
	}
	for {
		m, err := f.read()
		if err != nil {
			break
		}
		f.handle(m)
	}
	if kind == "stubborn" {
		time.Sleep(time.Minute)
	}
}

func (f *fakeServer) read() (fakeMessage, error) {
	var m fakeMessage
	length := 0
	for {
		line, err := f.in.ReadString('\n')
		if err != nil {
			return m, err
		}
		line = strings.TrimSpace(line)
		if line == "" {
			break
		}
		length, _ = strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "Content-Length:")))
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(f.in, body); err != nil {
		return m, err
	}
	return m, json.Unmarshal(body, &m)
}

func (f *fakeServer) write(body string) {
	fmt.Printf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

func (f *fakeServer) answer(id json.RawMessage, result string) {
	f.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
}

func (f *fakeServer) handle(m fakeMessage) {
	switch m.Method {
	case "initialize":
		f.initialize(m)
	case "shutdown":
		if f.kind != "stubborn" {
			f.answer(m.ID, "null")
		}
	case "exit":
		if f.kind != "stubborn" {
			os.Exit(0)
		}
	case "textDocument/didOpen":
		var in struct {
			Doc struct{ Text string } `json:"textDocument"`
		}
		_ = json.Unmarshal(m.Params, &in)
		f.text = in.Doc.Text
	case "textDocument/hover", "textDocument/definition", "textDocument/documentSymbol",
		"textDocument/rename", "textDocument/diagnostic", "workspace/symbol":
		f.query(m)
	case "":
		f.said = append(f.said, fmt.Sprintf("%s=%s%s", m.ID, m.Result, m.Error))
		if len(f.said) == 4 && len(f.held) > 0 {
			f.hover(f.held[0], strings.Join(f.said, "\n"))
		}
	}
}

func (f *fakeServer) initialize(m fakeMessage) {
	offers := `"textDocumentSync":1,"hoverProvider":true,"definitionProvider":{},"documentSymbolProvider":true,"renameProvider":true,` +
		`"workspaceSymbolProvider":true`
	switch f.kind {
	case "silent", "garbage", "huge", "stubborn silent":
		return
	case "dies":
		fmt.Fprintln(os.Stderr, "no license found")
		os.Exit(3)
	case "dies once":
		if data, _ := os.ReadFile("started"); strings.Count(string(data), "\n") == 1 {
			os.Exit(3)
		}
	case "dies twice":
		if data, _ := os.ReadFile("started"); strings.Count(string(data), "\n") < 3 {
			os.Exit(3)
		}
	case "bytes":
		offers += `,"positionEncoding":"utf-8"`
	case "pull", "loads", "loads on":
		offers += `,"diagnosticProvider":{"interFileDependencies":false,"workspaceDiagnostics":false}`
	case "nothing offered":
		offers = `"hoverProvider":false`
	}
	if f.kind == "busy" {
		f.write(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":"t","value":{"kind":"begin"}}}`)
	}
	f.answer(m.ID, `{"capabilities":{`+offers+`}}`)
}

func (f *fakeServer) hover(id json.RawMessage, text string) {
	data, _ := json.Marshal(text)
	f.answer(id, `{"contents":`+string(data)+`}`)
}

func (f *fakeServer) query(m fakeMessage) {
	switch f.kind {
	case "never":
	case "crash":
		fmt.Fprintln(os.Stderr, "out of cheese")
		os.Exit(9)
	case "crash once":
		if data, _ := os.ReadFile("started"); strings.Count(string(data), "\n") == 1 {
			os.Exit(9)
		}
		f.hover(m.ID, "here again")
	case "disorder":
		f.answer(json.RawMessage("4711"), `"to nobody"`)
		f.answer(json.RawMessage(`"a"`), `{}`)
		f.write(`{"jsonrpc":"2.0","id":null,"result":1}`)
		f.write(`[1,2`)
		if f.held = append(f.held, m.ID); len(f.held) == 2 {
			f.hover(f.held[1], "second")
			f.hover(f.held[1], "twice")
			f.hover(f.held[0], "first")
		}
	case "flood":
		for i := range 30_000 {
			f.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics","params":{"uri":"file:///x/%d",`+
				`"diagnostics":[{"message":"m"}]}}`, i))
			f.write(`{"jsonrpc":"2.0","id":"q","method":"window/workDoneProgress/create","params":{"token":1}}`)
		}
		f.hover(m.ID, "after the flood")
	case "nosy":
		f.held = []json.RawMessage{m.ID}
		f.write(`{"jsonrpc":"2.0","id":1,"method":"workspace/configuration","params":{"items":[{"section":"a"},{"section":"b"}]}}`)
		f.write(`{"jsonrpc":"2.0","id":"two","method":"workspace/applyEdit","params":{"edit":{}}}`)
		f.write(`{"jsonrpc":"2.0","id":3,"method":"rm/everything"}`)
		f.write(`{"jsonrpc":"2.0","id":4,"method":"client/registerCapability","params":{"registrations":7}}`)
	case "busy":
		if f.held = append(f.held, m.ID); len(f.held) == 1 {
			f.answer(m.ID, `{"contents":[]}`)
			f.write(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":"t","value":{"kind":"end"}}}`)
			return
		}
		f.hover(m.ID, "all loaded")
	case "moody":
		if f.held = append(f.held, m.ID); len(f.held) < 3 {
			f.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32801,"message":"content modified"}}`, m.ID))
			return
		}
		f.hover(m.ID, "at last")
	case "pull":
		f.answer(m.ID, `{"kind":"full","items":[{"range":{"start":{"line":0,"character":1},"end":{"line":0,"character":2}},"severity":2,`+
			`"code":12,"source":"fake","message":"pulled"}]}`)
	case "loads", "loads on": // it begins to load as it is asked, and knows all when that is over
		if f.held = append(f.held, m.ID); len(f.held) > 1 {
			f.answer(m.ID, `{"kind":"full","items":[{"range":{},"severity":1,"message":"all"}]}`)
			return
		}
		f.write(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":"t","value":{"kind":"begin"}}}`)
		f.answer(m.ID, `{"kind":"full","items":[{"range":{},"severity":1,"message":"half"}]}`)
		if f.kind == "loads" {
			f.write(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":"t","value":{"kind":"end"}}}`)
		}
	case "big":
		f.hover(m.ID, strings.Repeat("long ", 1<<20))
	case "dies once", "dies twice", "stubborn":
		f.hover(m.ID, "here")
	case "echo", "bytes":
		f.echo(m)
	default:
		f.wild(m)
	}
}

// echo answers a definition with its own place.
func (f *fakeServer) echo(m fakeMessage) {
	var in struct {
		Doc      json.RawMessage `json:"textDocument"`
		Position json.RawMessage `json:"position"`
	}
	_ = json.Unmarshal(m.Params, &in)
	if m.Method == "textDocument/hover" {
		f.hover(m.ID, string(in.Position))
		return
	}
	var doc struct{ URI string }
	_ = json.Unmarshal(in.Doc, &doc)
	f.answer(m.ID, fmt.Sprintf(`[{"uri":%q,"range":{"start":%s,"end":%s}}]`, doc.URI, in.Position, in.Position))
}

// wild gives answers that no server should give. The kind is the answer, with URI for the document's.
func (f *fakeServer) wild(m fakeMessage) {
	var in struct {
		Doc struct{ URI string } `json:"textDocument"`
	}
	_ = json.Unmarshal(m.Params, &in)
	dir := in.Doc.URI[:max(0, strings.LastIndexByte(in.Doc.URI, '/'))]
	f.answer(m.ID, strings.NewReplacer("URI", in.Doc.URI, "DIR", dir).Replace(f.kind))
}
