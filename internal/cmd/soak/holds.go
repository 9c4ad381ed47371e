package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/headway-go/headway/throttle"
)

// pauses judges that nothing is admitted into a pause from when it was told.
func (j *judge) pauses() {
	judged, into := 0, 0
	for _, e := range j.notes {
		if e.Kind != throttle.PauseBegan.String() && e.Kind != throttle.PauseGrew.String() {
			continue
		}
		about := func(n told) bool { return n.Key == e.Key && (e.Model == "" || n.Model == e.Model) }
		end, ok := j.heldUntil(e, about)
		if !ok || j.disturbed(e.When.Add(-time.Second), e.When) {
			continue
		}
		end = j.quietUntil(e.When, end)
		judged++
		for _, n := range j.admitted {
			if about(n) && n.Charged.After(e.When.Add(lead)) && n.Charged.Before(end) {
				into++
				j.explain(fmt.Sprintf("%s admitted %v before the end", n.ID, end.Sub(n.Charged)), e.When, end, 1, 0)
			}
		}
	}
	j.none(fmt.Sprintf("calls admitted into a pause that was known (%d pauses)", judged), into)
}

// heldUntil is when a pause ends at the earliest. It began when the answer that
// it comes from was out; which of the last few answers that was does not show,
// so the earliest of them counts.
func (j *judge) heldUntil(e told, about func(told) bool) (end time.Time, ok bool) {
	for _, c := range j.calls {
		if about(c.told) && c.Status >= 400 && !c.Answered.After(e.When) && c.Answered.After(e.When.Add(-3*time.Second)) {
			if t := c.Answered.Add(e.For); !ok || t.Before(end) {
				end, ok = t, true
			}
		}
	}
	return end, ok
}

// probes judges that no probe goes while another one of its key is out.
func (j *judge) probes() {
	ends := map[string]time.Time{} // of the call with that id, at the vendor
	for _, c := range j.calls {
		ends[c.ID] = c.Answered
	}
	byKey := map[string][]told{}
	for _, n := range j.admitted {
		if n.Probe {
			byKey[n.Key] = append(byKey[n.Key], n)
		}
	}
	judged, both := 0, 0
	for key, probes := range byKey {
		slices.SortFunc(probes, func(a, b told) int { return a.Charged.Compare(b.Charged) })
		for i := 1; i < len(probes); i++ {
			first, next := probes[i-1], probes[i]
			if j.disturbed(first.Charged.Add(-time.Second), next.Charged) || j.probeOfModel(key, first.Charged, next.Charged) {
				continue
			}
			judged++
			over := first.Charged.Add(lease)
			if end, ok := ends[first.ID]; ok && end.Before(over) {
				over = end
			}
			if next.Charged.Before(over) {
				both++
			}
		}
	}
	j.none(fmt.Sprintf("probes of one key at the same time (%d in a row)", judged), both)
}

// probeOfModel reports whether a model of the key sent a probe of its own then.
func (j *judge) probeOfModel(key string, from, to time.Time) bool {
	return slices.ContainsFunc(j.notes, func(n told) bool {
		return n.Kind == throttle.ProbeSent.String() && n.Key == key && n.Model != "" &&
			n.When.After(from.Add(-time.Second)) && n.When.Before(to.Add(time.Second))
	})
}
