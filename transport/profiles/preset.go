package profiles

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/throttle"
)

// Preset are limits that a vendor documents for one of its plans and that every
// customer of it has. Most vendors set theirs by customer and change them: those
// have none, and their limits stand in their console.
type Preset struct {
	// Plan is the name that [Profile.Limits] knows them by.
	Plan string

	// Model is what they limit, as throttle.Config.Models takes names. Empty is
	// the whole key.
	Model string

	Limits []throttle.Limit
}

// Limits returns the limits that the vendor documents for a plan, to go into
// throttle.Config.Key and throttle.Config.Models; either may be nil. They are the
// caller's own. The error of a plan that is unknown names those that are known.
func (p *Profile) Limits(plan string) (key []throttle.Limit, models map[string][]throttle.Limit, err error) {
	found := false
	for _, set := range p.Presets {
		switch {
		case set.Plan != plan:
			continue
		case set.Model == "":
			key = append(key, set.Limits...)
		default:
			if models == nil {
				models = map[string][]throttle.Limit{}
			}
			models[set.Model] = append(models[set.Model], set.Limits...)
		}
		found = true
	}
	if !found {
		return nil, nil, fmt.Errorf("profiles: %s: no plan %q, there is %s", p.Name, plan, p.plans())
	}
	return key, models, nil
}

// plans lists the plans that have presets.
func (p *Profile) plans() string {
	var names []string
	for _, set := range p.Presets {
		if name := fmt.Sprintf("%q", set.Plan); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// paced is a limit of so many units a second, evenly. It is kept by the minute,
// so that a text message of more parts than that fits at all, and goes alone.
func paced(unit string, aSecond int64) []throttle.Limit {
	return []throttle.Limit{{Unit: unit, Amount: 60 * aSecond, Window: time.Minute, Shape: throttle.Bucket, Burst: aSecond}}
}

// perSecond is a limit of so many requests a second.
func perSecond(amount int64) []throttle.Limit {
	return []throttle.Limit{throttle.PerSecond(throttle.Requests, amount)}
}

// perMinute is a limit of so many requests a minute.
func perMinute(amount int64) []throttle.Limit {
	return []throttle.Limit{throttle.PerMinute(throttle.Requests, amount)}
}
