package providers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/models/catalog"
	"github.com/inspan/inspan/llm"
)

// mostBook bounds a person's own price book, in bytes.
const mostBook = 1 << 20

// PricesPath returns the path of the person's own price book, which need not exist.
func PricesPath(set *config.Installation) string {
	return filepath.Join(filepath.Dir(set.ConfigPath), "prices.toml")
}

// OwnPrices reads the person's own price book; nil means there is none.
func OwnPrices(set *config.Installation) (*catalog.Book, error) {
	path := PricesPath(set)
	data, err := config.ReadAtMost(path, mostBook)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, config.Error{Err: err}
	}
	b, err := catalog.Read(data)
	if err != nil {
		return nil, config.Error{Err: fmt.Errorf("%s: %w; correct it, or remove it to use the built-in prices", path, err)}
	}
	return b, nil
}

// TakePrices installs a file as the person's own price book, if it is valid.
func TakePrices(set *config.Installation, from string) (*catalog.Book, error) {
	data, err := config.ReadAtMost(from, mostBook)
	if err != nil {
		return nil, err
	}
	b, err := catalog.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if err := os.MkdirAll(filepath.Dir(PricesPath(set)), 0o700); err != nil {
		return nil, err
	}
	return b, keep.Write(PricesPath(set), data)
}

// book returns the price book in use.
func (s *Set) book() *catalog.Book {
	if s.Prices != nil {
		return s.Prices
	}
	return catalog.BuiltIn()
}

// priced returns the price book's entry for a provider's model. Adapters use the built-in book themselves.
func (s *Set) priced(p Provider, id string) llm.Info {
	vendor := p.Dialect
	switch {
	case p.Kind == "anthropic" || p.Kind == "gemini":
		vendor = p.Kind
	case vendor == "" || vendor == "azure":
		vendor = "openai"
	}
	return s.book().Find(vendor, id)
}
