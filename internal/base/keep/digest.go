package keep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

// A Digest names the content of a file, of what a link leads to, or of all that is in a
// folder: whatever changes in it changes the digest, also a name, or where a link leads.
// Whoever asks for trust and whoever checks it use the same, so that they can't disagree.
// The zero value is ready for the entry Top; files are added in the order of their paths.
type Digest struct {
	Top    string // path of the entry, as those of the files begin
	leaves strings.Builder
	last   string
}

// A Leaf takes the content of one file of a [Digest].
type Leaf struct {
	d               *Digest
	at, target      string
	link            bool
	content, linked hash.Hash
}

// File begins a file. Its content is written to the leaf, which is closed then.
func (d *Digest) File(at string) *Leaf { return d.leaf(at, "", false) }

// Link begins a link, whose content is that of the file it leads to.
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

// Close implements [io.Closer]: the file is a part of the digest from here on. It never
// fails.
func (l *Leaf) Close() error {
	how, content := "file", hex.EncodeToString(l.content.Sum(nil))
	l.d.last = content
	if l.link {
		how, l.d.last = "link", hex.EncodeToString(l.linked.Sum(nil))
	}
	fmt.Fprintf(&l.d.leaves, "%s %s %s %s\n", how, strconv.Quote(l.at), strconv.Quote(l.target), content)
	return nil
}

// Single is the digest of an entry that is one file or one link.
func (d *Digest) Single() string { return d.last }

// Folder is the digest of an entry that is a folder.
func (d *Digest) Folder() string {
	sum := sha256.Sum256([]byte(d.leaves.String()))
	return hex.EncodeToString(sum[:])
}

// IsDigest reports whether a text has the form of a digest: 64 hexadecimal digits in small letters.
func IsDigest(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }
