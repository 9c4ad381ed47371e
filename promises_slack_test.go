//go:build !race

package headway_test

// slack stretches upper bounds of time where the race detector slows the program.
const slack = 1
