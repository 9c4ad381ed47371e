package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// text returns the meaning as a person reads it. What the request chose is
// quoted, so that it cannot steer a terminal.
func (m meaning) text() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(table, "%s\t%s\n", name, value)
	}
	line("vendor", m.Vendor)
	line("class", m.Class)
	line("scope", orNone(m.Scope))
	wait := ""
	if m.RetryAfterMS != nil {
		wait = (time.Duration(*m.RetryAfterMS) * time.Millisecond).String()
	}
	line("retry after", wait)
	model := ""
	if m.Model != nil {
		model = fmt.Sprintf("%q", *m.Model)
	}
	line("model", model)
	line("usage", m.usageText())
	line("fingerprint", orNone(m.Fingerprint))
	line("rule", m.Rule)
	table.Flush()
	return b.String()
}

func orNone(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// usageText spells the units out, "12 input_tokens, 3 output_tokens".
func (m meaning) usageText() string {
	var parts []string
	for _, unit := range slices.Sorted(maps.Keys(m.Usage)) {
		parts = append(parts, fmt.Sprintf("%d %s", m.Usage[unit], unit))
	}
	s := strings.Join(parts, ", ")
	if s != "" && m.partial {
		s = "at least " + s
	}
	return s
}
