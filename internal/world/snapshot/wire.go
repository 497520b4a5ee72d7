package snapshot

import (
	"encoding/binary"
	"slices"
)

// encoder appends values to b.
type encoder struct{ b []byte }

func (e *encoder) byte(v byte)     { e.b = append(e.b, v) }
func (e *encoder) num(v int64)     { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) str(v string)    { e.num(int64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) digest(v digest) { e.b = append(e.b, v[:]...) }

// decoder takes values off b. After an error it is bad, and returns only zero values.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) fail() {
	d.b, d.bad = nil, true
}

func (d *decoder) raw(n int64) []byte {
	if n < 0 || n > int64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if v := d.raw(1); len(v) == 1 {
		return v[0]
	}
	return 0
}

func (d *decoder) num() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) str() string { return string(d.raw(d.num())) }

func (d *decoder) digest() (v digest) {
	copy(v[:], d.raw(int64(len(v))))
	return v
}

// count returns a number of items that take at least one byte each.
func (d *decoder) count() int {
	n := d.num()
	if n < 0 || n > int64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

// list reads a counted list.
func list[T any](d *decoder, one func() T) []T {
	n := d.count()
	var out []T
	for range n {
		v := one()
		if d.bad {
			return nil
		}
		out = append(out, v)
	}
	return slices.Clip(out)
}
