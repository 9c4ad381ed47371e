package profiles

// compatible returns the profile of a vendor that speaks OpenAI's dialect on
// hosts of its own. Its headers may mean something else than OpenAI's, so it says
// itself what they leave. What its words or statuses alone say is to be judged behind the
// rules that this returns, so that codes decide first.
func compatible(name string, hosts ...string) *Profile {
	p := OpenAI()
	p.Name, p.Hosts, p.ScopeHeaders, p.LeftHeaders = name, hosts, nil, nil
	return p
}
