package eval_test

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// registry serves one package each for npm, pip and go, on an address of this machine that programs take for another
// machine's, since they use no proxy for their own. It returns that address; empty if there is none.
func registry(t *testing.T) string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		ip, is := a.(*net.IPNet)
		if !is || ip.IP.IsLoopback() || ip.IP.To4() == nil {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(ip.IP.String(), "0"))
		if err != nil {
			continue
		}
		server := &http.Server{Handler: packages(l.Addr().String())}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close() })
		return l.Addr().String()
	}
	return ""
}

// packages are the files that the registry at an address serves, by path.
func packages(at string) http.Handler {
	files := map[string]func(w io.Writer) error{
		"/npm/left/-/left-1.0.0.tgz": func(w io.Writer) error {
			packed := gzip.NewWriter(w)
			out := tar.NewWriter(packed)
			for name, text := range map[string]string{"package.json": `{"name":"left","version":"1.0.0","main":"i.js"}`, "i.js": "module.exports = 42\n"} {
				if err := out.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
					return err
				}
				if _, err := io.WriteString(out, text); err != nil {
					return err
				}
			}
			return errors.Join(out.Close(), packed.Close())
		},
		"/simple/trialpkg-1.0-py3-none-any.whl": zipped(map[string]string{
			"trialpkg.py":                     "def answer(): return 42\n",
			"trialpkg-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: trialpkg\nVersion: 1.0\n",
			"trialpkg-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: trial\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
			"trialpkg-1.0.dist-info/RECORD":   "",
		}),
		"/go/example.com/lib/@v/v1.0.0.zip": zipped(map[string]string{
			"example.com/lib@v1.0.0/go.mod": "module example.com/lib\n", "example.com/lib@v1.0.0/l.go": "package lib\n\nconst Answer = 42\n",
		}),
	}
	for path, text := range map[string]string{
		"/npm/left": `{"name":"left","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"left","version":"1.0.0","main":"i.js",` +
			`"dist":{"tarball":"http://` + at + `/npm/left/-/left-1.0.0.tgz"}}}}`,
		"/simple/trialpkg/":                  `<a href="/simple/trialpkg-1.0-py3-none-any.whl">trialpkg-1.0-py3-none-any.whl</a>`,
		"/go/example.com/lib/@v/list":        "v1.0.0\n",
		"/go/example.com/lib/@v/v1.0.0.info": `{"Version":"v1.0.0"}`,
		"/go/example.com/lib/@v/v1.0.0.mod":  "module example.com/lib\n",
	} {
		files[path] = func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write, there := files[r.URL.Path]
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			_, _ = io.WriteString(w, "took it\n")
		case !there:
			http.NotFound(w, r)
		default:
			if strings.HasSuffix(r.URL.Path, "/") {
				w.Header().Set("Content-Type", "text/html")
			}
			_ = write(w)
		}
	})
}

// zipped is an archive of files.
func zipped(files map[string]string) func(io.Writer) error {
	return func(w io.Writer) error {
		out := zip.NewWriter(w)
		for name, text := range files {
			f, err := out.Create(name)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(f, text); err != nil {
				return err
			}
		}
		return out.Close()
	}
}
