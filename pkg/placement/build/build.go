package build

import (
	"time"
)

// Stronger is the name of a workload that others make room for.
const Stronger = "Deployment shop/stronger"

// Noon is now.
var Noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// What clusters say, and for how long they may.
const (
	QuotaSays   = "exceeded quota: tight, requested: pods=1, used: pods=3, limited: pods=3"
	SelectsNone = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"
	TwoMinutes  = 2 * time.Minute
)
