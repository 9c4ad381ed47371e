package profiles_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport/profiles"
)

// A whole vendor is a table. Hand it to the transport as its Profile, or put it
// before profiles.Builtin() and choose by host.
func ExampleProfile() {
	acme := &profiles.Profile{
		Name:       "acme",
		Hosts:      []string{"api.acme.example"},
		KeyPlaces:  []string{"X-Acme-Key"},
		Model:      []profiles.Place{{In: profiles.Body, Name: "engine"}},
		OutputCaps: []string{"limits.output"},
		Texts:      []string{"problem.detail"},
		Rules: []profiles.Rule{
			{Fields: []string{"problem.kind"}, Values: []string{"wallet_empty"}, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Fields: []string{"problem.kind"}, Values: []string{"too_fast"}, Class: pause.RateLimited, Scope: pause.Model},
		},
		Usage: profiles.UsageFields{At: []string{"meter"}, Input: []string{"in"}, Output: []string{"out"}},
		LeftHeaders: []profiles.LeftHeaders{{
			Unit: "requests", Window: time.Minute, Scope: pause.Model, Remaining: "X-Acme-Left", Reset: "X-Acme-Reset",
		}},
	}

	// What the transport does with it.
	body := `{"engine":"coyote-2","limits":{"output":50},"text":"run"}`
	req, _ := http.NewRequest("POST", "https://api.acme.example/v1/run", strings.NewReader(body))
	asked := acme.Read(req, strings.NewReader(body))
	fmt.Println(acme.Owns(req.URL.Hostname()), asked.Model, asked.Guess["input_tokens"], asked.Guess["output_tokens"])

	header := http.Header{"Content-Type": {"application/json"}, "X-Acme-Left": {"3"}, "X-Acme-Reset": {"20s"}, "Retry-After": {"7"}}
	for _, answer := range []string{`{"problem":{"kind":"too_fast"}}`, `{"problem":{"kind":"wallet_empty"}}`} {
		v := acme.Judge(profiles.Answer{Status: 418, Header: header, Body: []byte(answer), Now: time.Now()})
		fmt.Println(v.Class, v.Scope, v.Hint.Wait)
	}
	left := acme.Left(header, time.Now())
	fmt.Println(left[0].Units, left[0].Unit, left[0].Reset)

	answer := acme.Scan(profiles.Answer{Status: 200, Header: header})
	io.WriteString(answer, `{"reply":"beep","meter":{"in":12,"out":30}}`)
	usage, _, _ := answer.Usage(true)
	fmt.Println(usage.Input, usage.Output)
	// Output:
	// true coyote-2 15 50
	// rate_limited model 7s
	// quota_exhausted key 7s
	// 3 requests 20s
	// 12 30
}
