// Command vendortable writes docs/vendors.md: what is recognised of each vendor,
// from the profiles themselves. Run it at the root of the module.
package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport/profiles"
)

const page = "docs/vendors.md"

func main() {
	if err := os.WriteFile(page, render(profiles.Builtin()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "vendortable:", err)
		os.Exit(1)
	}
}

// render lays the page out.
func render(all []*profiles.Profile) []byte {
	slices.SortFunc(all, func(a, b *profiles.Profile) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	b.WriteString(`# Vendors

What Headway recognises of each, written by ` + "`go run ./internal/cmd/vendortable`" + ` from the profiles in
` + "`transport/profiles`" + `, whose files name the sources. A class lists the codes that decide it before the
status does; where no rule matches, 401 and 403 refuse the key, 402 and a spent quota hold it, 429 is a rate
limit, 503 and 529 are overload. The wait is read alike for all, see ` + "`pause.ReadHint`" + `.

| vendor | hosts | the key is first looked for in | model | usage |
|---|---|---|---|---|
`)
	for _, p := range all {
		hosts := code(p.Hosts)
		if p.PerHost {
			hosts += ", each with a budget of its own"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.Name, hosts, or(code(p.KeyPlaces), "`Authorization`"), places(p), usage(p))
	}
	b.WriteString("\n| vendor | rate limited | overloaded | quota exhausted | key refused | client error | not charged |\n|---|---|---|---|---|---|---|\n")
	for _, p := range all {
		fmt.Fprintf(&b, "| %s |", p.Name)
		for _, c := range []pause.Class{pause.RateLimited, pause.Overloaded, pause.QuotaExhausted, pause.KeyRefused, pause.ClientError} {
			fmt.Fprintf(&b, " %s |", or(rules(p, c), "-"))
		}
		free := make([]string, len(p.Free))
		for i, s := range p.Free {
			free[i] = fmt.Sprint(s)
		}
		fmt.Fprintf(&b, " %s |\n", or(strings.Join(free, ", "), "-"))
	}
	b.WriteString(`
A call is estimated by the text of its request, and by the most output that it allows, of whose paths the
largest counts, times the answers asked for. What a cap makes of a limit of tokens: "ignored" counts what was
generated, "held" the whole cap until the call is over, "charged" the whole cap for good. What is left is read
from every answer, and tightens the limit of the same unit and window. Plans are those of ` + "`Profile.Limits`" + `.

| vendor | most output | answers asked for | caps are | units | what is left | plans |
|---|---|---|---|---|---|---|
`)
	for _, p := range all {
		caps := [...]string{"ignored", "held until the end", "charged"}[p.Caps]
		if len(p.OutputCaps) == 0 {
			caps = "-"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", p.Name, or(code(p.OutputCaps), "-"), or(code(p.Copies), "-"),
			caps, units(p), or(left(p), "-"), or(plans(p), "-"))
	}
	b.WriteString("\nThe APIs that are estimated otherwise, by the end of their path.\n\n| API | output without a cap | input | units | vendors |\n|---|---|---|---|---|\n")
	var rows []string
	vendors := map[string][]string{} // by row: many speak OpenAI's dialect
	for _, p := range all {
		for _, s := range p.Shapes {
			row := fmt.Sprintf("| %s | %d | %s | %s |", ends(s), s.Output, input(s), or(shapeUnits(s), "-"))
			if vendors[row] == nil {
				rows = append(rows, row)
			}
			vendors[row] = append(vendors[row], p.Name)
		}
	}
	for _, row := range rows {
		fmt.Fprintln(&b, row, strings.Join(vendors[row], ", "), "|")
	}
	return b.Bytes()
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func code(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "`" + w + "`"
	}
	return strings.Join(out, ", ")
}

// places says where the request names its model.
func places(p *profiles.Profile) string {
	names := map[profiles.In]string{
		profiles.Body: "body", profiles.Query: "query", profiles.Path: "path behind",
		profiles.Resource: "path behind", profiles.Before: "path before",
	}
	var out []string
	for _, m := range p.Model {
		out = append(out, fmt.Sprintf("%s `%s`", names[m.In], m.Name))
	}
	return or(strings.Join(out, ", "), "none")
}

// usage says what the answer counts.
func usage(p *profiles.Profile) string {
	out := slices.Sorted(maps.Keys(p.Usage.Units))
	if len(p.Usage.Input)+len(p.Usage.Output) > 0 {
		out = append([]string{"tokens"}, out...)
	}
	if p.UsageFunc != nil && p.Message != nil {
		out = append(out, profiles.SegmentsUnit)
	}
	return or(strings.Join(out, ", "), "none: the estimate stays")
}

// rules lists what leads to a class before the status alone does.
func rules(p *profiles.Profile, c pause.Class) string {
	var out []string
	for _, r := range p.Rules {
		if r.Class != c {
			continue
		}
		switch {
		case len(r.Values) > 0:
			out = append(out, code(r.Values))
		case r.NamesModel:
			out = append(out, "text names the model")
		case r.AboveLimit:
			out = append(out, "text says above the limit")
		case r.Text != nil:
			out = append(out, "by its text")
		case len(r.Status) > 0:
			out = append(out, strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Status), " ", ", "), "[]"))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// units says what a call costs beside one request.
func units(p *profiles.Profile) string {
	out := slices.Sorted(maps.Keys(p.Usage.Units))
	if p.Message != nil {
		out = append(out, profiles.SegmentsUnit)
	} else if len(p.Usage.Input) > 0 {
		out = append(out, "tokens")
		if p.Usage.CachedFree {
			out[len(out)-1] += " (none for what was read from a cache)"
		}
	}
	for _, s := range p.Shapes {
		if u := shapeUnits(s); u != "" {
			out = append(out, u)
		}
	}
	slices.Sort(out)
	return or(strings.Join(slices.Compact(out), ", "), "-")
}

func shapeUnits(s profiles.Shape) string {
	var out []string
	if s.Characters != nil {
		out = append(out, profiles.CharactersUnit)
	}
	if s.Images {
		out = append(out, profiles.ImagesUnit)
	}
	return strings.Join(out, ", ")
}

// left lists the limits whose rest the vendor tells, and the headers it stands in.
func left(p *profiles.Profile) string {
	windows := map[time.Duration]string{time.Second: "second", time.Minute: "minute", 24 * time.Hour: "day"}
	var out []string
	for _, l := range p.LeftHeaders {
		of := or(windows[l.Window], l.Window.String())
		if l.Scope == pause.Key {
			of += " of the key"
		}
		out = append(out, fmt.Sprintf("%s a %s: `%s`", l.Unit, of, l.Remaining))
	}
	return strings.Join(out, ", ")
}

// plans lists the presets.
func plans(p *profiles.Profile) string {
	var out []string
	for _, set := range p.Presets {
		limits := make([]string, len(set.Limits))
		for i, l := range set.Limits {
			limits[i] = l.String()
		}
		of := ""
		if set.Model != "" && set.Model != "*" {
			of = " of `" + set.Model + "`"
		}
		out = append(out, fmt.Sprintf("`%s`%s: %s", set.Plan, of, strings.Join(limits, " and ")))
	}
	return strings.Join(out, "; ")
}

// ends lists the ends of an API's paths.
func ends(s profiles.Shape) string {
	if slices.Equal(s.Ends, []string{""}) {
		return "all others"
	}
	return code(s.Ends)
}

// input says what of a request counts as input.
func input(s profiles.Shape) string {
	if s.BytesPerToken > 0 {
		return fmt.Sprintf("a token for %d bytes, files included", s.BytesPerToken)
	}
	return "its text"
}
