package sandbox_test

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
)

// dock is an engine that can run containers here, with an image in it.
type dock struct {
	engine, image, self string
	why                 string // there is none
	vars                map[string]string
}

// docks are tried once; that takes a while.
var docks = struct {
	sync.Mutex
	list map[string]*dock
	dir  string
	self string
}{list: make(map[string]*dock)}

// needDock returns an engine, or skips the test. It is made from files of this machine; nothing is pulled.
func needDock(t testing.TB, name string) *dock {
	t.Helper()
	docks.Lock()
	defer docks.Unlock()
	d := docks.list[name]
	if d == nil {
		d = &dock{engine: name, image: "inspan-test-" + strings.ToLower(rand.Text()), vars: make(map[string]string)}
		if err := d.prepare(); err != nil {
			d.why = err.Error()
		}
		docks.list[name] = d
	}
	if d.why != "" {
		t.Skipf("NO CONTAINER ENGINE HERE: %s: %s", name, d.why)
	}
	for name, value := range d.vars {
		t.Setenv(name, value)
	}
	return d
}

// prepare finds out how the engine works here, and makes the image.
func (d *dock) prepare() (err error) {
	if err := makeFolder(); err != nil {
		return err
	}
	if _, err := exec.LookPath(d.engine); err != nil {
		return err
	}
	if err := buildKeeper(); err != nil {
		return err
	}
	d.self = docks.self
	if d.engine == "podman" {
		conf := filepath.Join(docks.dir, "storage.conf")
		text := fmt.Sprintf("[storage]\ndriver=\"vfs\"\ngraphroot=%q\nrunroot=%q\n",
			filepath.Join(docks.dir, "graph"), filepath.Join(docks.dir, "run"))
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			return err
		}
		d.vars["CONTAINERS_STORAGE_CONF"] = conf
	}
	if err := d.load(); err != nil {
		return err
	}
	err = d.run("run", "--rm", "--pull=never", "--network=none", d.image, "true")
	if err == nil || d.engine != "podman" {
		return err
	}
	// Machines inside of machines may have old cgroups and no right to raise limits.
	conf := filepath.Join(docks.dir, "containers.conf")
	if os.WriteFile(conf, []byte("[engine]\nruntime=\"runc\"\n[containers]\ndefault_ulimits=[\"nofile=1024:1024\",\"nproc=4096:4096\"]\n"),
		0o644) != nil {
		return err
	}
	d.vars["CONTAINERS_CONF"] = conf
	return d.run("run", "--rm", "--pull=never", "--network=none", d.image, "true")
}

func buildKeeper() error {
	if docks.self != "" {
		return nil
	}
	path := filepath.Join(docks.dir, "keeper")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/keeper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	docks.self = path
	return nil
}

// keeperHere returns a keeper that can be the first process of containers.
func keeperHere(t *testing.T) string {
	t.Helper()
	docks.Lock()
	defer docks.Unlock()
	err := makeFolder()
	if err == nil {
		err = buildKeeper()
	}
	if err != nil {
		t.Skip("NO STATIC KEEPER HERE: ", err)
	}
	return docks.self
}

func makeFolder() (err error) {
	if docks.dir == "" {
		docks.dir, err = os.MkdirTemp("", "inspan-docks-")
	}
	return err
}

// command is the engine's command line with the arguments that this machine needs.
func (d *dock) command(args ...string) *exec.Cmd {
	cmd := exec.Command(d.engine, args...)
	cmd.Env = os.Environ()
	for name, value := range d.vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

func (d *dock) run(args ...string) error {
	if out, err := d.command(args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, out)
	}
	return nil
}

// load makes an image of static shells.
func (d *dock) load() error {
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	add := func(h tar.Header, data []byte) error {
		h.Size = int64(len(data))
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	for dir, mode := range map[string]int64{
		"bin/": 0o755, "etc/": 0o755,
		"proc/": 0o755, "sys/": 0o755, "dev/": 0o755, "tmp/": 0o1777, "opt/": 0o777,
	} {
		if err := add(tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: mode}, nil); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{"/bin/busybox": "bin/busybox", "/bin/bash-static": "bin/bash"} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = add(tar.Header{Name: to, Mode: 0o755}, data)
		}
		if err != nil {
			return fmt.Errorf("an image is made of busybox-static and bash-static: %w", err)
		}
	}
	names, err := exec.Command("/bin/busybox", "--list").Output()
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(names)) {
		if name != "busybox" {
			err = errors.Join(err, add(tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, nil))
		}
	}
	err = errors.Join(err, add(tar.Header{Name: "etc/of-the-image", Mode: 0o644}, []byte("image\n")), w.Close())
	if err != nil {
		return err
	}
	cmd := d.command("import", "--change", "ENV OF_THE_IMAGE=yes", "-", d.image)
	cmd.Stdin = &image
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("import: %w: %s", err, out)
	}
	return nil
}

// list returns the containers of the image.
func (d *dock) list(t testing.TB) []string {
	t.Helper()
	out, err := d.command("ps", "--all", "--filter", "name=inspan-", "--format", "{{.Names}} {{.Image}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		if name, image, _ := strings.Cut(line, " "); strings.Contains(image, d.image) {
			list = append(list, name)
		}
	}
	return list
}

// empty waits until no container is left.
func (d *dock) empty(t testing.TB) {
	t.Helper()
	var list []string
	testkit.WaitFor(t, "all containers to end", func() bool { list = d.list(t); return len(list) == 0 },
		func() string { return fmt.Sprintf("%q", list) })
}

// close removes everything that was made for the tests.
func closeDocks() {
	for _, d := range docks.list {
		if d.why == "" {
			_ = d.run("rmi", "--force", d.image)
		}
	}
	if docks.dir != "" {
		_ = os.RemoveAll(docks.dir)
	}
}

// engines runs a test with each engine, or in short with the first.
func engines(t *testing.T, test func(t *testing.T, d *dock)) {
	for _, name := range []string{"podman", "docker"} {
		if testing.Short() && name == "docker" && needed("podman") {
			continue
		}
		t.Run(name, func(t *testing.T) { test(t, needDock(t, name)) })
	}
}

// needed reports whether an engine was of use.
func needed(name string) bool {
	docks.Lock()
	defer docks.Unlock()
	return docks.list[name] != nil && docks.list[name].why == ""
}
