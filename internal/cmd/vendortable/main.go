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
