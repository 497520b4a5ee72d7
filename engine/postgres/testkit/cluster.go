// Package testkit starts PostgreSQL for tests: a real server, with fsync, on a socket in a folder of
// its own.
package testkit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// ErrNone says that PostgreSQL is not installed.
var ErrNone = errors.New("PostgreSQL 15 or newer is not installed: apt-get install postgresql")

// Cluster is a running server.
type Cluster struct {
	Dir string   // its folder; the socket is there too
	Env []string // additions to the server's environment
	bin string
	as  *syscall.SysProcAttr
}

// Programs returns the folder of PostgreSQL's programs.
func Programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	newest := slices.MaxFunc(append(found, ""), func(a, b string) int { return major(a) - major(b) })
	if major(newest) < 15 {
		return "", ErrNone
	}
	return filepath.Dir(newest), nil
}

func major(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// Start makes a cluster in a new folder below dir, which must have a short path, and starts it with
// these settings. Remove it after use.
func Start(dir string, settings ...string) (*Cluster, error) {
	return StartWith(nil, dir, settings...)
}

// StartWith is Start with additions to the server's environment.
func StartWith(env []string, dir string, settings ...string) (*Cluster, error) {
	bin, err := Programs()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Env: env, bin: bin}
	if c.Dir, err = os.MkdirTemp(dir, "inspan-pg-"); err != nil {
		return nil, err
	}
	if err := c.build(settings); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

func (c *Cluster) build(settings []string) error {
	if err := c.become(); err != nil {
		return err
	}
	err := c.run("initdb", "--pgdata", c.data(), "--username", "test", "--auth", "trust", "--encoding", "UTF8",
		"--locale", "C.UTF-8", "--no-sync", "--data-checksums", "--no-instructions")
	if err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer conf.Close()
	all := append([]string{
		"listen_addresses = ''", "unix_socket_directories = '" + c.Dir + "'", "fsync = on", "max_connections = 200",
	}, settings...)
	if _, err := fmt.Fprintln(conf, strings.Join(all, "\n")); err != nil {
		return err
	}
	return c.Up()
}

// become makes the server run as another user than root, which it refuses.
func (c *Cluster) become() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	c.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return os.Chown(c.Dir, int(uid), int(gid))
}

func (c *Cluster) data() string { return filepath.Join(c.Dir, "data") }

// run runs one of PostgreSQL's programs. Its output goes to a file, which a server that it starts may keep
// open.
func (c *Cluster) run(name string, args ...string) error {
	path := filepath.Join(c.Dir, name+".out")
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = c.Dir, out, out, c.as
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(path)
		return fmt.Errorf("%s: %w: %s", name, err, said)
	}
	return nil
}

// Up starts the server, and returns once it accepts connections.
func (c *Cluster) Up() error {
	return c.run("pg_ctl", "start", "--wait", "--timeout", "60", "--pgdata", c.data(), "--log", filepath.Join(c.Dir, "log"))
}

// Down stops the server: mode is fast, or immediate to simulate a crash.
func (c *Cluster) Down(mode string) error {
	return c.run("pg_ctl", "stop", "--wait", "--pgdata", c.data(), "--mode", mode)
}

// Remove stops the server if it runs, and removes its files.
func (c *Cluster) Remove() error {
	if _, err := os.Stat(filepath.Join(c.data(), "postmaster.pid")); !errors.Is(err, fs.ErrNotExist) {
		_ = c.Down("immediate") // it may not be running
	}
	return os.RemoveAll(c.Dir)
}

// URL returns the URL of a database.
func (c *Cluster) URL(database string) string {
	return fmt.Sprintf("postgres://test@/%s?host=%s", database, c.Dir)
}

// Socket returns the path of the server's socket.
func (c *Cluster) Socket() string { return filepath.Join(c.Dir, ".s.PGSQL.5432") }

// Exec runs a statement.
func (c *Cluster) Exec(ctx context.Context, database, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, c.URL(database))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql, args...)
	return errors.Join(err, conn.Close(ctx))
}
