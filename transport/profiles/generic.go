package profiles

// Generic returns a profile for a vendor that no other one fits. It takes the
// model from the field "model" of the body and judges by the status alone. Name
// tells the vendor from others; the rest is the caller's, by data or functions:
//
//	p := profiles.Generic("acme-sms")
//	p.Hosts = []string{"sms.acme.example"}
//	p.ModelFunc = func(r *http.Request, _ []byte) string { return r.Header.Get("X-Sender") }
//	p.CostFunc = func(_ *http.Request, body []byte) map[string]int64 {
//		return map[string]int64{"requests": 1, "segments": segments(body)}
//	}
func Generic(name string) *Profile {
	return &Profile{
		Name:  name,
		Model: []Place{{Body, "model"}},
		Texts: []string{"error.message", "message", "error"},
	}
}
