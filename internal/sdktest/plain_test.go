package sdktest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// statusError is the error of the smallest SDK there is.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("the vendor said %d", int(e)) }

// plain is that SDK: an http.Client, and retries if there are to be any.
func plain(w *Wire, url string, retries int) Client {
	post := func(ctx context.Context, model string, stream bool, read func(io.Reader) error) error {
		body := fmt.Sprintf(`{"model":%q,"max_tokens":50,"stream":%v,"stream_options":{"include_usage":true}}`, model, stream)
		var err error
		for range retries + 1 {
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer "+Key)
			var resp *http.Response
			if resp, err = (&http.Client{Transport: w}).Do(req); err != nil {
				continue
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				err = statusError(resp.StatusCode)
				continue
			}
			return read(resp.Body)
		}
		return err
	}
	return Client{
		Call: func(ctx context.Context, model string) error {
			return post(ctx, model, false, func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
		},
		Stream: func(ctx context.Context, model string, first func()) error {
			return post(ctx, model, true, func(r io.Reader) error {
				lines := bufio.NewScanner(r)
				for lines.Scan() {
					first()
				}
				return lines.Err()
			})
		},
		Status: func(err error) int {
			var e statusError
			errors.As(err, &e)
			return int(e)
		},
	}
}

// The scene measures what the smallest SDK does, and writes it down.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows")
	t.Setenv(RowsEnv, path)
	Run(t, SDK{Name: "net/http", New: func(w *Wire, url string) (Client, error) { return plain(w, url, 0), nil }})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got Row
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := Row{
		SDK: "net/http", Call: "yes, settled", Stream: "live, settled",
		Attempts: 1, Lost: "none", Reason: "`errors.As`", TooMany: "1 attempt: 429", Key: "1 attempt: 401",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("row %+v, want %+v", got, want)
	}
}

// An SDK that sends a vendor's 429 again meets the pause.
func TestRetriesMeetThePause(t *testing.T) {
	s := SDK{New: func(w *Wire, url string) (Client, error) { return plain(w, url, 1), nil }}
	if got, want := tooMany(t, s), "2 attempts: the last one goes out after the pause"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
