//go:build race

package chaostest

const slack = 4
