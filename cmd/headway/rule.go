package main

import (
	"fmt"
	"strings"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport/profiles"
)

// decider names what gave the answer its verdict: the conditions of a rule, as
// far as it has them, or the status alone. It quotes the profile, never the
// answer.
func decider(p *profiles.Profile, a profiles.Answer) string {
	if p.JudgeFunc != nil {
		if _, ok := p.JudgeFunc(a); ok {
			return "the function of " + p.Name
		}
	}
	status := statusOf(p, a)
	i := first(p, a, p.Rules)
	if i < 0 {
		return status + ", no rule"
	}
	r := p.Rules[i]
	var holds []string
	if r.Status != nil {
		holds = append(holds, status)
	}
	if r.Fields != nil {
		holds = append(holds, field(p, a, r))
	}
	if r.Text != nil {
		holds = append(holds, fmt.Sprintf("text matches /%v/", r.Text))
	}
	if r.NamesModel {
		holds = append(holds, "text names the model")
	}
	if r.AboveLimit {
		holds = append(holds, "text asks for more than the limit")
	}
	if holds == nil {
		return "any answer"
	}
	return strings.Join(holds, ", ")
}

// first returns the index of the first of rules that matches, or -1. It lets the
// profile itself judge, with rules whose classes are their numbers.
func first(p *profiles.Profile, a profiles.Answer, rules []profiles.Rule) int {
	const base = 1000 // no class is as large
	probe := *p
	probe.JudgeFunc = nil
	probe.Rules = make([]profiles.Rule, len(rules))
	for i, r := range rules {
		r.Class = pause.Class(base + i)
		probe.Rules[i] = r
	}
	return max(int(probe.Judge(a).Class)-base, -1)
}

// statusOf names the status that rules see: the answer's, or the one inside.
func statusOf(p *profiles.Profile, a profiles.Answer) string {
	const lowest, highest = 400, 599
	var rules []profiles.Rule
	for n := lowest; n <= highest; n++ {
		rules = append(rules, profiles.Rule{Status: []int{n}})
	}
	if i := first(p, a, rules); i >= 0 && lowest+i != a.Status {
		return fmt.Sprintf("status %d in %s", lowest+i, p.StatusPath)
	}
	return fmt.Sprintf("status %d", a.Status)
}

// field names the field of a rule that has one of the rule's values.
func field(p *profiles.Profile, a profiles.Answer, r profiles.Rule) string {
	for _, path := range r.Fields {
		alone := profiles.Rule{Fields: []string{path}}
		if len(r.Values) == 0 && first(p, a, []profiles.Rule{alone}) == 0 {
			return path + " is there"
		}
		for _, value := range r.Values {
			alone.Values = []string{value}
			if first(p, a, []profiles.Rule{alone}) == 0 {
				return path + " = " + value
			}
		}
	}
	return strings.Join(r.Fields, " or ")
}
