//go:build linux && !amd64 && !arm64

package walls

// auditArch returns 0: this architecture has no filter, so no box can be built.
func auditArch() uint32 { return 0 }

func metadataCalls() []uintptr { return nil }

func oldModeCalls() map[uintptr]int { return nil }

func oldOpenCalls() []uintptr { return nil }

func oldFolderCalls() []FolderCall { return nil }
