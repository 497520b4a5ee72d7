package schedule

import "time"

// OwnZone is a time zone that the program carries.
func OwnZone(name string) (*time.Location, error) { return ownZone(name) }
