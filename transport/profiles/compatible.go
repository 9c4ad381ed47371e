package profiles

// compatible returns the profile of a vendor that speaks OpenAI's dialect on
// hosts of its own. What its words or statuses alone say is to be judged behind the
// rules that this returns, so that codes decide first.
func compatible(name string, hosts ...string) *Profile {
	p := OpenAI()
	p.Name, p.Hosts, p.ScopeHeaders = name, hosts, nil
	return p
}
