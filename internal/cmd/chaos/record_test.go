package main

import (
	"context"
	"errors"
	"testing"

	"github.com/headway-go/headway/lua"
	"github.com/redis/go-redis/v9"
)

// silent takes commands and never answers.
type silent struct{ units int64 }

func (s *silent) Process(_ context.Context, cmd redis.Cmder) error {
	s.units += units(cmd)
	return errors.New("no answer")
}

// A command of unknown fate counts for all that it would charge.
func TestUnits(t *testing.T) {
	rows := func(cost int64) []lua.Row {
		return []lua.Row{{Tape: "a", Window: 1, Amount: 9, Cost: cost}, {Tape: "b", Window: 1, Amount: 9, Burst: -1, Cost: 1}}
	}
	var s silent
	_, _ = lua.Decide(t.Context(), &s, lua.Batch{Ops: []lua.Op{
		{Kind: lua.Take, Key: "k", Model: "m", Line: "l", Rows: rows(1)},
		{Kind: lua.Charge, Key: "k", Model: "m", Rows: rows(13)},
		{Kind: lua.Adjust, Key: "k", Model: "m", Rows: rows(-2)},
		{Kind: lua.Look, Key: "k", On: "k"},
	}})
	_, _ = lua.Announce(t.Context(), &s, lua.NewNames("p", "k"), lua.Announcement{Name: "n"})
	if s.units != 16 {
		t.Errorf("units = %d, want 1 + 13 + 2", s.units)
	}
}
