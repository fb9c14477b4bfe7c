package limits

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Silence says what follows when a cluster does not answer, or answers that it cannot run what it was given.
type Silence struct {
	// GracePeriod is how long a cluster may be silent before it counts as unreachable.
	GracePeriod time.Duration
	// Toleration is how long workloads stay on a cluster that is unreachable before they are placed elsewhere.
	Toleration time.Duration
	// Unschedulable is how long pods may be unschedulable in a cluster before their replicas are placed elsewhere.
	Unschedulable time.Duration
	// FailoverRate is how many workloads a second are placed elsewhere.
	FailoverRate float64
}

// AddFlags adds the flags.
func (s *Silence) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&s.GracePeriod, "cluster-grace-period", s.GracePeriod,
		"How long a cluster may be silent before it counts as unreachable.")
	fs.DurationVar(&s.Toleration, "cluster-toleration", s.Toleration,
		"How long workloads stay on a cluster that is unreachable before they are placed elsewhere, unless their policy says otherwise.")
	fs.DurationVar(&s.Unschedulable, "unschedulable-toleration", s.Unschedulable,
		"How long pods may be unschedulable in a cluster before their replicas are placed elsewhere, unless their policy says otherwise.")
	fs.Float64Var(&s.FailoverRate, "failover-rate", s.FailoverRate,
		"How many workloads a second are placed elsewhere because their cluster is unreachable or cannot schedule their pods.")
}

// Validate refuses what cannot be, by the flag.
func (s *Silence) Validate() error {
	switch {
	case s.GracePeriod <= 0:
		return fmt.Errorf("--cluster-grace-period: %s is not positive", s.GracePeriod)
	case s.Toleration <= 0:
		return fmt.Errorf("--cluster-toleration: %s is not positive", s.Toleration)
	case s.Unschedulable <= 0:
		return fmt.Errorf("--unschedulable-toleration: %s is not positive", s.Unschedulable)
	case s.FailoverRate <= 0:
		return fmt.Errorf("--failover-rate: %g is not positive", s.FailoverRate)
	}
	return nil
}
