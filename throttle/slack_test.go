//go:build !race

package throttle

// slack stretches the times that tests allow under the race detector.
const slack = 1
