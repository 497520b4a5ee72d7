package profile_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/profile"
)

// programs are the outputs of programs, by name and last argument.
type programs map[string]string

func (p programs) run(_ context.Context, args ...string) (string, error) {
	key := args[0]
	if args[0] == "sysctl" {
		key = args[len(args)-1]
	}
	text, ok := p[key]
	if !ok {
		return "", errors.New("not found")
	}
	return text, nil
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestDevices(t *testing.T) {
	const mib = 1 << 20
	radeon := fstest.MapFS{
		"class/drm/card0/device/mem_info_vram_total": file("25753026560\n"),
		"class/drm/card0/device/mem_info_vram_used":  file("1500000000\n"),
		"class/drm/card0-DP-1/device/enabled":        file("enabled\n"),
		"class/drm/card1/device/vendor":              file("0x8086\n"),
	}
	for name, c := range map[string]struct {
		programs programs
		sys      fs.FS
		want     []profile.Device
	}{
		"nothing": {},
		"one": {
			programs{"nvidia-smi": "NVIDIA GeForce RTX 4090, 24564, 23012\n"},
			nil,
			[]profile.Device{{Name: "NVIDIA GeForce RTX 4090", Memory: 24564 * mib, Free: 23012 * mib}},
		},
		"windows": {
			programs{"nvidia-smi": "Tesla T4, 15360, 14923\r\n"},
			nil,
			[]profile.Device{{Name: "Tesla T4", Memory: 15360 * mib, Free: 14923 * mib}},
		},
		"unified": {programs{"nvidia-smi": "NVIDIA GB10, [N/A], [N/A]\n"}, nil, nil},
		"no card": {programs{"nvidia-smi": "No devices were found\n"}, nil, nil},
		"rubbish": {programs{"nvidia-smi": "a,b\n,,\nx,99999999999999999999,1\ny,-5,1\n"}, nil, nil},
		"amd":     {programs{}, radeon, []profile.Device{{Name: "AMD card0", Memory: 25753026560, Free: 24253026560}}},
		"amd mute": {
			programs{},
			fstest.MapFS{"class/drm/card0/device/mem_info_vram_total": file("8589934592")},
			[]profile.Device{{Name: "AMD card0", Memory: 8589934592}},
		},
		"amd odd": {programs{}, fstest.MapFS{"class/drm/card0/device/mem_info_vram_total": file("?")}, nil},
		"both": {
			programs{"nvidia-smi": "A, 8192, 8000\nB, 12288, 12000\n", "hw.optional.arm64": "1", "hw.memsize": "9"},
			radeon,
			[]profile.Device{
				{Name: "A", Memory: 8192 * mib, Free: 8000 * mib},
				{Name: "B", Memory: 12288 * mib, Free: 12000 * mib},
				{Name: "AMD card0", Memory: 25753026560, Free: 24253026560},
			},
		},
		"apple": {
			programs{"hw.optional.arm64": "1\n", "hw.memsize": "38654705664\n"},
			fstest.MapFS{},
			[]profile.Device{{Name: "Apple", Memory: 25769803776, Unified: true}},
		},
		"old apple": {programs{"hw.optional.arm64": "0\n", "hw.memsize": "38654705664\n"}, nil, nil},
		"odd apple": {programs{"hw.optional.arm64": "1", "hw.memsize": "much"}, nil, nil},
		"cut apple": {programs{"hw.optional.arm64": "1"}, nil, nil},
	} {
		got := profile.Devices(t.Context(), c.programs.run, c.sys)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		sum := int64(0)
		for _, d := range c.want {
			sum += d.Memory
		}
		if profile.Memory(got) != sum {
			t.Errorf("%s: %d bytes in all", name, profile.Memory(got))
		}
	}
}

// TestDevicesEnd lets a driver hang.
func TestDevicesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		hang := func(ctx context.Context, _ ...string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		if got := profile.Devices(t.Context(), hang, nil); got != nil || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v", got, time.Since(start))
		}
	})
}

// FuzzDevices checks that no print of a program makes a device without memory.
func FuzzDevices(f *testing.F) {
	f.Add("NVIDIA A, B, 24564, 23012\n[N/A],,\n")
	f.Add(strings.Repeat(",", 9))
	f.Add("x,9223372036854775807,-1")
	f.Fuzz(func(t *testing.T, text string) {
		run := programs{"nvidia-smi": text, "hw.optional.arm64": "1", "hw.memsize": text}.run
		for _, d := range profile.Devices(t.Context(), run, fstest.MapFS{"class/drm/card0/device/mem_info_vram_total": file(text)}) {
			if d.Memory <= 0 || d.Free < 0 {
				t.Fatalf("%q: %+v", text, d)
			}
		}
	})
}
