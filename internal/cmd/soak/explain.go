package main

import (
	"fmt"
	"strings"
	"time"
)

// explain tells what was going on around something that was broken.
func (j *judge) explain(what string, from, to time.Time, got, may int64) {
	if len(j.why) >= 5 {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %d, at most %d, in the %v from %v on; by seconds from then:", what, got, may, to.Sub(from), from.Format(time.TimeOnly))
	at := func(t time.Time) string { return fmt.Sprintf("%+.3f", t.Sub(from).Seconds()) }
	line := func(format string, args ...any) { fmt.Fprintf(&text, "\n\t"+format, args...) }
	around := span{from.Add(-5 * time.Second), to.Add(2 * time.Second)}
	for _, l := range j.losses {
		if l.touches(around.from, around.to) {
			line("%s to %s the store was away", at(l.from), at(l.to))
		}
	}
	for name, cuts := range map[string][]cut{"was alone": j.alone, "stood still": j.s.diary.frozen} {
		for _, c := range cuts {
			if c.touches(around.from, around.to) {
				line("%s to %s host%d %s", at(c.from), at(c.to), c.host, name)
			}
		}
	}
	for _, n := range j.notes {
		switch {
		case n.Kind == admitted && n.Charged.After(from.Add(-2*lead)) && n.Charged.Before(to.Add(2*lead)):
			line("%s %s %s %.20q, told %s, probe %v", at(n.Charged), n.ID, n.Key, n.Model, at(n.When), n.Probe)
		case n.Kind != admitted && n.Kind != seen && n.When.After(around.from) && n.When.Before(around.to):
			line("%s %s: %s %s %.20q %v %s", at(n.When), n.name, n.Kind, n.Key, n.Model, n.For, n.Error)
		}
	}
	j.why = append(j.why, text.String())
}
