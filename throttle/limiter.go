package throttle

import (
	"context"
	"log/slog"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/redis/go-redis/v9"
)

// RedisClient is all that Headway needs of go-redis: *redis.Client,
// *redis.ClusterClient and Sentinel's failover client have it, and so does
// redis.UniversalClient.
type RedisClient interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Config says what to limit and where the shared state lives.
type Config struct {
	Redis           RedisClient
	Memory          *Memory
	Prefix          string
	Models          map[string][]Limit
	Default         []Limit
	Key             []Limit
	Aliases         map[string]string
	Strict          bool
	Policy          pause.Policy
	StoreTimeout    time.Duration
	DeadlineReserve time.Duration
	Name            string
	Logger          *slog.Logger
	OnEvent         func(Event)
}

type Event struct{}

// Cost is what a call takes, by unit.
type Cost map[string]int64

// Call is one call to a vendor.
type Call struct {
	Key     string
	Model   string
	Lane    lanes.Lane
	Cost    Cost
	Guess   bool
	MaxWait time.Duration
}

type Limiter struct{}

func New(c Config) (*Limiter, error)                                                   { panic("stub") }
func (l *Limiter) Reserve(ctx context.Context, c Call) (*Reservation, error)           { panic("stub") }
func (l *Limiter) Wait(ctx context.Context, c Call) (*Reservation, error)              { panic("stub") }
func (l *Limiter) Pause(ctx context.Context, key, model string, d time.Duration) error { panic("stub") }
func (l *Limiter) Resume(ctx context.Context, key, model string) error                 { panic("stub") }
func (l *Limiter) Close(ctx context.Context) error                                     { panic("stub") }

type Reservation struct{}

// Settle replaces the estimate by what the vendor counted.
func (r *Reservation) Settle(ctx context.Context, actual Cost) error { panic("stub") }

// Cancel gives everything back: the call never went out.
func (r *Reservation) Cancel(ctx context.Context) error { panic("stub") }

// Report tells the fleet what the vendor answered.
func (r *Reservation) Report(ctx context.Context, v pause.Verdict) error { panic("stub") }
