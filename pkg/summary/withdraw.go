package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Successor is how long the addresses of a cluster stay in the status, once it is about to end the last replicas behind them, if no other
// cluster has any: load balancers take minutes to be made. After that the move goes on.
const Successor = 5 * time.Minute

// LookForReady is how often it is looked whether what an address leads to is ready, as long as it is not shown for that reason. Few are at a time.
const LookForReady = time.Second

// Withdrawal is how far the addresses of a cluster are on their way out of a status. The zero value says that they are not.
type Withdrawal struct {
	// Withdrawn is when they left the status. The last replicas behind them stay for some time more.
	Withdrawn metav1.Time `json:"withdrawn,omitzero"`
	// Alone is since when they are to leave, as long as they do not because no other cluster has any.
	Alone metav1.Time `json:"alone,omitzero"`
}

// Out reports whether the addresses have left the status.
func (w Withdrawal) Out() bool { return !w.Withdrawn.IsZero() }

// Presence is what a cluster has to do with the addresses of an object there.
type Presence struct {
	// Published says that the cluster has some.
	Published bool
	// Leaves says that none of the workloads behind them is to run there any more, and Asks that the last replicas of one are about to end.
	Leaves, Asks bool
	// Unserved says that nothing is ready there of what they lead to.
	Unserved bool
	// Stale tells that the cluster is silent.
	Stale bool
}

// withholds reports whether the addresses of the cluster are not in the status.
func (r Report) withholds() bool { return r.Withdrawal.Out() || r.Early }

// Early returns the clusters whose addresses are not shown yet: a gateway may have one as soon as it hears of the object, and nothing that answers there. They wait
// while another cluster's are served. What is shown already stays, whatever becomes of the replicas behind it: that is for health checks to tell.
func Early(clusters map[string]Presence, withdrawn map[string]Withdrawal, published map[string][]string, shown []string) map[string]bool {
	out, served := map[string]bool{}, false
	for cluster, p := range clusters {
		served = served || p.Published && !p.Unserved && !withdrawn[cluster].Out()
		isShown := slices.ContainsFunc(published[cluster], func(address string) bool { return slices.Contains(shown, address) })
		if p.Published && p.Unserved && !p.Stale && !isShown {
			out[cluster] = true
		}
	}
	if !served {
		return nil
	}
	return out
}

// Withdraw takes the addresses of clusters out of the status of an object whose endpoints are about to go, and puts those back of clusters that
// are to have endpoints again. It returns how far each cluster is, if it is at all, and when to look again unless something changes before.
func Withdraw(last map[string]Withdrawal, clusters map[string]Presence, now time.Time) (next map[string]Withdrawal, again time.Time) {
	next = map[string]Withdrawal{}
	for cluster, p := range clusters {
		if !p.Published || !p.Leaves {
			continue
		}
		was := last[cluster]
		switch followed := succeeded(cluster, clusters); {
		case !was.Withdrawn.IsZero():
			next[cluster] = Withdrawal{Withdrawn: was.Withdrawn}
		case p.Stale && !followed, !p.Stale && !p.Asks:
			// What Manifold cannot reach, users may.
		case followed, !was.Alone.IsZero() && now.Sub(was.Alone.Time) >= Successor:
			next[cluster] = Withdrawal{Withdrawn: wholeSecond(now)}
		default:
			if was.Alone.IsZero() {
				was.Alone = wholeSecond(now)
			}
			next[cluster] = Withdrawal{Alone: was.Alone}
			if at := was.Alone.Add(Successor); again.IsZero() || at.Before(again) {
				again = at
			}
		}
	}
	return next, again
}

// succeeded reports whether a cluster that stays has addresses too.
func succeeded(by string, clusters map[string]Presence) bool {
	for other, p := range clusters {
		if other != by && p.Published && !p.Leaves && !p.Stale {
			return true
		}
	}
	return false
}

// wholeSecond is a moment as it can be recorded, never before it.
func wholeSecond(at time.Time) metav1.Time {
	return metav1.NewTime(at.Add(time.Second - time.Nanosecond).UTC().Truncate(time.Second))
}

// Remaining is how long the last replicas behind addresses stay that have left a status, never longer than the time to drain: clocks may
// have been set back.
func (w Withdrawal) Remaining(drain time.Duration, now time.Time) time.Duration {
	return max(0, min(drain, w.Withdrawn.Add(drain).Sub(now)))
}

// Reasons of the events about addresses of clusters.
const (
	ReasonWithdrawn = "AddressWithdrawn"
	ReasonReturned  = "AddressReturned"
)

// AddressNews is what users are told of the addresses of a cluster.
type AddressNews struct{ Cluster, Reason, Message string }

// NewsOfAddresses tells which addresses have left a status and which are back in it, in the order of the clusters that have published them.
func NewsOfAddresses(last, next map[string]Withdrawal, published map[string][]string) (out []AddressNews) {
	for _, cluster := range slices.Sorted(maps.Keys(published)) {
		was, is, what := last[cluster].Out(), next[cluster].Out(), strings.Join(published[cluster], ", ")
		switch {
		case is && !was:
			out = append(out, AddressNews{cluster, ReasonWithdrawn,
				fmt.Sprintf("cluster %q: %s left the status, since what it leads to is about to leave the cluster", cluster, what)})
		case was && !is && what != "":
			out = append(out, AddressNews{cluster, ReasonReturned,
				fmt.Sprintf("cluster %q: %s is in the status again, since the cluster is to run again what it leads to", cluster, what)})
		}
	}
	return out
}

// HasAddresses reports whether objects of the kind have addresses at which they are reached from outside.
func (k Kind) HasAddresses() bool { return k.addresses != nil }

// Addresses returns those of an object in a cluster, sorted and each once.
func (k Kind) Addresses(live Object) []string {
	if k.addresses == nil || live == nil {
		return nil
	}
	return distinct(k.addresses(live))
}

// Without returns a copy of an object whose status has none of the addresses that are gone.
func (k Kind) Without(in Object, gone map[string]bool) Object {
	out := in.DeepCopyObject().(Object)
	if k.without != nil && len(gone) > 0 {
		k.without(out, func(addresses ...string) bool {
			return !slices.ContainsFunc(addresses, func(a string) bool { return a != "" && !gone[a] })
		})
	}
	return out
}

// distinct sorts addresses, of which each may have a name besides.
func distinct(addresses []string) []string {
	out := slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return a == "" })
	slices.Sort(out)
	return slices.Compact(out)
}

// WithdrawalsOf returns how far clusters are with taking the addresses of an object out of its status, by its breakdown.
func (b Breakdown) WithdrawalsOf() map[string]Withdrawal {
	out := map[string]Withdrawal{}
	for cluster, entry := range b {
		if entry.Withdrawal != (Withdrawal{}) {
			out[cluster] = entry.Withdrawal
		}
	}
	return out
}
