// Package twilio puts Headway under twilio-go, the vendor's own SDK.
package twilio

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/headway-go/headway/internal/sdktest"
	"github.com/headway-go/headway/transport/profiles"
	"github.com/twilio/twilio-go/client"
	api "github.com/twilio/twilio-go/rest/api/v2010"
)

// A token must be letters and digits: the SDK checks that.
const (
	account = "AC00000000000000000000000000000000"
	token   = "00000000000000000000000000000000"
)

// newClient puts t, a *transport.Transport, under the SDK, which never retries.
// Its calls take no context: set Lane, MaxWait and, where the profile is not
// chosen by the host, Profile on t, and make one client a lane.
//
// In a program give base to twilio.NewRestClientWithParams, as
// ClientParams{Client: base}: toLoopback only leads to the vendor of the test.
func newClient(t http.RoundTripper, url string) *api.ApiService {
	base := &client.Client{
		Credentials: client.NewCredentials(account, token),
		HTTPClient:  &http.Client{Transport: t},
	}
	base.SetAccountSid(account)
	return api.NewApiServiceWithClient(toLoopback{base, url})
}

// toLoopback sends the calls to vendor in place of https://api.twilio.com.
type toLoopback struct {
	client.BaseClient
	vendor string
}

func (l toLoopback) SendRequest(method, rawURL string, data url.Values, headers map[string]any, body ...byte) (*http.Response, error) {
	return l.BaseClient.SendRequest(method, strings.Replace(rawURL, "https://api.twilio.com", l.vendor, 1), data, headers, body...)
}

func TestSDK(t *testing.T) {
	sdktest.Run(t, sdktest.SDK{
		Name:      "twilio-go",
		Module:    "github.com/twilio/twilio-go",
		Vendor:    vendor,
		Profile:   profile(),
		Unit:      "segments",
		NoContext: true,
		New: func(w *sdktest.Wire, url string) (sdktest.Client, error) {
			service := newClient(w, url)
			return sdktest.Client{
				Call: func(_ context.Context, model string) error {
					_, err := service.CreateMessage((&api.CreateMessageParams{}).SetTo("+15005550006").SetFrom(model).SetBody("hello"))
					return err
				},
				Status: func(err error) int {
					if e, ok := errors.AsType[*client.TwilioRestError](err); ok {
						return e.Status
					}
					return 0
				},
			}, nil
		},
	})
}

// profile keeps the limits of every sender beside the account's.
func profile() *profiles.Profile {
	p := profiles.Twilio()
	p.Model = []profiles.Place{{In: profiles.Body, Name: "From"}}
	return p
}

func vendor() sdktest.Vendor {
	return &sdktest.Canned{
		OK: sdktest.Answer{
			Status: http.StatusCreated,
			Body:   `{"sid":"SM00000000000000000000000000000000","status":"queued","num_segments":"1"}`,
		},
		TooMany: sdktest.Answer{
			Status: http.StatusTooManyRequests,
			Header: map[string]string{"Retry-After": "1"},
			Body:   `{"code":20429,"message":"Too Many Requests","status":429}`,
		},
		Refused: sdktest.Answer{
			Status: http.StatusUnauthorized,
			Body:   `{"code":20003,"message":"Authenticate","status":401}`,
		},
		Count: 1,
	}
}
