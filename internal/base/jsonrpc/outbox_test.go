package jsonrpc

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a client that does not read.
type stuck chan struct{}

func (s stuck) Write([]byte) (int, error) {
	<-s
	return 0, errors.New("it was closed")
}

// TestClientDoesNotRead holds up those who send, until the conversation is over.
func TestClientDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(stuck)
		o := NewOutbox(end)
		sent := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 20 {
				o.Put([]byte(strings.Repeat("x", 1<<20-1)))
				sent++
			}
		}()
		synctest.Wait()
		if sent != 9 {
			t.Errorf("%d lines are queued", sent)
		}
		o.Hurry()
		<-done
		if err := o.Finish(5 * time.Second); err == nil {
			t.Error("it says that all was read")
		}
		close(end)
		<-o.done
		<-o.broken
		o.Put([]byte("x"))
		if err := o.Err(); err == nil || !strings.Contains(err.Error(), "it was closed") {
			t.Error(err)
		}
	})
}
