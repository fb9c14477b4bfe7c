package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// filter is one rule about who may take replicas. check tells whether the cluster is refused, and notes the reason; effect marks what
// follows for the replicas that the cluster has already. It is only asked where it applies, which most rules do in few decisions.
type filter struct {
	name    string
	effect  func(*candidate)
	check   func(*cycle, *candidate) (refused bool)
	applies func(*cycle) bool
}

// filters run in this order; the first reason of a cluster is the one that messages count. Behind a filter that makes replicas
// leave, the others are not asked, since nobody wants to know them of a cluster that was not chosen.
var filters = []filter{
	{"Name", leaves, checkName, func(c *cycle) bool { return c.names != nil }},
	{"Label", leaves, checkLabels, func(c *cycle) bool { return c.selector != nil && !c.selector.Empty() }},
	{"Group", leaves, checkGroup, func(c *cycle) bool { return len(c.groups) > 0 }},
	{"Domain", leaves, checkDomain, func(c *cycle) bool { return len(c.spread) > 0 }},
	{"Weight", leaves, checkWeight, func(c *cycle) bool { return c.strategy.name == ByWeights }},
	{"Evict", isEvicted, checkEvict, func(c *cycle) bool { return len(c.request.Evict)+len(c.request.Lost) > 0 }},
	{"Policy", freezes, checkPolicy, func(c *cycle) bool { return c.problem != "" }},
	{"Ready", freezes, checkReady, always},
	{"Cordon", freezes, checkCordon, always},
	{"Taint", freezes, checkTaints, always},
	{"Affinity", freezes, checkCompany, func(c *cycle) bool { return len(c.company) > 0 }},
	{"Apart", freezes, checkKeepers, func(c *cycle) bool { return len(c.keepers) > 0 }},
	{"Kind", freezes, checkKind, always},
	{"Class", freezes, checkClass, func(c *cycle) bool { return namesClasses(&c.request.Workload) }},
	{"Volume", freezes, checkVolume, func(c *cycle) bool { return c.request.Workload.VolumesIn != nil }},
	{"HandMade", freezes, checkHandMade, func(c *cycle) bool { return len(c.request.Workload.HandMade) > 0 }},
	{"Nodes", isFull, checkNodes, always},
}

func always(*cycle) bool { return true }

func leaves(k *candidate)    { k.leaves = true }
func isEvicted(k *candidate) { k.evicted = true }
func freezes(k *candidate)   { k.frozen = true }
func isFull(k *candidate)    { k.full = true }

// refuse notes a reason why the cluster does not take replicas.
func (k *candidate) refuse(why Reason) bool {
	k.reasons = append(k.reasons, why)
	return true
}

// filter runs the filters over all candidates and finds out what fits where.
func (c *cycle) filter() {
	c.readFree()
	asked := slices.DeleteFunc(slices.Clone(filters), func(f filter) bool { return !f.applies(c) })
	for i := range c.candidates {
		k := &c.candidates[i]
		for _, f := range asked {
			if f.check(c, k) {
				f.effect(k)
			}
			if k.leaves || k.evicted {
				break
			}
		}
		c.tie(k)
		c.fit(i)
	}
}

// checkWeight is about static weights alone: a cluster without one gets nothing.
func checkWeight(c *cycle, k *candidate) bool {
	if weightOf(c, k) > 0 {
		return false
	}
	return k.refuse(Reason{Code: ReasonNoWeight, Subject: c.request.Policy.String()})
}

func checkEvict(c *cycle, k *candidate) bool {
	if c.request.Lost[k.Name] {
		return k.refuse(Reason{Code: ReasonLost})
	}
	return c.request.Evict[k.Name] && k.refuse(Reason{Code: ReasonEvicted, Subject: c.request.Policy.evictingTaint(k.Cluster)})
}

// checkPolicy keeps everything as it is under a policy that cannot be followed.
func checkPolicy(c *cycle, k *candidate) bool {
	return k.refuse(Reason{Code: ReasonInvalidPolicy, Subject: c.request.Policy.String() + ": " + c.problem})
}

func checkReady(_ *cycle, k *candidate) bool {
	switch k.Ready {
	case metav1.ConditionTrue:
		return false
	case metav1.ConditionFalse:
		return k.refuse(Reason{Code: ReasonNotReady, Detail: k.ReadyMessage})
	default:
		return k.refuse(Reason{Code: ReasonUnreachable, Detail: k.ReadyMessage})
	}
}

func checkCordon(_ *cycle, k *candidate) bool {
	return k.Unschedulable && k.refuse(Reason{Code: ReasonCordoned})
}

func checkKind(c *cycle, k *candidate) bool {
	return !slices.ContainsFunc(c.kinds, k.serves) && k.refuse(Reason{Code: ReasonNotServed, Subject: c.kind})
}

// checkVolume keeps pods where their data is: a volume does not follow to another cluster.
func checkVolume(c *cycle, k *candidate) bool {
	return !c.request.Workload.VolumesIn[k.Name] && k.refuse(Reason{Code: ReasonNoVolume})
}

// checkNodes tells a cluster with nothing at all from one that lacks this or that.
func checkNodes(c *cycle, k *candidate) bool {
	return c.nodeless(k) && c.wantsMore(k) && k.refuse(Reason{Code: ReasonNoNodes})
}

// nodeless tells whether the cluster has no node, where that matters.
func (c *cycle) nodeless(k *candidate) bool { return len(k.Free) == 0 && !c.request.Workload.Custom }

// wantsMore tells whether the workload could need more replicas on the cluster than it has there. If not, room does not matter.
func (c *cycle) wantsMore(k *candidate) bool {
	return c.replicas > k.current
}

// readFree copies the free amounts that the decision needs, so that each is looked up once.
func (c *cycle) readFree() {
	for _, need := range c.needs {
		c.measured = append(c.measured, need.name)
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if !slices.Contains(c.measured, name) {
			c.measured = append(c.measured, name)
		}
	}
	c.free = make([]int64, 0, len(c.measured)*len(c.candidates))
	for i := range c.candidates {
		for _, name := range c.measured {
			c.free = append(c.free, c.candidates[i].Free.Of(name))
		}
	}
}

// freeOf are the free amounts of a candidate, in the order of measured.
func (c *cycle) freeOf(i int) []int64 {
	return c.free[i*len(c.measured) : (i+1)*len(c.measured)]
}

// fit counts how many replicas have room, and gives the reasons if not even one has. A cluster without nodes has its reason.
func (c *cycle) fit(i int) {
	k, free := &c.candidates[i], c.freeOf(i)
	k.fits = unbounded
	for j, need := range c.needs {
		k.fits = min(k.fits, max(0, free[j])/need.amount)
	}
	for _, need := range c.claims {
		if k.Free.Has(need.name) {
			k.fits = min(k.fits, max(0, k.Free.Of(need.name))/need.amount)
		}
	}
	if c.nodeless(k) {
		k.fits = 0
	}
	if k.fits > 0 || len(k.Free) == 0 || k.leaves || k.evicted || !c.wantsMore(k) {
		return
	}
	k.full = true
	for j, need := range c.needs {
		if free[j] < need.amount {
			k.reasons = append(k.reasons,
				Reason{Code: ReasonLacks, Subject: string(need.name), Need: need.amount, Free: free[j]})
		}
	}
	for _, need := range c.claims {
		if left := k.Free.Of(need.name); left < need.amount && k.Free.Has(need.name) {
			k.reasons = append(k.reasons, Reason{Code: ReasonLacks, Subject: string(need.name), Need: need.amount, Free: left})
		}
	}
}

// addAbsent adds a verdict for every name that was asked for and that no cluster has.
func (c *cycle) addAbsent(verdicts []Verdict) []Verdict {
	joined := len(verdicts)
	for _, name := range c.absent(c.find) {
		verdicts = append(verdicts, Verdict{Cluster: name, Reasons: []Reason{{Code: ReasonNotJoined}}})
	}
	if len(verdicts) > joined {
		slices.SortFunc(verdicts, func(a, b Verdict) int { return strings.Compare(a.Cluster, b.Cluster) })
	}
	return verdicts
}
