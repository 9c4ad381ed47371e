package lua

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func names(t *testing.T) Names {
	return NewNames("lua", fmt.Sprintf("%s.%d", t.Name(), time.Now().UnixNano()))
}

// The list of processes: who comes, who goes, what they say.
func TestFleet(t *testing.T) {
	c := server.Client()
	defer c.Close()
	ctx, n := t.Context(), names(t)
	for i, tc := range []struct {
		a    Announcement
		want int
	}{
		{Announcement{Name: "a", Report: "one"}, 1},
		{Announcement{Name: "b", Report: `{"x":"\u0000"}`}, 2},
		{Announcement{Name: "a", Report: "two"}, 2},
		{Announcement{Name: "stranger", Leaving: true}, 2},
		{Announcement{Name: "b", Leaving: true}, 1},
	} {
		if got, err := Announce(ctx, c, n, tc.a); err != nil || got != tc.want {
			t.Errorf("announcement %d = %d, %v, want %d", i, got, err, tc.want)
		}
	}
	long := float64(time.Now().UnixMicro() - MemberLife - 1e6)
	c.ZAdd(ctx, n.Fleet(), redis.Z{Score: long, Member: "dead"})
	if got, err := Announce(ctx, c, n, Announcement{Name: "a", Report: "two"}); err != nil || got != 1 {
		t.Errorf("announcement beside a dead process = %d, %v, want 1", got, err)
	}
	members, err := Members(ctx, c, n)
	if err != nil || len(members) != 1 || members[0].Name != "a" || members[0].Report != "two" {
		t.Fatalf("Members() = %+v, %v, want a with its second report", members, err)
	}
	if age := time.Since(time.UnixMicro(members[0].Seen)); age < -time.Second || age > time.Minute {
		t.Errorf("seen %v ago", age)
	}
	for _, k := range []string{n.Fleet(), n.Fleet() + ":reports"} { // S20
		if ttl := c.PTTL(ctx, k).Val(); ttl <= 0 || ttl > time.Duration(MemberLife)*time.Microsecond {
			t.Errorf("%s expires in %v, want one life", k, ttl)
		}
	}
	if _, err := Announce(ctx, c, n, Announcement{Name: "a", Leaving: true}); err != nil {
		t.Fatal(err)
	}
	if k := c.Exists(ctx, n.Fleet(), n.Fleet()+":reports").Val(); k != 0 {
		t.Errorf("%d keys are left when everyone has gone", k)
	}
}

// S20: a script that fails half-way leaves no key without an expiry.
func TestFleetFailsHalfWay(t *testing.T) {
	c := server.Client()
	defer c.Close()
	ctx, n := t.Context(), names(t)
	c.Set(ctx, n.Fleet()+":reports", "foreign", time.Minute)
	if _, err := Announce(ctx, c, n, Announcement{Name: "a"}); err == nil || !strings.Contains(err.Error(), "fleet") {
		t.Errorf("Announce() = %v, want an error that names the script", err)
	}
	if ttl := c.PTTL(ctx, n.Fleet()).Val(); ttl == -1 {
		t.Errorf("%s has no expiry", n.Fleet())
	}
}

// A reply of the wrong shape is an error.
func TestMembersReplies(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reply any
		want  string
	}{
		{"good", []any{"a", "1764400000000000", "r"}, ""},
		{"empty", []any{}, ""},
		{"two parts", []any{"a", "1"}, "multiple of 3"},
		{"no time", []any{"a", "x", "r"}, "time of member 1"},
		{"a number", int64(3), "fleet"},
		{"a list in the list", []any{[]any{}, "1", "r"}, "fleet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Members(t.Context(), &answering{replies: []any{tc.reply}}, NewNames("p", "k"))
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Members() = %v, want an error with %q", err, tc.want)
			}
		})
	}
}
