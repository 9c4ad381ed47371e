//go:build !race

package chaostest

// slack stretches upper bounds of time where the race detector slows the program.
const slack = 1
