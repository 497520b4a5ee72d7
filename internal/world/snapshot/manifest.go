package snapshot

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

const (
	mostManifest = 4 << 20 // bytes
	mostPacks    = 24      // of several objects; above this number the small ones are sent again as one
	mostAll      = 20_000  // packs of a state
	sentName     = "sent"

	rememberedSize = 32 + 4
)

// ErrManifest says that a blob is not the manifest of a workspace.
var ErrManifest = errors.New("not the manifest of a workspace")

// manifest describes a state of a workspace in blobs.
type manifest struct {
	Name  string     `json:"name"` // random: no two manifests are equal
	Tree  string     `json:"tree"` // digest of the workspace's tree
	Perm  uint16     `json:"perm"` // of the workspace
	Bytes int64      `json:"bytes"`
	Files int        `json:"files"`
	Left  int        `json:"left,omitempty"`
	Packs []sentPack `json:"packs"` // that together contain all objects
}

// sentPack is a pack in a blob.
type sentPack struct {
	Blob string `json:"blob"`
	Size int64  `json:"size"`
	Live int64  `json:"live"`          // bytes of needed objects
	One  bool   `json:"one,omitempty"` // it has one object, a big one
}

// parseManifest parses a manifest from an untrusted source.
func parseManifest(data []byte) (*manifest, digest, error) {
	var m manifest
	data, marked := bytes.CutPrefix(data, []byte(stateMark))
	if !marked {
		return nil, digest{}, ErrManifest
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, digest{}, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	root, ok := parseDigest(m.Tree)
	if !ok || m.Perm&^permission != 0 || len(m.Packs) > mostAll || m.Bytes < 0 || m.Files < 0 || m.Left < 0 {
		return nil, digest{}, ErrManifest
	}
	total := int64(0)
	for _, p := range m.Packs {
		if !goodBlob(p.Blob) || p.Size < trailerSize || p.Live < 0 || p.Live > p.Size || p.Size > math.MaxInt64-total {
			return nil, digest{}, ErrManifest
		}
		total += p.Size
	}
	return &m, root, nil
}

// goodBlob reports whether this is a valid name of a blob, which is also a file name in the store.
func goodBlob(name string) bool {
	hex, ok := strings.CutPrefix(name, "sha256-")
	_, good := parseDigest(hex)
	return ok && good && strings.ToLower(hex) == hex
}

// Sent describes a state of a workspace in blobs.
type Sent struct {
	Manifest string // names the blob of the manifest
	Files    int    // regular files whose content is kept
	Bytes    int64  // total size of these
	Left     int    // files and folders without content, because they are unreadable
	New      int64  // bytes that were uploaded; 0 means the state is unchanged
	// Gone are blobs of the previous state that this one does not need. They can be removed once that state is
	// no longer needed: names of blobs are never reused.
	Gone []string
}

func (m *manifest) sent(name string) Sent {
	return Sent{Manifest: name, Files: m.Files, Bytes: m.Bytes, Left: m.Left}
}

// sentManifest reads a manifest, from the store if it is known there.
func (s *Store) sentManifest(ctx context.Context, blobs tool.Blobs, name string) (*manifest, digest, error) {
	if !goodBlob(name) {
		return nil, digest{}, fmt.Errorf("%q: %w", name, ErrManifest)
	}
	data, err := keep.Read(s.path(sentName, name))
	if sum := sha256.Sum256(data); err != nil || keep.BlobName(sum[:]) != name {
		if data, err = readBlob(ctx, blobs, name); err != nil {
			return nil, digest{}, err
		}
	}
	return parseManifest(data)
}

func readBlob(ctx context.Context, blobs tool.Blobs, name string) ([]byte, error) {
	r, err := blobs.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, mostManifest+1))
	if err == nil && len(data) > mostManifest {
		err = ErrManifest
	}
	return data, err
}

// sendManifest writes a manifest to a blob, and to the store.
func (s *Store) sendManifest(ctx context.Context, blobs tool.Blobs, m *manifest) (name string, size int, err error) {
	m.Name = rand.Text()
	data, err := json.Marshal(m)
	data = append([]byte(stateMark), data...)
	if err == nil {
		name, err = blobs.Put(ctx, bytes.NewReader(data))
	}
	if err == nil {
		err = s.writeLoose(s.path(sentName, name), data)
	}
	return name, len(data), err
}

// remember stores the index of a pack, so that later states need not read the pack.
func (s *Store) remember(blob string, index []indexed) error {
	b := make([]byte, 0, len(index)*rememberedSize+sha256.Size)
	for _, x := range index {
		b = append(b, x.sum[:]...)
		b = binary.LittleEndian.AppendUint32(b, x.size)
	}
	sum := sha256.Sum256(b)
	return s.writeLoose(s.path(sentName, blob), append(b, sum[:]...))
}

// remembered reads a stored index of a pack.
func (s *Store) remembered(blob string) ([]indexed, error) {
	data, err := keep.Read(s.path(sentName, blob))
	if err != nil {
		return nil, err
	}
	at := len(data) - sha256.Size
	if at < 0 || at%rememberedSize != 0 || sha256.Sum256(data[:at]) != digest(data[at:]) {
		return nil, errDamaged
	}
	index := make([]indexed, 0, at/rememberedSize)
	for b := data[:at]; len(b) > 0; b = b[rememberedSize:] {
		index = append(index, indexed{sum: digest(b[:32]), size: binary.LittleEndian.Uint32(b[32:])})
	}
	return index, nil
}

// forget removes stored data about blobs that a state does not need.
func (s *Store) forget(name string, m *manifest) error {
	known, err := os.ReadDir(s.path(sentName))
	if err != nil {
		return err
	}
	need := map[string]bool{name: true}
	for _, p := range m.Packs {
		need[p.Blob] = true
	}
	for _, e := range known {
		if !need[e.Name()] {
			s.step("forget blob")
			if err := os.Remove(s.path(sentName, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// Needed returns the blobs of a workspace state: its manifest last.
func Needed(ctx context.Context, blobs tool.Blobs, name string) ([]string, error) {
	data, err := readBlob(ctx, blobs, name)
	if err != nil {
		return nil, err
	}
	m, _, err := parseManifest(data)
	if err != nil {
		return nil, err
	}
	return append(m.without(&manifest{}), name), nil
}
