//go:build race

package headway_test

const slack = 4
