package testkit

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// ErrNoBucket says that no server of the S3 protocol is available.
var ErrNoBucket = errors.New("versitygw can't be built from the Go module proxy")

// gateway is a server of the S3 protocol over a folder (Apache-2.0). It is not a dependency of the module,
// whose tests would otherwise need a hundred more.
const gateway = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"

// BucketServer is a running server of the S3 protocol, with one bucket.
type BucketServer struct {
	Endpoint, Name, Key, Secret string
	root                        string
	cmd                         *exec.Cmd
}

// StartBucket starts a server in an empty folder. The first time it builds the server, in the user's cache.
// Stop it after use.
func StartBucket(dir string) (*BucketServer, error) {
	program, err := gatewayProgram()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &BucketServer{Endpoint: l.Addr().String(), Name: "test", Key: "testkey", Secret: "testsecret", root: filepath.Join(dir, "root")}
	meta := filepath.Join(dir, "meta")
	if err := errors.Join(l.Close(), os.MkdirAll(filepath.Join(b.root, b.Name), 0o700), os.Mkdir(meta, 0o700)); err != nil {
		return nil, err
	}
	b.cmd = exec.Command(program, "--port", b.Endpoint, "--access", b.Key, "--secret", b.Secret, "--quiet", "posix", "--sidecar", meta, b.root)
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	return b, b.await()
}

func gatewayProgram() (string, error) {
	if path, err := exec.LookPath("versitygw"); err == nil {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "inspan-test", filepath.Base(gateway))
	path := filepath.Join(dir, "versitygw")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	cmd := exec.Command("go", "install", gateway)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %w: %s", ErrNoBucket, err, out)
	}
	return path, nil
}

// await returns once the server accepts connections.
func (b *BucketServer) await() error {
	for end := time.Now().Add(20 * time.Second); ; {
		conn, err := net.Dial("tcp", b.Endpoint)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(end) {
			b.Stop()
			return err
		}
	}
}

// Stop ends the server.
func (b *BucketServer) Stop() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait() // it was killed
}

// Objects counts the objects in the bucket.
func (b *BucketServer) Objects() (n int) {
	_ = filepath.WalkDir(filepath.Join(b.root, b.Name), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return nil
	})
	return n
}
