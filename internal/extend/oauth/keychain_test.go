package oauth_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/testkit"
)

// noBus takes the session bus away, and with it the keychain of Linux.
func noBus(t *testing.T) {
	t.Helper()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d/%s", os.Getuid(), name)); err == nil {
			fmt.Fprintf(os.Stderr, "SKIPPED %s: this user has a session bus that can't be hidden\n", t.Name())
			t.Skip("there is a session bus")
		}
	}
}

// inKeychain reports whether the stored login is sealed, and fails if it can be read.
func inKeychain(t *testing.T, s oauth.Store, dir, name, secret string) bool {
	t.Helper()
	data, where, err := s.Get(t.Context(), name)
	if err != nil || !strings.Contains(string(data), secret) {
		t.Fatalf("%s %v", data, err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		if where == "the keychain" && bytes.Contains(text, []byte(secret)) {
			t.Error("the file can be read without the keychain")
		}
	}
	return where == "the keychain"
}

// withKeychain puts a keychain in memory in the place of the system's until the test
// ends, and lets it be reached.
func withKeychain(t *testing.T) {
	t.Helper()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	keyring.MockInit()
}

// TestKeychain seals with a key of the keychain. It runs in a process of its own, because the library can't put the
// keychain of the system back.
func TestKeychain(t *testing.T) {
	alone(t, func(t *testing.T) {
		withKeychain(t)
		ctx, dir := t.Context(), filepath.Join(t.TempDir(), "oauth")
		big := `"` + strings.Repeat("secret", 20_000) + `"`
		first := &oauth.Keychain{Dir: dir}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if err := first.Set(ctx, fmt.Sprint("mcp:", i), []byte(big)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		s := &oauth.Keychain{Dir: dir}
		for i := range 8 {
			if !inKeychain(t, s, dir, fmt.Sprint("mcp:", i), "secretsecret") {
				t.Error("not sealed:", i)
			}
		}
		modes(t, dir)

		// What is moved to another name is not that of the other.
		var one, two map[string]json.RawMessage
		files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		for i, into := range []*map[string]json.RawMessage{&one, &two} {
			text, err := os.ReadFile(files[i])
			must(t, err)
			must(t, json.Unmarshal(text, into))
		}
		one["sealed"] = two["sealed"]
		text, err := json.Marshal(one)
		must(t, err)
		must(t, os.WriteFile(files[0], text, 0o600))
		if data, _, err := s.Get(ctx, strings.Trim(string(one["name"]), `"`)); !errors.Is(err, oauth.ErrSealed) {
			t.Errorf("%.40s %v", data, err)
		}

		// Another process without the keychain can read nothing, and loses nothing.
		c := &oauth.Client{Store: s}
		must(t, s.Set(ctx, "mcp:x", []byte(`{"name":"mcp:x","resource":"https://x.test","access":"a"}`)))
		a := oauth.Account{Name: "mcp:x", Resource: "https://x.test"}
		if _, err := access(ctx, c, a); err != nil {
			t.Error(err)
		}
		keyring.MockInitWithError(errors.New("locked"))
		c.Store = &oauth.Keychain{Dir: dir}
		if _, err := access(ctx, c, a); !errors.Is(err, oauth.ErrLogin) || !strings.Contains(err.Error(), "locked") {
			t.Error(err)
		}
		if list, err := c.Accounts(ctx); err != nil || len(list) != 9 || list[8].Problem == "" {
			t.Error(list, err)
		}
		if _, _, err := (&oauth.File{Dir: dir}).Get(ctx, "mcp:x"); !errors.Is(err, oauth.ErrSealed) {
			t.Error(err)
		}

		// With an emptied keychain, a new key is made.
		keyring.MockInit()
		c.Store = &oauth.Keychain{Dir: dir}
		if _, err := access(ctx, c, a); !errors.Is(err, oauth.ErrLogin) {
			t.Error(err)
		}
		must(t, c.Store.Set(ctx, "mcp:new", []byte(`"secret new"`)))
		if !inKeychain(t, c.Store, dir, "mcp:new", "secret new") {
			t.Error("not sealed")
		}
	})
}

// alone runs a test in a process of its own.
func alone(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv("OAUTH_TEST_ALONE") != "" {
		test(t)
		return
	}
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), "OAUTH_TEST_ALONE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestNoKeychain falls back to files at once where no session bus is running, and within
// the wait where one does not answer. It is asked once.
func TestNoKeychain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is a keychain")
	}
	t.Run("no bus", func(t *testing.T) {
		noBus(t)
		// A program that would start a bus for us must not be started.
		bin, mark := t.TempDir(), filepath.Join(t.TempDir(), "started")
		must(t, os.WriteFile(filepath.Join(bin, "dbus-launch"), []byte("#!/bin/sh\ntouch "+mark+"\n"), 0o700))
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		quick(t, 0)
		if _, err := os.Stat(mark); err == nil {
			t.Error("dbus-launch was started")
		}
	})
	t.Run("nobody at the address", func(t *testing.T) {
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
		quick(t, 0)
	})
	t.Run("a bus that never answers", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bus")
		l, err := net.Listen("unix", path)
		must(t, err)
		defer func() { _ = l.Close() }()
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+path)
		quick(t, 1)
	})
	t.Run("a bus without a keychain", func(t *testing.T) {
		daemon, err := exec.LookPath("dbus-daemon")
		if err != nil {
			fmt.Fprintf(os.Stderr, "SKIPPED %s: there is no dbus-daemon\n", t.Name())
			t.Skip(err)
		}
		path := filepath.Join(t.TempDir(), "bus")
		conf := filepath.Join(t.TempDir(), "conf")
		must(t, os.WriteFile(conf, []byte(`<busconfig><type>session</type><listen>unix:path=`+path+`</listen><auth>EXTERNAL</auth>
			<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/><allow user="*"/></policy></busconfig>`), 0o600))
		cmd := exec.Command(daemon, "--nofork", "--nopidfile", "--print-address", "--config-file="+conf)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		if _, err := out.Read(make([]byte, 200)); err != nil { // it is ready once it tells its address
			t.Fatal(err)
		}
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+path)
		quick(t, 1)
	})
}

// quick keeps things in a file although the keychain was asked for, and waits so often for it.
func quick(t *testing.T, waits int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "oauth")
	wait := 5 * time.Second
	if waits == 0 {
		wait = testkit.Patience
	}
	s := &oauth.Keychain{Dir: dir, Wait: wait}
	start := time.Now()
	for i := range 5 {
		must(t, s.Set(t.Context(), fmt.Sprint("mcp:", i), []byte(`"secret"`)))
		if inKeychain(t, s, dir, fmt.Sprint("mcp:", i), "secret") {
			t.Error("it is in a keychain that is not there")
		}
	}
	if took := time.Since(start); took >= time.Duration(waits+1)*wait {
		t.Errorf("took %s", took)
	}
}
