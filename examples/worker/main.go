// Command worker runs background jobs under a budget. Jobs that do not fit now
// are deferred, come back when Headway said, and lose no attempt by it.
//
// Its vendor is on the loopback interface, so that it needs no API key.
package main

import (
	"context"
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
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal("worker: ", err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	vendor, err := vendorsim.Start(vendorsim.Config{})
	if err != nil {
		return err
	}
	defer vendor.Close()
	// Background work may fill 6 of the 10 requests a second.
	limiter, err := throttle.New(throttle.Config{Default: []throttle.Limit{throttle.PerSecond(throttle.Requests, 10)}})
	if err != nil {
		return err
	}
	defer limiter.Close(ctx)
	client := &http.Client{Transport: &transport.Transport{Limiter: limiter, Lane: lanes.Background}}

	jobs := make([]job, 15)
	for i := range jobs {
		jobs[i] = job{number: i, born: time.Now()}
	}
	p := policy{maxAttempts: 3, maxAge: time.Minute, backoff: time.Second}
	deferrals, attempts, ends := 0, 0, map[ending]int{}
	for _, r := range p.work(ctx, 4, jobs, func(ctx context.Context, j job) error { return call(ctx, client, vendor.URL()) }) {
		deferrals += r.deferrals
		attempts += r.attempts
		ends[r.ending]++
	}
	fmt.Fprintf(out, "%d jobs: %d done, %d failed, %d expired\n", len(jobs), ends[done], ends[failed], ends[expired])
	fmt.Fprintf(out, "deferred: %v; attempts used up: %d; calls that the vendor saw: %d\n",
		deferrals > 0, attempts, vendor.Count(vendorsim.Filter{}))
	return nil
}

// call makes the one call of a job.
func call(ctx context.Context, client *http.Client, url string) error {
	body := strings.NewReader(`{"model":"gpt-demo","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer sk-loopback-0000000000")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the vendor says %s", resp.Status)
	}
	return nil
}
