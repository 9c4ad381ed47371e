package profiles

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
)

// FuzzJudge: no answer makes a profile fail. Its verdict has a class and a scope
// that exist and fit each other, and a hint within bounds; it pauses nothing that
// is well or one call's own fault, and does not hang on the order of a map.
func FuzzJudge(f *testing.F) {
	f.Add(429, "X-Amzn-Errortype", "ThrottlingException:http://a", `{"error":{"code":402,"metadata":{"reasons":["a"]}}}`, "m")
	f.Add(400, "Retry-After", "1e9", `<E><Error><Code>Throttled</Code></Error></E>`, "")
	f.Add(200, "X-Amzn-Errortype", "#", `{"messages":[{"status":"0"},{"status":1}]}`, "m")
	f.Add(400, "Retry-After", "5", `{}`, "m")
	f.Add(200, "Retry-After", "5", `{}`, "m")
	f.Add(-1, "", "", `{"error":{"message":"Limit 9, Requested 99999999999999999999"}}`, "-")
	for _, s := range seeds(f) {
		name, value := "", ""
		if names := slices.Sorted(maps.Keys(s.header)); len(names) > 0 {
			name, value = names[len(names)-1], s.header.Get(names[len(names)-1])
		}
		f.Add(s.status, name, value, s.body, "m")
	}
	list := everyProfile()
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, status int, name, value, body, model string) {
		a := Answer{Status: status, Header: http.Header{}, Body: []byte(body), Model: model, Now: now}
		a.Header.Set(name, value)
		before := a.Header.Clone()
		for _, p := range list {
			v := p.Judge(a)
			if v.Class.String() == "unknown" || v.Scope.String() == "unknown" || v.Hint.Wait < 0 || v.Hint.Wait > pause.MaxHint || v.Hint.Wait > 0 && !v.Hint.Named {
				t.Fatalf("%s: Judge() = %+v", p.Name, v)
			}
			if quiet := v.Class == pause.OK || v.Class == pause.ClientError; quiet && v != (pause.Verdict{Class: v.Class}) {
				t.Fatalf("%s: Judge() = %+v", p.Name, v)
			}
			if (v.Scope == pause.None) != (v.Class == pause.OK || v.Class == pause.ClientError || v.Class == pause.ServerError) {
				t.Fatalf("%s: Judge() = %+v", p.Name, v)
			}
			if v.Class == pause.OK && status >= 400 {
				t.Fatalf("%s: Judge() of status %d = %+v", p.Name, status, v)
			}
			if again := p.Judge(a); again != v {
				t.Fatalf("%s: Judge() = %+v, and then %+v", p.Name, v, again)
			}
		}
		if string(a.Body) != body || !reflect.DeepEqual(a.Header, before) {
			t.Fatal("the answer was changed")
		}
	})
}
