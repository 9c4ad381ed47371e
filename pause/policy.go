package pause

// Policy is a placeholder until policy.go lands.
type Policy struct{}
