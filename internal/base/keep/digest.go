package keep

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
)

// A Digest identifies the content of a file, of a link's target, or of a whole folder: any change of content,
// of a name, or of a link's target changes the digest. Code that requests trust and code that checks it use the
// same digest, so they can't disagree. The zero value is ready for the entry Top; add files sorted by path.
type Digest struct {
	Top    string // path of the entry, a prefix of those of the files
	leaves strings.Builder
	last   string
}

// A Leaf receives the content of one file of a [Digest].
type Leaf struct {
	d               *Digest
	at, target      string
	link            bool
	content, linked hash.Hash
}

// File begins a file. Write its content to the leaf, then close it.
func (d *Digest) File(at string) *Leaf { return d.leaf(at, "", false) }

// Link begins a link, whose content is that of its target file.
func (d *Digest) Link(at, target string) *Leaf { return d.leaf(at, target, true) }

func (d *Digest) leaf(at, target string, link bool) *Leaf {
	below := strings.TrimPrefix(strings.TrimPrefix(at, d.Top), "/")
	l := &Leaf{d: d, at: below, target: target, link: link, content: sha256.New(), linked: sha256.New()}
	fmt.Fprintf(l.linked, "link\x00%s\x00", target)
	return l
}

// Write implements [io.Writer]. It never fails.
func (l *Leaf) Write(p []byte) (int, error) {
	_, _ = l.content.Write(p)
	if l.link {
		_, _ = l.linked.Write(p)
	}
	return len(p), nil
}

// Close implements [io.Closer]: it adds the file to the digest. It never fails.
func (l *Leaf) Close() error {
	how, content := "file", hex.EncodeToString(l.content.Sum(nil))
	l.d.last = content
	if l.link {
		how, l.d.last = "link", hex.EncodeToString(l.linked.Sum(nil))
	}
	fmt.Fprintf(&l.d.leaves, "%s %s %s %s\n", how, strconv.Quote(l.at), strconv.Quote(l.target), content)
	return nil
}

// Single returns the digest of an entry that is one file or one link.
func (d *Digest) Single() string { return d.last }

// Folder returns the digest of an entry that is a folder.
func (d *Digest) Folder() string {
	sum := sha256.Sum256([]byte(d.leaves.String()))
	return hex.EncodeToString(sum[:])
}

// IsDigest reports whether a text has the form of a digest: 64 lower-case hexadecimal digits.
func IsDigest(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// SHA256 returns the SHA-256 of data, in lower-case hex.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// BlobName returns the name of a blob with this SHA-256; see [Blobs].
func BlobName(sum []byte) string { return "sha256-" + hex.EncodeToString(sum) }

// ErrBlob means that a blob does not have the content that its name promises.
var ErrBlob = errors.New("blob is damaged: its content does not match its name")

// CheckBlob compares the content of a blob with its name while it is read: if they differ, the last Read fails with
// [ErrBlob] instead of reporting the end.
func CheckBlob(from io.ReadCloser, name string) io.ReadCloser {
	return &checkedBlob{from, sha256.New(), name}
}

type checkedBlob struct {
	io.ReadCloser
	sum  hash.Hash
	name string
}

func (b *checkedBlob) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.sum.Write(p[:n])
	if errors.Is(err, io.EOF) && BlobName(b.sum.Sum(nil)) != b.name {
		return n, fmt.Errorf("%s: %w", b.name, ErrBlob)
	}
	return n, err
}
