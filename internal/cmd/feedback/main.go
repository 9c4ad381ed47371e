// Command feedback stages two fleets that use one key and do not know of each
// other: each has a store of its own and may use the whole limit. Beside them
// run two more that ignore what the vendor says is left. It prints what the
// vendors counted, and exits with 1 if hearing the vendor does not save nine of
// ten refusals.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/headway-go/headway/transport/profiles"
)

const (
	amount  = 100
	window  = 2 * time.Second       // stands for a minute
	margin  = 50 * time.Millisecond // the vendor counts to the unit, by its own clock
	fleets  = 2
	callers = 4 // in each fleet: more than the limit lets through
	length  = 8 * window
	gain    = 10 // refusals without feedback for each one with it, at least
)

// count is what a vendor counted.
type count struct{ accepted, refused int }

func main() {
	with, without, err := stage()
	if err != nil {
		fmt.Fprintln(os.Stderr, "feedback:", err)
		os.Exit(1)
	}
	fmt.Printf("%d fleets with one key and no common store, %d requests per %v, for %v\n\n", fleets, amount, window, length)
	fmt.Printf("%-28s %9s %8s\n", "the vendor's count", "accepted", "refused")
	fmt.Printf("%-28s %9d %8d\n", "what is left is heard", with.accepted, with.refused)
	fmt.Printf("%-28s %9d %8d\n", "what is left is ignored", without.accepted, without.refused)
	if without.refused < gain*max(1, with.refused) {
		fmt.Fprintf(os.Stderr, "feedback: want %d refusals saved of every %d\n", gain-1, gain)
		os.Exit(1)
	}
}

// stage runs both pairs of fleets side by side.
func stage() (with, without count, err error) {
	var wg sync.WaitGroup
	var errs [2]error
	for i, got := range []*count{&with, &without} {
		wg.Go(func() { *got, errs[i] = pair(i == 1) })
	}
	wg.Wait()
	return with, without, errors.Join(errs[:]...)
}

// pair runs the fleets of one key at a vendor of their own.
func pair(ignore bool) (count, error) {
	vendor, err := vendorsim.Start(vendorsim.Config{
		Models:  map[string][]vendorsim.Limit{"m": {{Amount: amount, Window: window}}},
		Dialect: vendorsim.DialectHeaders,
		Delay:   20 * time.Millisecond,
	})
	if err != nil {
		return count{}, err
	}
	defer vendor.Close()
	profile := profiles.OpenAI()
	profile.LeftHeaders = []profiles.LeftHeaders{{Unit: throttle.Requests, Window: window, Scope: pause.Model,
		Remaining: "X-Ratelimit-Remaining-Requests", Reset: "X-Ratelimit-Reset-Requests"}}

	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var wg sync.WaitGroup
	for range fleets {
		limiter, err := throttle.New(throttle.Config{
			Default: []throttle.Limit{{Unit: throttle.Requests, Amount: amount, Window: window, Margin: margin}},
		})
		if err != nil {
			return count{}, err
		}
		client := &http.Client{Transport: &transport.Transport{Limiter: limiter, Profile: profile, NoFeedback: ignore}}
		for range callers {
			wg.Go(func() {
				for ctx.Err() == nil {
					call(ctx, client, vendor.URL())
				}
			})
		}
	}
	wg.Wait()
	var got count
	for _, a := range vendor.Arrivals() {
		if a.Status == http.StatusTooManyRequests {
			got.refused++
		} else {
			got.accepted++
		}
	}
	return got, nil
}

// call makes one call; one that the limiter refuses comes back a little later.
func call(ctx context.Context, client *http.Client, vendor string) {
	body := strings.NewReader(`{"model":"m","messages":[],"max_tokens":1}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, vendor+"/v1/chat/completions", body)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer sk-feedback")
	resp, err := client.Do(req)
	if err != nil {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}
