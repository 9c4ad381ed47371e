package throttle

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
)

// redisError is a reply of Redis, as go-redis hands it out.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// What certainly did not run is owed to the store; what may have run is not.
func TestNeverRan(t *testing.T) {
	t.Parallel()
	_, refused := net.Dial("tcp", "127.0.0.1:1")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"refused":      {refused, true},
		"cut":          {io.EOF, false},
		"read timeout": {&net.OpError{Op: "read", Err: errors.New("i/o timeout")}, false},
		"loading":      {redisError("LOADING Redis is loading the dataset in memory"), true},
		"read only":    {redisError("READONLY You can't write against a read only replica."), true},
		"memory":       {redisError("OOM command not allowed when used memory > 'maxmemory'."), true},
		"wrong type":   {redisError("WRONGTYPE Operation against a key"), false}, // Redis works: no outage begins
		"killed":       {redisError("ERR Error running script"), false},
		"our own":      {errors.New("no answer within 250ms"), false},
	} {
		if got := neverRan(fmt.Errorf("lua: take: %w", tc.err)); got != tc.want {
			t.Errorf("%s: neverRan(%v) = %v, want %v", name, tc.err, got, tc.want)
		}
	}
}
