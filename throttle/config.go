package throttle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/redis/go-redis/v9"
)

// RedisClient is all that Headway needs of go-redis. *redis.Client (Sentinel's
// failover client too), *redis.ClusterClient and redis.UniversalClient have it.
// A *redis.Ring is refused: it drops a shard that looks dead, and the budget
// would start again, empty, on another.
type RedisClient interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Config says what is limited and where the shared state lives. It is plain
// data; [New] copies what it needs.
type Config struct {
	// Redis is where the fleet shares its state. Its timeouts and pool are the
	// caller's; StoreTimeout bounds every use whatever they are. Nil keeps the
	// state in Memory.
	Redis RedisClient

	// Memory keeps the state in this process when Redis is nil. Limiters that
	// share one are one fleet. Nil makes a new one.
	Memory *Memory

	// Prefix begins every key in Redis. Empty is "headway".
	Prefix string

	// Models are the limits of each model of each key. A name that ends in "*"
	// stands for all names that begin so; every such model has a budget of its
	// own. The longest name that matches wins.
	Models map[string][]Limit

	// Default are the limits of a model that Models does not name.
	Default []Limit

	// Key are the limits of each whole key, above those of its models.
	Key []Limit

	// Aliases name the model whose budget and pauses another one shares, such
	// as a dated name of the same model, or a family that the vendor counts as
	// one. A name that ends in "*" stands for all that begin so.
	Aliases map[string]string

	// Prices turns what a call takes into money, so that limits can count it.
	// Under such a limit a model without a price is an error. Nil is none.
	Prices *Prices

	// Strict refuses calls to models that neither Models nor Default limits.
	// Without it they pass, under the limits of their key and every pause, and
	// there is one warning a name.
	Strict bool

	// Policy holds the lengths of the pauses; its zero fields are the defaults.
	Policy pause.Policy

	// StoreTimeout is the longest that one call waits for one answer of the
	// store, the wait for a connection included. Zero is 250 ms.
	StoreTimeout time.Duration

	// DeadlineReserve is the part of a context's deadline that is kept for the
	// call itself: a wait that would leave less is refused at once. Zero is
	// the smaller of 1 s and a tenth of what is left; a negative value is none.
	DeadlineReserve time.Duration

	// Members is how many processes the fleet has, for an outage of the store
	// that begins before this process has heard it from the store. A larger
	// number that was heard goes before it. Zero is unknown.
	Members int

	// Name names this process to the fleet. Empty is the host's name, the
	// process id and a random part.
	Name string

	// Logger gets one line for every event of the fleet. Nil discards.
	Logger *slog.Logger

	// OnEvent is called with every event, on the goroutine where it happened
	// and with no lock held. It must not block. A panic in it is caught and
	// logged. Nil ignores.
	OnEvent func(Event)
}

const defaultStoreTimeout = 250 * time.Millisecond

// validate says what is wrong with the configuration, naming the field.
func (c *Config) validate() error {
	if _, ring := c.Redis.(*redis.Ring); ring {
		return errors.New("throttle: Redis: a Ring is not supported: it splits the budget and starts it again when a shard fails; use a Cluster, Sentinel or single client")
	}
	if c.Redis != nil && c.Memory != nil {
		return errors.New("throttle: Memory: must be nil when Redis is set")
	}
	if c.Memory != nil && c.Memory.scopes == nil {
		return errors.New("throttle: Memory: make it with NewMemory")
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		return fmt.Errorf("throttle: Prefix: must not contain braces, got %q", c.Prefix)
	}
	if c.StoreTimeout < 0 {
		return fmt.Errorf("throttle: StoreTimeout: must not be negative, got %v", c.StoreTimeout)
	}
	if c.Members < 0 {
		return fmt.Errorf("throttle: Members: must not be negative, got %d", c.Members)
	}
	if err := c.Policy.Validate(); err != nil {
		return fmt.Errorf("throttle: Policy: %w", err)
	}
	if err := validateLimits("Key", c.Key); err != nil {
		return err
	}
	if err := validateLimits("Default", c.Default); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if name == "" {
			return errors.New("throttle: Models: a name must not be empty; a call without a model uses \"-\"")
		}
		if err := validateLimits(fmt.Sprintf("Models[%q]", name), c.Models[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Aliases)) {
		if to := c.Aliases[name]; name == "" || to == "" || strings.HasSuffix(to, "*") {
			return fmt.Errorf("throttle: Aliases[%q]: must name one model, got %q", name, to)
		}
	}
	return nil
}

func validateLimits(field string, limits []Limit) error {
	type same struct {
		unit, lane string
		window     time.Duration
		fixed      bool
	}
	seen := map[same]int{}
	for i, l := range limits {
		if err := l.validate(); err != nil {
			return fmt.Errorf("throttle: %s[%d].%w", field, i, err)
		}
		s := same{l.Unit, l.Lane, l.Window + l.margin(), l.Shape == Fixed}
		if first, ok := seen[s]; ok {
			return fmt.Errorf("throttle: %s[%d]: counts the same unit in the same window as %s[%d]", field, i, field, first)
		}
		seen[s] = i
	}
	return nil
}

// match returns the value of the longest name in m that is name, or a pattern
// that name matches.
func match[V any](m map[string]V, name string) (V, bool) {
	if v, ok := m[name]; ok {
		return v, true
	}
	best, found := "", false
	for pattern := range m {
		if stem, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(name, stem) && len(pattern) > len(best) {
			best, found = pattern, true
		}
	}
	return m[best], found
}
