package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// childEnv makes the test binary perform one action on a store and print the result: "VERB N DIR ROOT ARGS...". It
// kills itself before the Nth change of a file system, unless N is 0.
const childEnv = "SNAPSHOT_TEST_CHILD"

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		if err := child(strings.Split(args, "\n")); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	s := &Store{Dir: args[2], Root: args[3]}
	if n > 0 {
		s.hook = func(string) {
			if n--; n == 0 {
				die()
			}
		}
	}
	return verb(context.Background(), s, args[0], args[4:])
}

func verb(ctx context.Context, s *Store, what string, args []string) error {
	switch what {
	case "take":
		c, err := s.Take(ctx)
		fmt.Println(c.ID, c.Left)
		return err
	case "restore":
		r, err := s.Restore(ctx, args[0], []Span{{args[0], args[1]}}, false)
		fmt.Println(r.Before, r.After, len(r.Kept))
		return err
	case "recover":
		_, err := s.Recover(ctx)
		return err
	case "clean":
		_, err := s.Clean(ctx, args...)
		return err
	case "send":
		s.Whole = true
		sent, err := s.Send(ctx, folderBlobs(args[0]), args[1])
		fmt.Print(sent.Manifest)
		return err
	case "fetch":
		s.Whole = true
		_, err := s.Fetch(ctx, folderBlobs(args[0]), args[1])
		return err
	}
	return errors.New("unknown verb")
}

func die() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		os.Exit(9)
	}
	select {}
}

// run starts a child and waits for it; killed says that it died of a signal.
func run(t testing.TB, s *Store, what string, n int, args ...string) (out string, killed bool) {
	t.Helper()
	cmd := command(s, what, n, args...)
	data, err := cmd.Output()
	var exit *exec.ExitError
	if err == nil {
		return string(data), false
	}
	if !errors.As(err, &exit) || exit.Exited() {
		t.Fatal(what, n, err, string(data))
	}
	return string(data), true
}

func command(s *Store, what string, n int, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(append([]string{what, strconv.Itoa(n), s.Dir, s.Root}, args...), "\n"))
	return cmd
}
