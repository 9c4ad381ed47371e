// Command other is a host of another version: it is built with another layout of
// the keys in Redis. It asks for twice as many calls as its limit has.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

func main() {
	addr, prefix := os.Args[1], os.Args[2]
	n, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	limiter, err := throttle.New(throttle.Config{Redis: client, Prefix: prefix, Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, n)}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for range 2 * n {
		call := throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{throttle.Requests: 1}}
		if _, err := limiter.Reserve(context.Background(), call); err == nil {
			fmt.Println("admitted")
		}
	}
	if err := limiter.Close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
