//go:build !linux

package session

import "errors"

// watcher is not implemented for this system, so logs check for appends of other processes.
type watcher struct{}

func newWatcher() (*watcher, error) { return nil, errors.ErrUnsupported }

func (*watcher) add(string) (int32, error) { return 0, errors.ErrUnsupported }
func (*watcher) remove(int32)              {}
func (*watcher) close()                    {}
func (*watcher) listen(func(int32))        {}
