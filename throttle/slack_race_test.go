//go:build race

package throttle

const slack = 4
