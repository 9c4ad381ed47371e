module github.com/headway-go/headway/examples/tokenizer

// The library itself comes from the go.work of this repository. A program of
// your own requires github.com/headway-go/headway as well.

go 1.26.0

require github.com/tiktoken-go/tokenizer v0.10.0

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dlclark/regexp2/v2 v2.5.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
