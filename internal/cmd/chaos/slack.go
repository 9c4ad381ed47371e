//go:build !race

package main

// slack stretches the times that are allowed under the race detector.
const slack = 1
