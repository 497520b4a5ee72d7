package limit

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// holding is the reservation of this process's running requests in a [Budget]. Others see it in a file next to
// theirs, whose lock the system releases when the process dies: an unlocked file holds nothing. All of this
// happens under the lock of the budget's record.
type holding struct {
	file    *os.File // nil means nothing is held, or there is no place for it
	running int
	usd     float64
}

// folder is where the holdings of all processes are.
func (b *Budget) folder() string { return b.Path + ".held" }

// others returns the sum of all other holdings, and removes abandoned ones.
func (b *Budget) others() (usd float64, running int, err error) {
	if b.Path == "" {
		return 0, 0, nil
	}
	entries, err := os.ReadDir(b.folder())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, 0, err
	}
	for _, e := range entries {
		path := filepath.Join(b.folder(), e.Name())
		if b.held.file != nil && path == b.held.file.Name() {
			continue
		}
		n, amount, err := heldIn(path)
		if err != nil {
			return 0, 0, err
		}
		usd, running = usd+amount, running+n
	}
	return usd, running, nil
}

// heldIn reads another process's holding, which is abandoned if it is not locked.
func heldIn(path string) (running int, usd float64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	free, err := tryLock(f)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("lock %s: %w", path, err)
	case free:
		return 0, 0, os.Remove(path)
	}
	raw, err := keep.Read(path)
	if err != nil {
		return 0, 0, err
	}
	count, amount, _ := strings.Cut(strings.TrimSpace(string(raw)), " ")
	running, err = strconv.Atoi(count)
	usd, bad := strconv.ParseFloat(strings.TrimSpace(amount), 64)
	if err != nil || bad != nil || math.IsNaN(usd) || usd < 0 {
		return 1, 0, nil // it was killed as it wrote, or is of a later version: something runs
	}
	return running, usd, nil
}

// take changes the holding, and shows it to the others.
func (b *Budget) take(running int, usd float64) error {
	b.held.running += running
	if b.held.usd = max(0, b.held.usd+usd); b.held.running <= 0 {
		b.held.running, b.held.usd = 0, 0
	}
	if b.Path == "" {
		return nil
	}
	if b.held.running == 0 {
		return b.drop()
	}
	if b.held.file == nil {
		if err := b.open(); err != nil {
			return err
		}
	}
	// A fixed length, so that one write replaces the line before it.
	_, err := b.held.file.WriteAt(fmt.Appendf(nil, "%8d %40.9f\n", b.held.running, b.held.usd), 0)
	return err
}

func (b *Budget) open() error {
	if err := os.MkdirAll(b.folder(), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(b.folder(), "process-*")
	if err != nil {
		return err
	}
	if _, err := tryLock(f); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	b.held.file = f
	return nil
}

// drop releases the file.
func (b *Budget) drop() error {
	f := b.held.file
	if f == nil {
		return nil
	}
	b.held.file = nil
	return errors.Join(os.Remove(f.Name()), f.Close())
}
