package main

// budgets break the limiter while its store answers.
var budgets = []mutation{
	{"settles twice", 6, "throttle/reservation.go",
		`first := !r.ended`,
		`first := true`,
		"./throttle", []string{"TestSettleOnce"}},
	{"charges a cancelled call all the same", 7, "throttle/group.go",
		`return append([]lua.Op{refund(op, a.At)}, freed(op, a)...)`,
		`return freed(op, a)`,
		"./throttle", []string{"TestS11CancelGivesBack"}},
	{"lets a settlement die with its caller's context", 6, "throttle/reservation.go",
		`answers, err := r.g.do(context.WithoutCancel(ctx), op)
	if err == nil {`,
		`answers, err := r.g.do(ctx, op)
	if err == nil {`,
		"./throttle", []string{"TestS18SettleAfterCancel"}},
	{"lets a report die with its caller's context", 13, "throttle/reservation.go",
		`answers, err := r.g.do(context.WithoutCancel(ctx), ops...)
	for`,
		`answers, err := r.g.do(ctx, ops...)
	for`,
		"./throttle", []string{"TestReportAfterCancel"}},
	{"has go-redis send an admission again", 8, "lua/redis.go",
		`func (once) NoRetry() bool { return true }`,
		`func (once) NoRetry() bool { return false }`,
		"./throttle", []string{"TestS23LostReplyIsChargedOnce"}},
	{"keeps what was admitted for a caller who has left", 7, "throttle/group.go",
		`			r.gone = true
`,
		``,
		"./throttle", []string{"TestGroupCancelWhileRiding"}},
	{"keeps the place in line of a call whose context has ended", 12, "throttle/wait.go",
		`			g.leave(op)
			return nil, err
		}
		op.Patience`,
		`			return nil, err
		}
		op.Patience`,
		"./throttle", []string{"TestS11CancelledWaits"}},
	{"waits until nothing of the deadline is left for the call", 10, "throttle/limiter.go",
		`wait = min(wait, left-max(0, reserve))`,
		`wait = min(wait, left)`,
		"./throttle", []string{"TestS12FailNow"}},
	{"waits beyond the deadline", 10, "throttle/limiter.go",
		`wait = min(wait, left-max(0, reserve))`,
		``,
		"./throttle", []string{"TestS12FailNow"}},
	{"sends all deferred work back at one time", 4, "throttle/plan.go",
		`RetryAfter: wait + jitter(wait)}`,
		`RetryAfter: wait}`,
		"./throttle", []string{"TestS31DeferralsAreSpread"}},
	{"names a wait that is too short by a fraction of a second", 4, "transport/synthetic.go",
		`if d%unit > 0 {`,
		`if false {`,
		"./transport", []string{"TestRefusalForms"}},
	{"refuses a guess above the ceiling for good", 5, "throttle/plan.go",
		`if len(c.Guess) > 0 {`,
		`if false {`,
		"./throttle", []string{"TestGuessIsLowered"}},
	{"makes a call wait that can never fit", 5, "throttle/plan.go",
		`if r.Cost > r.Ceiling {`,
		`if r.Cost < 0 {`,
		"./throttle", []string{"TestS16TooLargeIsItsOwnError"}},
	{"gives a lane a unit above its share", 9, "lanes/lanes.go",
		`math.Floor(`,
		`math.Ceil(`,
		"./lanes", []string{"TestCeiling"}},
	{"counts a unit that nobody named as nothing", 5, "throttle/plan.go",
		`return nil, l.unnamed(t, y.limits[i].Unit, y.names[i])`,
		`n = 0`,
		"./throttle", []string{"TestInvalidCalls"}},
	{"takes a model without a price for free", 5, "throttle/prices.go",
		`	if !ok {
		return 0, false
	}`,
		`	if !ok {
		return 0, true
	}`,
		"./throttle", []string{"TestMissingPrice"}},
	{"says of a missing price only that a unit is missing", 5, "throttle/cost.go",
		`if p := l.config.Prices; p != nil && p.unit == unit {`,
		`if p := l.config.Prices; p != nil && unit == "" {`,
		"./throttle", []string{"TestMissingPrice"}},
	{"loses the error of a wrong price table", 5, "throttle/prices.go",
		`return p, p.Set(table)`,
		`_ = p.Set(table)
	return p, nil`,
		"./throttle", []string{"TestPricesAreReloaded"}},
	{"leaves the money as it was estimated", 6, "throttle/reservation.go",
		`l.complete(t, r.plan.cost), l.complete(t, all)`,
		`l.complete(t, r.plan.cost), maps.Clone(counted)`,
		"./throttle", []string{"TestMoney"}},
	{"rounds money down", 22, "throttle/prices.go",
		`if rest > 0 {`,
		`if rest < 0 {`,
		"./throttle", []string{"TestPriceOf"}},
	{"gives back by the count of a cut stream", 6, "throttle/reservation.go",
		`return row.Cost < 0 }`,
		`return false }`,
		"./throttle", []string{"TestSettleAtLeast"}},
	{"keeps to itself that little is left", 2, "throttle/feedback.go",
		`said.Units*often >= row.Amount && `,
		``,
		"./throttle", []string{"TestHeedWhenLittleIsLeft"}},
	{"ends an outage when another key's store answers", 18, "throttle/outage.go",
		`ended <- g.say(Report{}, false)`,
		`ended <- l.allGroups()[0].say(Report{}, false)`,
		"./throttle", []string{"TestOutageOfOneNode"}},
	{"takes more than the vendor said went to others", 2, "throttle/feedback.go",
		`row.Cost = r.answer.Left[i].Units - said.Units`,
		`row.Cost = r.answer.Left[i].Units - said.Units + 1`,
		"./throttle", []string{"TestHeed"}},
	{"says every event once a process", 15, "throttle/reservation.go",
		`	if a.Status == lua.Refused {
		return
	}
	e :=`,
		`	e :=`,
		"./throttle", []string{"TestOneEventForTheFleet"}},
	{"adds calls of other models to a paused one", 17, "throttle/plan.go",
		`t.scope = t.names.Model(model)`,
		`t.scope = t.names.Model("m")`,
		".", []string{"TestPromise17_TheRightScope"}},
	{"gives every hostile name a key of its own", 19, "throttle/plan.go",
		`if len(l.strangers) >= maxStrangers {`,
		`if false {`,
		"./throttle", []string{"TestManyUnknownModels"}},
	{"puts the keys of one vendor key into several slots", 21, "lua/keys.go",
		`":{" + plain(fingerprint) + "}:"}`,
		`":" + plain(fingerprint) + ":"}`,
		"./throttle", []string{"TestS21Cluster"}},
	{"takes less than memory has charged, in memory", 6, "throttle/tape.go",
		`d = max(d, -e.units)`,
		``,
		"./throttle", []string{"TestAdjustNeverBelowZero"}},
	{"lets a newcomer overtake the line, in memory", 11, "throttle/tape.go",
		`q.ahead(r.Tag, c)`,
		`int64(0)`,
		"./throttle", []string{"TestHistories"}},
}

// outages break the limiter while its store is away.
var outages = []mutation{
	{"goes on alone with the whole limit", 18, "throttle/alone.go",
		`	mine := *p
`,
		`	members = 1
	mine := *p
`,
		"./throttle", []string{"TestOutageLocalParts"}},
	{"sends background work while nobody counts it", 18, "lanes/lanes.go",
		`		return Local
	}
	return Closed`,
		`		return Local
	}
	return Open`,
		"./throttle", []string{"TestOutageClosed"}},
	{"goes on alone without knowing how many there are", 18, "throttle/alone.go",
		`		if members < 1 {
			break // it never saw the store: nobody knows what its part is
		}`,
		`		members = max(1, members)`,
		"./throttle", []string{"TestOutageNeverSeen"}},
	{"begins alone with an empty window", 18, "throttle/alone.go",
		`_, _ = g.l.outage.memory.decide(context.Background(), g.l.batch([]lua.Op{mirror})) // memory never errs`,
		`_ = mirror`,
		"./throttle", []string{"TestOutageBeginsAndEndsWithThePart"}},
	{"never tells the store what was spent without it", 18, "throttle/alone.go",
		`debts := o.debts
`,
		`debts := map[string]*debt{}
`,
		"./throttle", []string{"TestOutageBeginsAndEndsWithThePart"}},
	{"tells twice what was spent without the store", 18, "throttle/alone.go",
		`o.debts = map[string]*debt{}
`,
		``,
		"./throttle", []string{"TestOutageBeginsAndEndsWithThePart"}},
	{"spends its part and the fleet's budget when the store is back", 18, "throttle/limiter.go",
		`if l.outage.over.Load() {`,
		`if false {`,
		"./throttle", []string{"TestOutageBeginsAndEndsWithThePart"}},
	{"forgets the pauses when the store is lost", 18, "throttle/alone.go",
		`if left := micros(time.Until(till)); left > 0 {`,
		`if left := micros(time.Until(till)); false {`,
		"./throttle", []string{"TestOutagePauses"}},
	{"never tells the store what was held without it", 18, "throttle/alone.go",
		`if g.names.Has(name) && s.Till > now {`,
		`if false {`,
		"./throttle", []string{"TestOutagePauses"}},
	{"waits for a silent store as long as it likes", 18, "throttle/group.go",
		`				left := g.patience()
				if left <= 0 {`,
		`				left := g.l.config.StoreTimeout
				if false {`,
		"./throttle", []string{"TestS24HungRedis"}},
	{"piles up calls of a silent store", 18, "throttle/group.go",
		`|| g.l.strays.Load() >= maxStray {`,
		`{`,
		"./throttle", []string{"TestS24AtMostTwoStrays"}},
	{"takes an outage for a limit", 18, "throttle/refused.go",
		`return target == ErrStoreUnavailable || target == ErrDeferred && e.Deferred`,
		`return target == ErrRefused || target == ErrDeferred && e.Deferred`,
		"./throttle", []string{"TestOutageClosed"}},
}
