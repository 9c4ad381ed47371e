package lua

import (
	"fmt"
	"strings"
	"testing"
)

// every spells all keys of a model, a unit and a lane.
func every(n Names, model, unit, lane string) []string {
	m := n.Model(model)
	return []string{
		n.Key(), n.Fleet(), m, n.Line(n.Key()), n.Line(m),
		n.Tape(n.Key(), unit, 1000, false, ""), n.Tape(n.Key(), unit, 1000, true, ""), n.Tape(n.Key(), unit, 2000, false, ""),
		n.Tape(m, unit, 1000, false, ""), n.Tape(m, unit, 1000, true, ""), n.Tape(m, unit, 2000, false, ""),
		n.Tape(m, unit, 1000, false, lane), n.Tape(m, unit, 1000, true, lane),
	}
}

// Hostile names of models, units and lanes reach no key but their own, have one
// hash tag, and are bounded.
func TestNamesDoNotMeet(t *testing.T) {
	hostile := []string{
		"m", "k", "f", "line", "reports", "", "-", "a:b", "m:line", "requests:1000", "x:requests:1000f", "}{", "{key}", "*", "?", "[a]", "\x00", "\r\nDEL x\r\n",
		"é", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 66), strings.Repeat("x", 5000), "#" + strings.Repeat("0", 32), "share of x",
	}
	n := NewNames("p", "key")
	seen := map[string]string{}
	check := func(k, who string) {
		t.Helper()
		if len(k) > 300 {
			t.Errorf("key of %d bytes for %.40q", len(k), who)
		}
		if strings.Count(k, "{") != 1 || strings.Count(k, "}") != 1 || !strings.HasPrefix(k, "p:1:{key}:") {
			t.Errorf("key %q for %.40q has not the one hash tag", k, who)
		}
		if other, ok := seen[k]; ok && other != who {
			t.Errorf("%.40q and %.40q share the key %q", who, other, k)
		}
		seen[k] = who
	}
	for _, model := range hostile {
		for _, unit := range hostile {
			for i, k := range every(n, model, unit, "lane") {
				who := fmt.Sprintf("%d of %q %q", i, model, unit)
				switch i {
				case 0, 1, 3:
					who = fmt.Sprint(i)
				case 2, 4:
					who = fmt.Sprintf("%d of %q", i, model)
				case 5, 6, 7:
					who = fmt.Sprintf("%d of the key %q", i, unit)
				}
				check(k, who)
			}
		}
	}
	for _, lane := range hostile[1:] {
		if lane == "" {
			continue // every lane
		}
		check(n.Tape(n.Model("m"), "u", 1000, false, lane), "lane "+lane)
	}
	tags := map[int64]string{}
	for k := range seen {
		if other, ok := tags[Tag(k)]; ok {
			t.Errorf("%q and %q have one tag", k, other)
		}
		tags[Tag(k)] = k
		if Tag(k) < 0 || Tag(k) >= 1<<53 {
			t.Errorf("Tag(%q) = %d, want it below 2^53", k, Tag(k))
		}
	}
}

// Two vendor keys, and two prefixes, share nothing (S28).
func TestNamesOfTwoKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, prefix := range []string{"p", "q", "p:1", ""} {
		for _, key := range []string{"a", "b", "a}", "{a", "a:k", strings.Repeat("a", 1000), ""} {
			for _, k := range every(NewNames(prefix, key), "m", "u", "l") {
				if seen[k] {
					t.Errorf("the key %q is spelled twice", k)
				}
				seen[k] = true
			}
		}
	}
}
