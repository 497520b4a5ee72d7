// Sandboxed tools. A tool declares the effects of its calls, and the kernel holds its processes to them: this one
// runs a script of the workspace and declares that it only reads, so it needs no approval, and the script can't
// write. The rest of the program has the same sandbox.
package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// report is a script that came with a repository. It does more than it should.
const report = "echo '12 clocks'\n(echo x > inside; echo x > ../outside) 2>/dev/null\n"

// run runs the script, for the tool and for the program. Without a Box it gets the box of the environment.
func run(ctx context.Context, env tool.Env) (string, error) {
	var out bytes.Buffer
	p, err := env.Procs.Start(ctx, tool.Command{Args: []string{"sh", "report.sh"}, Dir: env.Root, Output: &out})
	if err != nil {
		return "", err
	}
	_, err = p.Wait()
	return out.String(), err
}

func main() {
	sandbox := coding.Init()
	dir, err := os.MkdirTemp("", "inspan-sandbox-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "work")
	if err := os.Mkdir(root, 0o700); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "report.sh"), []byte(report), 0o600); err != nil {
		log.Fatal(err)
	}
	count := tool.New("report", "Runs the report of the project.", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		out, err := run(ctx, c.Env)
		return tool.Text(out), err
	})
	count.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Read, Path: c.Env.Root}}, nil
	}
	options := coding.Options{
		Sandbox: sandbox, Root: root, State: filepath.Join(dir, "state"), Model: &script.Model{}, Tools: []tool.Tool{count},
	}
	host, err := coding.Agent(options)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	session, err := host.New(ctx, root)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for e, err := range session.Run(ctx, event.Say("call: report {}")) {
		if err != nil {
			log.Fatal(err)
		}
		if ended, ok := e.Body.(event.Ended); ok {
			fmt.Print("by the agent, which only reads: ", ended.Parts.Text())
		}
	}
	fmt.Println("  it made", made(dir))

	env, err := coding.Env(options)
	if err != nil {
		log.Fatal(err)
	}
	out, err := run(ctx, env)
	if err = cmp.Or(err, env.Close()); err != nil {
		log.Fatal(err)
	}
	fmt.Print("by the program, in the workspace box: ", out)
	fmt.Println("  it made", made(dir))
}

// made lists the files that the script has created.
func made(dir string) []string {
	inside, _ := fs.Glob(os.DirFS(dir), "work/inside")
	outside, _ := fs.Glob(os.DirFS(dir), "outside")
	return append(inside, outside...)
}
