// Command gateway is a proxy in front of a vendor, so that programs in other
// languages share the budget of the fleet: they use its address as their SDK's
// base URL, and their own API key as always.
//
// It listens on the loopback interface only, unless told otherwise: whoever
// reaches it may spend the budget.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

// config is the command line.
type config struct {
	listen, vendor, redis string
	requests, tokens      int64
}

func main() {
	var c config
	flag.StringVar(&c.listen, "listen", "127.0.0.1:8088", "address to listen on")
	flag.StringVar(&c.vendor, "vendor", "https://api.openai.com", "URL of the vendor")
	flag.StringVar(&c.redis, "redis", "", "address of the fleet's Redis; empty is a budget of its own")
	flag.Int64Var(&c.requests, "requests", 500, "requests a minute, for each model")
	flag.Int64Var(&c.tokens, "tokens", 30_000, "tokens a minute, for each model")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, c); err != nil {
		log.Fatal("gateway: ", err)
	}
}

// run serves until ctx ends. Its first line of output is the gateway's URL.
func run(ctx context.Context, out io.Writer, c config) error {
	vendor, err := url.Parse(c.vendor)
	if err != nil || vendor.Host == "" {
		return errors.New("vendor: must be a URL such as https://api.openai.com")
	}
	limits := throttle.Config{Default: []throttle.Limit{
		throttle.PerMinute(throttle.Requests, c.requests), throttle.PerMinute(throttle.Tokens, c.tokens),
	}}
	if c.redis != "" {
		rdb := redis.NewClient(&redis.Options{Addr: c.redis, ContextTimeoutEnabled: true})
		defer rdb.Close()
		limits.Redis = rdb
	}
	limiter, err := throttle.New(limits)
	if err != nil {
		return err
	}
	defer limiter.Close(context.WithoutCancel(ctx))
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%v\n", listener.Addr())
	server := &http.Server{Handler: newGateway(vendor, limiter), ReadHeaderTimeout: 10 * time.Second}
	drained := make(chan error, 1)
	context.AfterFunc(ctx, func() { // let the calls that are out come to their end
		timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		drained <- server.Shutdown(timeout)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-drained
}
