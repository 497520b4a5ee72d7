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
	mostPacks    = 24      // of several objects, from which on the small ones are sent anew, as one
	mostAll      = 20_000  // packs of a state
	sentName     = "sent"

	rememberedSize = 32 + 4
)

// ErrManifest says that a blob is not the manifest of a workspace.
var ErrManifest = errors.New("not the manifest of a workspace")

// manifest is a state of a workspace that lies in blobs.
type manifest struct {
	Name  string     `json:"name"` // random: no other manifest has the same content
	Tree  string     `json:"tree"` // digest of the workspace's tree
	Perm  uint16     `json:"perm"` // of the workspace
	Bytes int64      `json:"bytes"`
	Files int        `json:"files"`
	Left  int        `json:"left,omitempty"`
	Packs []sentPack `json:"packs"` // that hold all objects together
}

// sentPack is a pack in a blob.
type sentPack struct {
	Blob string `json:"blob"`
	Size int64  `json:"size"`
	Live int64  `json:"live"`          // bytes of objects that the state needs
	One  bool   `json:"one,omitempty"` // it has one object, which is a big one
}

// parseManifest reads a manifest that anybody may have written.
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

// goodBlob reports whether this names a blob. It is a file name of the store too.
func goodBlob(name string) bool {
	hex, ok := strings.CutPrefix(name, "sha256-")
	_, good := parseDigest(hex)
	return ok && good && strings.ToLower(hex) == hex
}

// Sent is a state of a workspace that lies in blobs.
type Sent struct {
	Manifest string // names the blob that lists it
	Files    int    // regular files whose content is kept
	Bytes    int64  // size of these together
	Left     int    // files and folders whose content is left out, as it can't be read
	New      int64  // bytes that were put for it; 0: it is the state before
	// Gone are blobs of the state before that this one does not need. Once nobody goes back to that, they
	// can be removed: no other state ever has one of the same name.
	Gone []string
}

func (m *manifest) sent(name string) Sent {
	return Sent{Manifest: name, Files: m.Files, Bytes: m.Bytes, Left: m.Left}
}

// sentManifest reads a manifest, here if it is known here.
func (s *Store) sentManifest(ctx context.Context, blobs tool.Blobs, name string) (*manifest, digest, error) {
	if !goodBlob(name) {
		return nil, digest{}, fmt.Errorf("%q: %w", name, ErrManifest)
	}
	data, err := keep.Read(s.path(sentName, name))
	if sum := sha256.Sum256(data); err != nil || tool.BlobName(sum[:]) != name {
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

// sendManifest puts a manifest into a blob, and remembers it here.
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

// remember keeps here what is in a pack, so that it need not be read for the next state.
func (s *Store) remember(blob string, index []indexed) error {
	b := make([]byte, 0, len(index)*rememberedSize+sha256.Size)
	for _, x := range index {
		b = append(b, x.sum[:]...)
		b = binary.LittleEndian.AppendUint32(b, x.size)
	}
	sum := sha256.Sum256(b)
	return s.writeLoose(s.path(sentName, blob), append(b, sum[:]...))
}

// remembered is what is in a pack, as it was kept here.
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

// forget removes what is remembered of blobs that a state does not need.
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

// Needed are the blobs that a state of a workspace is made of: its manifest last.
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
