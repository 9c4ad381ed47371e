package throttle

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/headway-go/headway/lua"
)

// toldStore is a store that knows one more process, by the words it left.
type toldStore struct {
	*Memory
	report string
}

func (s *toldStore) members(context.Context, lua.Names) ([]lua.Member, error) {
	return []lua.Member{{Name: "other", Seen: 1764400000 * second, Report: s.report}}, nil
}

// FuzzReport: whatever another process, perhaps of another version, said of
// itself, the status is answered, and says what was said if it is a report.
func FuzzReport(f *testing.F) {
	for _, report := range []string{
		`{"models":["gpt-4o","-"],"refused":{"background: no room":3},"waiting":2}`, `{}`, ``, `null`, `[]`, `{"models":"gpt-4o"}`, `{"models":[1]}`,
		`{"waiting":1e99}`, `{"waiting":-1}`, `{"models":["","a","a","\u0000"],"Models":["b"],"later":{"x":[1]}}`, `{"models":["a"],"waiting":"x"}`, "\xff",
	} {
		f.Add(report)
	}
	l, err := New(Config{Models: map[string][]Limit{"gpt-4o": {PerMinute(Requests, 5)}}, Memory: NewMemory()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close(context.Background()) })
	g, _ := l.find("key", "")
	other := &toldStore{Memory: NewMemory()}
	g.store = other
	f.Fuzz(func(t *testing.T, report string) {
		other.report = report
		s, err := l.Status(t.Context(), "key")
		if err != nil || len(s.Fleet) != 1 || s.Fleet[0].Name != "other" {
			t.Fatalf("Status() = %+v, %v", s, err)
		}
		var want Report
		if json.Unmarshal([]byte(report), &want) != nil {
			want = Report{} // of another version
		}
		if !reflect.DeepEqual(s.Fleet[0].Report, want) {
			t.Fatalf("report %+v, want %+v", s.Fleet[0].Report, want)
		}
		models := slices.Sorted(slices.Values(want.Models))
		models = slices.Compact(models)
		if len(s.Models) != len(models) {
			t.Fatalf("%d models, want %d", len(s.Models), len(models))
		}
		for i, m := range s.Models {
			if m.Model != models[i] && m.Model != NoModel {
				t.Fatalf("model %q, want %q", m.Model, models[i])
			}
		}
	})
}
