package managed

import "time"

// OwnZone is a time zone that the program carries.
func OwnZone(name string) (*time.Location, error) { return ownZone(name) }

// Endpoints are all endpoints of this door, as METHOD PATH.
func Endpoints() (out []string) {
	for _, e := range endpoints(nil) {
		out = append(out, e.method+" /v1/"+e.path)
	}
	return out
}
