package throttle

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/lua"
)

// half is a store that is away for one key only, as a Redis Cluster whose node
// of that slot is dead.
type half struct {
	redisStore
	away    atomic.Pointer[lua.Names]
	foreign atomic.Bool // somebody's value stands where the fleet's list belongs
}

var errAway = errors.New("the node is away")

// foreignValue is Redis' word for a key that holds another kind of value.
type foreignValue struct{}

func (foreignValue) Error() string {
	return "WRONGTYPE Operation against a key holding the wrong kind of value"
}
func (foreignValue) RedisError() {}

func (s *half) decide(ctx context.Context, b lua.Batch) ([]lua.Answer, error) {
	if n := s.away.Load(); n != nil && b.Ops[0].Key == n.Key() {
		return nil, errAway
	}
	return s.redisStore.decide(ctx, b)
}

func (s *half) announce(ctx context.Context, names lua.Names, a lua.Announcement) (int, error) {
	if n := s.away.Load(); n != nil && names == *n {
		return 0, errAway
	}
	if s.foreign.Load() {
		return 0, foreignValue{}
	}
	return s.redisStore.announce(ctx, names, a)
}

// An outage of one key's node is told once, and ends when that node is back, not
// when another's answers.
func TestOutageOfOneNode(t *testing.T) {
	t.Parallel()
	client := server.Client()
	t.Cleanup(func() { _ = client.Close() })
	var events recorder
	c := models(PerMinute(Requests, 1000))
	c.Redis, c.Prefix, c.Members, c.StoreTimeout, c.OnEvent = client, prefix(t), 1, 5*time.Second, events.add
	l := newLimiter(t, c)
	store := &half{redisStore: redisStore{client}}
	l.store = store
	keys := []string{"dead", "a", "b", "c", "d"}
	all := func() {
		for _, key := range keys {
			ask := call()
			ask.Key = key
			reserve(t, l, ask)
		}
	}
	all()
	dead := lua.NewNames(c.Prefix, "dead")
	store.away.Store(&dead)
	for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
		all()
	}
	if lost, back := events.count(StoreLost), events.count(StoreBack); lost != 1 || back != 0 {
		t.Errorf("told %d times that the store is lost and %d times that it is back, want once and not", lost, back)
	}
	store.foreign.Store(true) // Redis works, only the list cannot be kept
	store.away.Store(nil)
	eventually(t, "the store is back", func() bool { return events.count(StoreBack) == 1 })
}
