package throttle

import (
	"context"

	"github.com/headway-go/headway/lua"
)

// store is the seam between the decision and where its state lives. Both
// implementations give the same answers to the same operations.
type store interface {
	decide(ctx context.Context, b lua.Batch) ([]lua.Answer, error)
	announce(ctx context.Context, n lua.Names, a lua.Announcement) (members int, err error)
	members(ctx context.Context, n lua.Names) ([]lua.Member, error)
}

// redisStore is the store in Redis.
type redisStore struct{ client RedisClient }

func (s redisStore) decide(ctx context.Context, b lua.Batch) ([]lua.Answer, error) {
	return lua.Decide(ctx, s.client, b)
}

func (s redisStore) announce(ctx context.Context, n lua.Names, a lua.Announcement) (int, error) {
	return lua.Announce(ctx, s.client, n, a)
}

func (s redisStore) members(ctx context.Context, n lua.Names) ([]lua.Member, error) {
	return lua.Members(ctx, s.client, n)
}
