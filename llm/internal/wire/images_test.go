package wire

import "testing"

// A quarter of the room is made at once, so that the prefix changes seldom.
func TestOldImagesMakeRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		limits      Images
		size        int
		most, after int // images there at any time, and after a cut
	}{
		"by bytes": {Images{Bytes: 20}, 4, 5, 3},
		"by count": {Images{Count: 20}, 4, 20, 15},
		"by both":  {Images{Count: 4, Bytes: 100}, 4, 4, 3},
		"no limit": {Images{}, 4, 60, 60},
	} {
		var sizes []int
		gone := 0
		for i := range 60 {
			sizes = append(sizes, tc.size)
			now := tc.limits.first(sizes)
			if there := i + 1 - now; there < 1 || there > tc.most || now < gone || now != gone && there != tc.after {
				t.Fatalf("%s: image %d: %d there, %d gone, before %d", name, i, there, now, gone)
			}
			gone = now
		}
	}
	if n := (Images{Bytes: 20}).first([]int{1, 2, 100}); n != 2 {
		t.Errorf("of one huge image all but %d go, want 2", n)
	}
}
