// Command failover asks a model, and its backup when there is no room for the
// first within the lane's longest wait.
//
// Its vendor is on the loopback interface, so that it needs no API key.
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

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

const (
	first  = "gpt-demo"
	backup = "gpt-demo-mini"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal("failover: ", err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	vendor, err := vendorsim.Start(vendorsim.Config{})
	if err != nil {
		return err
	}
	defer vendor.Close()
	limiter, err := throttle.New(throttle.Config{Models: map[string][]throttle.Limit{
		first:  {throttle.PerMinute(throttle.Requests, 2)},
		backup: {throttle.PerMinute(throttle.Requests, 100)},
	}})
	if err != nil {
		return err
	}
	defer limiter.Close(ctx)
	client := &http.Client{Transport: &transport.Transport{Limiter: limiter}}
	for range 3 {
		model, err := ask(ctx, client, vendor.URL(), first, backup)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "answered by", model)
	}
	return nil
}

// ask asks the first of models that has room, and returns its name.
//
// Live calls wait up to 5 seconds for each model. When the wait would be longer,
// Headway says so at once, and no time is lost before the next model is asked.
func ask(ctx context.Context, client *http.Client, url string, models ...string) (model string, err error) {
	for _, model = range models {
		if err = call(ctx, client, url, model); !busy(err) {
			break
		}
	}
	return model, err
}

// busy reports whether another model may have room. It has none when the whole
// key is paused, and a call that is too large is not cured by a smaller model.
func busy(err error) bool {
	if refused, ok := errors.AsType[*throttle.RefusedError](err); ok {
		return refused.Reason == throttle.NoRoom || refused.Reason == throttle.ModelPaused
	}
	status, ok := errors.AsType[statusError](err)
	return ok && (status == http.StatusTooManyRequests || status >= 500)
}

// statusError is an answer of the vendor that is no success.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("the vendor says %d", int(e)) }

func call(ctx context.Context, client *http.Client, url, model string) error {
	body := fmt.Sprintf(`{"model":%q,"max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`, model)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer sk-loopback-0000000000")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return statusError(resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
