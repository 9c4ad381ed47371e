package lua

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed fleet.lua
var fleetSource string

var fleetScript = redis.NewScript(fleetSource)

// MemberLife is how long, in microseconds, a process counts after its last word.
const MemberLife = int64(15 * time.Second / time.Microsecond)

// Announcement is one process' word to the list of those that use a key.
type Announcement struct {
	Name    string // must not be empty
	Report  string // opaque to the store
	Leaving bool
}

// Member is one process that uses a key.
type Member struct {
	Name   string
	Seen   int64 // microseconds of the store's clock
	Report string
}

// Announce enters or removes a process and returns how many there are.
func Announce(ctx context.Context, rdb Processor, n Names, a Announcement) (int, error) {
	leaving := ""
	if a.Leaving {
		leaving = "1"
	}
	members, err := fleet(ctx, rdb, n, a.Name, a.Report, leaving).Int()
	if err != nil {
		return 0, fmt.Errorf("lua: fleet: %w", err)
	}
	return members, nil
}

// Members lists the processes that use a key.
func Members(ctx context.Context, rdb Processor, n Names) ([]Member, error) {
	reply, err := fleet(ctx, rdb, n, "", "", "").StringSlice()
	if err != nil {
		return nil, fmt.Errorf("lua: fleet: %w", err)
	}
	if len(reply)%3 != 0 {
		return nil, fmt.Errorf("lua: fleet: reply has %d parts, want a multiple of 3", len(reply))
	}
	members := make([]Member, 0, len(reply)/3)
	for i := 0; i < len(reply); i += 3 {
		seen, err := strconv.ParseInt(reply[i+1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("lua: fleet: time of member %d: %w", i/3+1, err)
		}
		members = append(members, Member{Name: reply[i], Seen: seen, Report: reply[i+2]})
	}
	return members, nil
}

func fleet(ctx context.Context, rdb Processor, n Names, args ...any) *redis.Cmd {
	return run(ctx, rdb, fleetScript, fleetSource, []string{n.Fleet(), n.Fleet() + ":reports"}, append([]any{MemberLife}, args...)...)
}
