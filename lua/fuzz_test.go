package lua

import (
	"context"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// FuzzDecode: whatever the reply, decode returns an error, or the whole numbers
// that are packed in it.
func FuzzDecode(f *testing.F) {
	f.Add("", 1)
	f.Add("", 0)
	f.Add(pack(1, 2, 3, 4, 5, 6), 1)
	f.Add(pack(1, 2, 3, 4, 5, 6)+pack(1, 2, 3, 4, 5, 6, 7, 8), 2)
	f.Add(pack(1<<53, -1<<53, 1<<53-1, 0, 0, 0)+pack(1, 2, 3, 4, 5, -2), 2)
	f.Add(pack(math.NaN(), math.Inf(1), -0.5, 1e300, math.Copysign(0, -1), 5e-324), 1)
	f.Fuzz(func(t *testing.T, reply string, n int) {
		ops := make([]Op, min(max(n, 0), 1000))
		for i := range ops {
			ops[i] = Op{Kind: Kind(1 + i%4), Rows: make([]Row, i%3)}
		}
		got, err := decode(reply, ops)
		if err != nil {
			if got != nil || !strings.HasPrefix(err.Error(), "lua: take: ") || len(err.Error()) > 100 {
				t.Fatalf("decode() = %d answers, %v", len(got), err)
			}
			return
		}
		var all []int64
		for i, a := range got {
			all = append(all, int64(a.Status), a.Wait, a.At, a.KeyGen, a.ModelGen, a.By)
			if goes := a.Status == Go && ops[i].Kind <= Ask; len(a.Left) > 0 && !goes || goes && len(a.Left) != len(ops[i].Rows) {
				t.Fatalf("answer %d to %+v: %+v", i, ops[i], a)
			}
			for _, l := range a.Left {
				all = append(all, l.Units, l.Others)
			}
		}
		was := unpack([]byte(reply))
		if len(got) != len(ops) || len(all) != len(was) {
			t.Fatalf("%d answers and %d numbers from %d bytes", len(got), len(all), len(reply))
		}
		for i, x := range all {
			if x > 1<<53 || x < -1<<53 || float64(x) != was[i] {
				t.Fatalf("%d, packed was %v", x, was[i])
			}
		}
	})
}

// FuzzMembers: whatever Redis replies, the list of processes is complete or an error.
func FuzzMembers(f *testing.F) {
	f.Add("a\x001764400000000000\x00{}")
	f.Add("a\x001\x00{}\x00b\x00-2\x00")
	f.Add("a\x001")
	f.Add("a\x00x\x00y")
	f.Add("")
	f.Fuzz(func(t *testing.T, parts string) {
		var reply []any
		for part := range strings.SplitSeq(parts, "\x00") {
			if n, err := strconv.ParseInt(part, 10, 64); err == nil && n%2 == 0 {
				reply = append(reply, n) // a number where a text should be
				continue
			}
			reply = append(reply, part)
		}
		members, err := Members(t.Context(), &answering{replies: []any{reply}}, NewNames("p", "key"))
		if err != nil {
			if members != nil || !strings.HasPrefix(err.Error(), "lua: fleet: ") {
				t.Fatalf("Members() = %d, %v", len(members), err)
			}
			return
		}
		if len(members)*3 != len(reply) {
			t.Fatalf("%d members from %d parts", len(members), len(reply))
		}
		for i, m := range members {
			if m.Name != reply[3*i] || m.Report != reply[3*i+2] || strconv.FormatInt(m.Seen, 10) != strings.TrimPrefix(canonical(reply[3*i+1]), "+") {
				t.Fatalf("member %+v from %q", m, reply[3*i:3*i+3])
			}
		}
	})
}

// canonical spells a number as Go does.
func canonical(part any) string {
	text, _ := part.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return strconv.FormatInt(n, 10)
}

// FuzzReply: a reply of any other kind is an error of the script, never a panic.
func FuzzReply(f *testing.F) {
	f.Add("", 0)
	f.Add(pack(1, 2, 3, 4, 5, 6), 1)
	f.Add("NOSCRIPT No matching script", 3)
	f.Fuzz(func(t *testing.T, text string, kind int) {
		reply := []any{text, int64(kind), []any{text, int64(kind)}, replyError(text), nil, true, 1.5, []any{}}[uint(kind)%8]
		r := &answering{replies: []any{reply, reply}}
		answers, err := Decide(context.Background(), r, Batch{Ops: []Op{{Kind: Look, Key: "k", On: "k"}}})
		if (err == nil) != (len(answers) == 1) || err != nil && !strings.HasPrefix(err.Error(), "lua: take: ") || r.retry {
			t.Fatalf("Decide() = %d answers, %v", len(answers), err)
		}
		if len(r.names) > 1 && !redis.HasErrorPrefix(reply.(error), "NOSCRIPT") {
			t.Fatalf("sent %q after %v", r.names, reply)
		}
	})
}

// FuzzNames: two names of models, units, lanes or keys never meet, whatever they
// are, and what they make is bounded and in one slot of a cluster.
func FuzzNames(f *testing.F) {
	for _, pair := range [][2]string{
		{"m", "k"}, {"a:b", "a"}, {"m:line", "m"}, {"requests:1000", "requests"}, {"}{", "{key}"}, {"", "-"}, {"#00", "00"},
		{strings.Repeat("a", 64), strings.Repeat("a", 65)}, {"\r\nDEL x", "\x00"}, {"é", "e"}, {hashed("x"), "x"}, {"A", "a"},
	} {
		f.Add(pair[0], pair[1], int64(60_000_000))
	}
	f.Fuzz(func(t *testing.T, a, b string, window int64) {
		if a == b || a == "key" || b == "key" {
			return
		}
		seen := map[string]string{}
		check := func(key, what string) {
			if len(key) > 300 || strings.Count(key, "{") != 1 || strings.Count(key, "}") != 1 || strings.ContainsAny(key, "\r\n\x00 *?[") {
				t.Fatalf("%s: key %q", what, key)
			}
			if other, ok := seen[key]; ok {
				t.Fatalf("%s and %s share the key %q", what, other, key)
			}
			if tag := Tag(key); tag < 0 || tag >= 1<<53 {
				t.Fatalf("Tag(%q) = %d", key, tag)
			}
			seen[key] = what
		}
		for _, of := range []string{"key", a, b} {
			n := NewNames("p", of)
			check(n.Key(), "the key "+of)
			check(n.Fleet(), "the fleet of "+of)
			check(n.Line(n.Key()), "the line of "+of)
			if of != "key" {
				continue
			}
			check(n.Fleet()+":reports", "the reports")
			for _, model := range []string{a, b} {
				m := n.Model(model)
				check(m, "the model "+model)
				check(n.Line(m), "the line of the model "+model)
				for _, unit := range []string{a, b} {
					for _, fixed := range []bool{false, true} {
						what := "a tape of " + model + ", " + unit + strconv.FormatBool(fixed)
						check(n.Tape(m, unit, window, fixed, ""), what)
						check(n.Tape(m, unit, window, fixed, "x"+a), what+" and a lane")
						check(n.Tape(m, unit, window, fixed, "x"+b), what+" and the other lane")
					}
				}
			}
			for _, unit := range []string{a, b} {
				check(n.Tape(n.Key(), unit, window, false, ""), "a tape of the key, "+unit)
			}
			if !n.Has(n.Model(a)) || NewNames("p", a).Has(n.Model(a)) && a != "key" {
				t.Fatal("Has() takes the name of another key")
			}
		}
	})
}
