package schedule_test

import (
	"archive/zip"
	"bytes"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/schedule"
	"github.com/inspan/inspan/internal/testkit"
)

var update = flag.Bool("update", false, "write the archive of time zones anew")

// TestOwnZones holds that the program carries all zones of the Go that builds it. That one may know
// other rules for the time to come, so the past is compared.
func TestOwnZones(t *testing.T) {
	raw := zonesOfGo(t)
	if *update {
		if err := testkit.Pack("zoneinfo.zip.gz", raw); err != nil {
			t.Fatal(err)
		}
		return // this program carries what there was when it was built
	}
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	zones := 0
	for _, f := range archive.File {
		if f.FileInfo().IsDir() {
			continue
		}
		data, err := fs.ReadFile(archive, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := time.LoadLocationFromTZData(f.Name, data)
		if err != nil {
			t.Fatal(f.Name, err)
		}
		got, err := schedule.OwnZone(f.Name)
		if err != nil {
			t.Fatal(f.Name, err)
		}
		zones++
		for at := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC); at.Year() < 2025; at = at.AddDate(0, 3, 0) {
			if g, w := at.In(got).String(), at.In(want).String(); g != w {
				t.Fatalf("%s: %s, want %s; run make update", f.Name, g, w)
			}
		}
	}
	if zones < 500 {
		t.Errorf("%d zones", zones)
	}
}

func zonesOfGo(t *testing.T) []byte {
	t.Helper()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
