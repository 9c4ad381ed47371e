// Command quickstart puts an http.Client under a budget and calls in two lanes.
// With REDIS_ADDR=host:port its budget is in that Redis. The vendor is on the
// loopback interface and new in every run, and its budget is new as well.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/redis/go-redis/v9"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Getenv("REDIS_ADDR")); err != nil {
		log.Fatal("quickstart: ", err)
	}
}

func run(ctx context.Context, out io.Writer, redisAddr string) error {
	vendor, err := vendorsim.Start(vendorsim.Config{})
	if err != nil {
		return err
	}
	defer vendor.Close()
	config := throttle.Config{Models: map[string][]throttle.Limit{
		"gpt-demo": {throttle.PerMinute(throttle.Requests, 3), throttle.PerMinute(throttle.Tokens, 30_000)},
	}}
	if redisAddr != "" {
		rdb := redis.NewClient(&redis.Options{Addr: redisAddr, ContextTimeoutEnabled: true})
		defer rdb.Close()
		config.Redis = rdb
	}
	limiter, err := throttle.New(config)
	if err != nil {
		return err
	}
	defer limiter.Close(ctx)
	client := &http.Client{Transport: &transport.Transport{Limiter: limiter}}
	for _, lane := range []lanes.Lane{lanes.Background, lanes.Live, lanes.Background} {
		said, err := call(lanes.With(ctx, lane), client, vendor.URL())
		var refused *throttle.RefusedError
		if errors.As(err, &refused) { // nothing was sent, nothing was spent
			after, _ := throttle.RetryAfter(err) // false when no later try can help
			said = fmt.Sprintf("%v in %s, come back in %v", refused.Reason, refused.Limit, after.Round(time.Second))
		} else if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", lane.Name, said)
	}
	return nil
}

// call makes one call, as any program would.
func call(ctx context.Context, client *http.Client, url string) (string, error) {
	body := strings.NewReader(`{"model":"gpt-demo","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", body)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer sk-loopback-0000000000")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() // this settles the call by what the vendor counted
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.Status, err
}
