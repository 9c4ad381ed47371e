package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// exchange is a call to a vendor and its answer.
type exchange struct {
	vendor string // "" if the input names none
	now    time.Time

	req  *http.Request // without its body
	sent []byte        // the body

	status int
	header http.Header
	body   []byte
}

// recorded is an exchange as the input spells it.
type recorded struct {
	Vendor  string `json:"vendor"`
	Now     string `json:"now"`
	Request struct {
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Body    json.RawMessage   `json:"body"`
	} `json:"request"`
	Response struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    json.RawMessage   `json:"body"`
	} `json:"response"`
}

// readExchanges reads one exchange or an array of them. Its errors name a field
// and quote nothing of the input, which is full of secrets.
func readExchanges(in io.Reader) ([]exchange, error) {
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errors.New("standard input: empty, want an exchange as JSON")
	}
	switch data[0] {
	case '{':
		x, err := readExchange(data)
		return []exchange{x}, err
	case '[':
	default:
		return nil, errors.New("standard input: want a JSON object or an array of them")
	}
	var items []json.RawMessage
	if err := decode(data, &items); err != nil {
		return nil, err
	}
	exchanges := make([]exchange, len(items))
	for i, item := range items {
		if exchanges[i], err = readExchange(item); err != nil {
			return nil, fmt.Errorf("exchange %d: %w", i+1, err)
		}
	}
	return exchanges, nil
}

func readExchange(data []byte) (x exchange, err error) {
	var rec recorded
	if err := decode(data, &rec); err != nil {
		return x, err
	}
	x.vendor, x.now, x.status = rec.Vendor, time.Now(), rec.Response.Status
	if rec.Now != "" {
		if x.now, err = time.Parse(time.RFC3339, rec.Now); err != nil {
			return x, errors.New("now: want a time such as 2026-03-02T10:00:00Z")
		}
	}
	if x.req, err = http.NewRequest(rec.Request.Method, "", nil); err != nil {
		return x, errors.New("request.method: not a method of HTTP")
	}
	if x.req.URL, err = url.Parse(rec.Request.URL); err != nil || x.req.URL.Hostname() == "" {
		return x, errors.New("request.url: want a whole URL, with its host")
	}
	x.req.Header = header(rec.Request.Headers)
	if x.sent, err = bodyOf(rec.Request.Body); err != nil {
		return x, fmt.Errorf("request.body: %w", err)
	}
	if x.status < 100 || x.status > 999 {
		return x, errors.New("response.status: want a number from 100 to 999")
	}
	x.header = header(rec.Response.Headers)
	x.header.Del("Content-Encoding")
	if x.body, err = bodyOf(rec.Response.Body); err != nil {
		return x, fmt.Errorf("response.body: %w", err)
	}
	return x, nil
}

// decode is json.Unmarshal with errors that do not quote the input.
func decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s: must not be of type %s", kind.Field, kindOf(kind.Value))
	case errors.As(err, &kind):
		return errors.New("want a JSON object")
	case errors.As(err, &syntax):
		return fmt.Errorf("standard input: broken JSON at byte %d", syntax.Offset)
	}
	return errors.New("standard input: not the JSON of an exchange")
}
