package move

import (
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Bounds say how far clusters together may deviate from the wanted number of replicas while some go from one to another. One of the two is
// above 0, or nothing could ever move.
type Bounds struct {
	// Surge is how many more than wanted clusters may be assigned.
	Surge int32
	// Unavailable is how many of those wanted may be missing.
	Unavailable int32
	// Asked is how many replicas the user asks for, where there may be no place for all of them.
	Asked int32
}

// Rollout is what a workload's own strategy says of replacing its pods; nil where it has none.
type Rollout struct {
	MaxSurge, MaxUnavailable *intstr.IntOrString
}

// BoundsOf returns the bounds for so many wanted replicas: those of the policy, and what it leaves open as the workload's own strategy says.
// Nothing is missing as long as something may be extra, unless the policy wants it so. A value that cannot be read, which validation
// refuses, counts as unset.
func BoundsOf(move *v1alpha1.Move, own Rollout, wanted int64) Bounds {
	if move == nil {
		move = &v1alpha1.Move{}
	}
	out := Bounds{Surge: placement.Unbounded}
	if n, ok := scaled(wanted, true, move.MaxSurge, own.MaxSurge); ok {
		out.Surge = n
	}
	if n, ok := scaled(wanted, false, move.MaxUnavailable); ok {
		out.Unavailable = n
	} else if n, ok := scaled(wanted, false, own.MaxUnavailable); ok && out.Surge == 0 {
		out.Unavailable = n
	}
	if out.Surge == 0 && out.Unavailable == 0 {
		out.Unavailable = 1 // as Deployments do where both come out as 0
	}
	return out
}

// SurgeOf is how many replicas a workload's own strategy lets a share of so many have beside them.
func SurgeOf(own Rollout, replicas int32) int32 {
	n, _ := scaled(int64(replicas), true, own.MaxSurge)
	return n
}

// scaled is the first value that is set and can be read, of so many replicas.
func scaled(wanted int64, up bool, values ...*intstr.IntOrString) (int32, bool) {
	for _, value := range values {
		if value == nil {
			continue
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(value, int(wanted), up)
		if err == nil && n >= 0 {
			return int32(min(n, math.MaxInt32)), true
		}
	}
	return 0, false
}
