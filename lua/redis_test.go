package lua

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func pack(v ...float64) string { return string(appendFloats(nil, v...)) }

// A reply is checked for its length and for whole numbers; errors name the script.
func TestDecode(t *testing.T) {
	good := pack(1, 2, 3, 4, 5, -2)
	answers := func(n int) []Op { return make([]Op, n) }
	take := []Op{{Kind: Take, Rows: make([]Row, 2)}}
	for _, tc := range []struct {
		name, reply string
		ops         []Op
		want        string // part of the error, "" for none
	}{
		{"one answer", good, answers(1), ""},
		{"two answers", good + good, answers(2), ""},
		{"none", "", nil, ""},
		{"empty", "", answers(1), "answer 1 of 1: the reply is too short"},
		{"short", good[:47], answers(1), "too short"},
		{"long", good + "x", answers(1), "1 bytes too many"},
		{"one of two", good, answers(2), "answer 2 of 2: the reply is too short"},
		{"NaN", pack(1, math.NaN(), 0, 0, 0, 0), answers(1), "answer 1 of 1: field 2"},
		{"infinite", pack(1, 0, math.Inf(1), 0, 0, 0), answers(1), "answer 1 of 1: field 3"},
		{"minus infinite", pack(1, 0, 0, math.Inf(-1), 0, 0), answers(1), "answer 1 of 1: field 4"},
		{"a half", good + pack(1, 0, 0, 0, 0.5, 0), answers(2), "answer 2 of 2: field 5"},
		{"above 2^53", pack(0, 0, 0, 0, 0, 1<<54), answers(1), "answer 1 of 1: field 6"},
		{"2^53-1", pack(1, 1<<53-1, 0, 0, 0, 0), answers(1), ""},
		{"go, with what is left", good + pack(7, -8, 9, 0), take, ""},
		{"go, without", good, take, "rows of answer 1 of 1: the reply is too short"},
		{"refused, with what is left", pack(0, 2, 3, 4, 5, -2, 7, 8), take, "16 bytes too many"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := decode(tc.reply, tc.ops)
			if (err != nil) != (tc.want != "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "lua: take: ")) {
				t.Errorf("decode() = %v, want an error with %q", err, tc.want)
			}
			if err == nil && len(got) != len(tc.ops) {
				t.Errorf("decode() = %d answers, want %d", len(got), len(tc.ops))
			}
		})
	}
	if got, _ := decode(good+pack(7, -8, 9, 0), take); !reflect.DeepEqual(got[0], Answer{Go, 2, 3, 4, 5, ByKey, []Left{{7, -8}, {9, 0}}}) {
		t.Errorf("decode() = %+v", got[0])
	}
}

// The encoder names each key once, by its index as Lua counts, however many there are.
func TestEncoderKeys(t *testing.T) {
	var e encoder
	for range 2 {
		for i := range 100 {
			if got := e.key(fmt.Sprint("key", i)); got != float64(i+1) {
				t.Fatalf("key(%d) = %v, want %d", i, got, i+1)
			}
		}
	}
	if len(e.keys) != 100 {
		t.Errorf("%d keys, want 100", len(e.keys))
	}
}

// The encoder packs what the header of take.lua says.
func TestEncoderLayout(t *testing.T) {
	zone := Zone{Offset: -5, Change: 6, Next: 7}
	for _, tc := range []struct {
		name string
		op   Op
		want []float64
	}{
		{"take", Op{Kind: Take, Key: "k", Model: "m", Line: "l", Share: 0.6, Patience: 9, Rows: []Row{{Tape: "t", Tag: 1, Window: 2, Ceiling: 3, Amount: 4, Burst: 0, Cost: 5, Margin: 6}}},
			[]float64{1, 1, 2, 3, 1, 0.6, 9, 0, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4, 0, 5, 6}},
		{"fixed", Op{Kind: Take, Key: "k", Model: "m", Line: "l", Share: 1, Rows: []Row{{Tape: "t", Burst: -1, Zone: zone}}},
			[]float64{1, 1, 2, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, -1, 0, 0, -5, 6, 7}},
		{"ask", Op{Kind: Ask, Key: "k", Model: "m", Line: "l", Share: 1, Patience: 9, ID: 77}, []float64{2, 1, 2, 3, 0, 1, 9, 77, 0, 0, 0, 0, 0}},
		{"leave", Op{Kind: Leave, Key: "k", Model: "m", Line: "l", ID: 77}, []float64{3, 1, 2, 3, 0, 0, 0, 77, 0, 0, 0, 0, 0}},
		{"adjust", Op{Kind: Adjust, Key: "k", Model: "m", Line: "l", ID: 1, At: 99}, []float64{4, 1, 2, 3, 0, 0, 0, 99, 0, 0, 0, 0, 0}},
		{"hold", Op{Kind: Hold, Key: "k", Model: "m", Line: "l", On: "m", Length: 1, Longest: 2, Calm: 3, First: true, Gen: 4, Rule: 2, Why: -1},
			[]float64{5, 1, 2, 3, 0, 2, 1, 2, 3, 1, 4, 2, -1}},
		{"resume without a model", Op{Kind: Resume, Key: "k", On: "k"}, []float64{8, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var e encoder
			e.op(&tc.op)
			if got := string(e.buf); got != pack(tc.want...) {
				t.Errorf("packed %v, want %v", unpack(e.buf), tc.want)
			}
		})
	}
}

func unpack(b []byte) (v []float64) {
	for ; len(b) >= 8; b = b[8:] {
		v = append(v, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return v
}

// answering is a Redis that gives the next reply to each command.
type answering struct {
	replies []any // string, or error
	names   []string
	retry   bool // a command that may be sent again was seen
}

func (r *answering) Process(_ context.Context, cmd redis.Cmder) error {
	r.names = append(r.names, cmd.Name())
	r.retry = r.retry || !cmd.NoRetry()
	reply := r.replies[0]
	r.replies = r.replies[1:]
	if err, ok := reply.(error); ok {
		cmd.SetErr(err)
		return err
	}
	cmd.(once).SetVal(reply)
	return nil
}

// replyError is an error of the Redis server, as go-redis knows it.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

// Only a script that Redis does not have is sent again, with its source; S22, S23.
func TestDecideSends(t *testing.T) {
	ok := pack(1, 0, 0, 0, 0, 0)
	lost := errors.New("connection reset")
	for _, tc := range []struct {
		name    string
		replies []any
		sent    string
		want    string // part of the error, "" for none
	}{
		{"loaded", []any{ok}, "evalsha", ""},
		{"not loaded", []any{replyError("NOSCRIPT No matching script."), ok}, "evalsha eval", ""},
		{"not loaded, then lost", []any{replyError("NOSCRIPT"), lost}, "evalsha eval", "connection reset"},
		{"lost", []any{lost}, "evalsha", "connection reset"},
		{"wrong type", []any{replyError("WRONGTYPE Operation")}, "evalsha", "WRONGTYPE"},
		{"read only", []any{replyError("READONLY You can't write")}, "evalsha", "READONLY"},
		{"a number", []any{int64(7)}, "evalsha", "take"},
		{"a list", []any{[]any{"x"}}, "evalsha", "take"},
		{"nothing", []any{nil}, "evalsha", "take"},
		{"short", []any{"abc"}, "evalsha", "too short"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &answering{replies: tc.replies}
			_, err := Decide(t.Context(), r, Batch{Ops: []Op{{Kind: Look, Key: "k", On: "k"}}})
			if (err != nil) != (tc.want != "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "lua: take: ")) {
				t.Errorf("Decide() = %v, want an error with %q", err, tc.want)
			}
			if got := strings.Join(r.names, " "); got != tc.sent {
				t.Errorf("sent %q, want %q", got, tc.sent)
			}
			if r.retry {
				t.Error("a command was sent that go-redis may repeat")
			}
		})
	}
}

// The scripts use nothing that some servers lack or that is not exact.
func TestScriptsArePortable(t *testing.T) {
	for name, source := range map[string]string{"take.lua": takeSource, "fleet.lua": fleetSource} {
		for _, bad := range []string{"cjson", "cmsgpack", "bit.", " unpack(", "#!", "tostring", "KEYS[1] ..", "redis.pcall"} {
			if strings.Contains(source, bad) {
				t.Errorf("%s uses %q", name, bad)
			}
		}
	}
	if n := strings.Count(takeSource, "\n") + strings.Count(fleetSource, "\n"); n > 530 {
		t.Errorf("the scripts have %d lines together, want 530 at most", n)
	}
}
