package summary

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// reasonDiffer is the reason of a condition that the clusters do not agree on.
const reasonDiffer = "ClustersDiffer"

// Service returns the status of a Service: the load balancers' ingress points of all clusters that report, sorted and each once, and
// the conditions that any cluster has. A condition that all of them agree on keeps their status; one that they do not is Unknown,
// since not every type of it means well by True, and its message tells what each says. A silent cluster keeps its ingress points:
// unreachable for Manifold is not unreachable for users. One whose points have been withdrawn has none.
func Service(in *corev1.Service, reports map[string]Report) corev1.ServiceStatus {
	var out corev1.ServiceStatus
	said := map[string][]statement{}
	for _, cluster := range clustersOf(reports) {
		service := live[*corev1.Service](reports[cluster])
		if service == nil {
			continue
		}
		status := service.Status
		for _, point := range status.LoadBalancer.Ingress {
			if reports[cluster].withholds() {
				break
			}
			point := *point.DeepCopy()
			if point.IP != "" && point.IPMode == nil {
				point.IPMode = ptr.To(corev1.LoadBalancerIPModeVIP) // as it is stored above, where a cluster of an older version does not say it
			}
			out.LoadBalancer.Ingress = append(out.LoadBalancer.Ingress, point)
		}
		for _, c := range status.Conditions {
			said[c.Type] = append(said[c.Type], statement{cluster, c})
		}
	}
	out.LoadBalancer.Ingress = sortIngress(out.LoadBalancer.Ingress)
	for _, conditionType := range slices.Sorted(maps.Keys(said)) {
		out.Conditions = append(out.Conditions, merge(in, said[conditionType]))
	}
	return out
}

var serviceKind = register(row[corev1.Service, *corev1.Service]{
	resource:  corev1.SchemeGroupVersion.WithResource("services"),
	sane:      saneService,
	summarise: func(out *corev1.Service, from Input) { out.Status = Service(out, from.Reports) },
	addresses: func(live *corev1.Service) (out []string) {
		for _, point := range live.Status.LoadBalancer.Ingress {
			out = append(out, point.IP, point.Hostname)
		}
		return out
	},
	without: func(out *corev1.Service, gone func(...string) bool) {
		out.Status.LoadBalancer.Ingress = slices.DeleteFunc(out.Status.LoadBalancer.Ingress, func(p corev1.LoadBalancerIngress) bool {
			return gone(p.IP, p.Hostname)
		})
	},
})

func sortIngress(in []corev1.LoadBalancerIngress) []corev1.LoadBalancerIngress {
	slices.SortStableFunc(in, func(a, b corev1.LoadBalancerIngress) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Hostname, b.Hostname))
	})
	var out []corev1.LoadBalancerIngress
	for _, point := range in {
		// Two clusters may give the same address with other ports, so equal points need not be neighbours.
		known := slices.ContainsFunc(out, func(o corev1.LoadBalancerIngress) bool { return equality.Semantic.DeepEqual(o, point) })
		if !known {
			out = append(out, point)
		}
	}
	return out
}

// statement is what one cluster says in a condition.
type statement struct {
	cluster   string
	condition metav1.Condition
}

// merge makes one condition of what the clusters say in theirs of one type. Without a clock, a change of status happened when the
// last of the clusters changed.
func merge(in *corev1.Service, said []statement) metav1.Condition {
	out := said[0].condition
	out.ObservedGeneration = 0 // The clusters count their own generations.
	for _, s := range said[1:] {
		if s.condition.LastTransitionTime.After(out.LastTransitionTime.Time) {
			out.LastTransitionTime = s.condition.LastTransitionTime
		}
	}
	if slices.ContainsFunc(said, func(s statement) bool { return s.condition.Status != out.Status }) {
		out.Status, out.Reason = metav1.ConditionUnknown, reasonDiffer
	}
	if slices.ContainsFunc(said, func(s statement) bool { return out.Reason == reasonDiffer || s.condition.Message != out.Message }) {
		out.Message = told(said)
	}
	for _, old := range in.Status.Conditions {
		if old.Type == out.Type && old.Status == out.Status {
			out.LastTransitionTime = old.LastTransitionTime
		}
	}
	return out
}

func told(said []statement) string {
	var out []string
	for _, s := range said {
		out = append(out, fmt.Sprintf("cluster %q: %s (%s): %s", s.cluster, s.condition.Status, s.condition.Reason, s.condition.Message))
	}
	return strings.Join(out, "; ")
}
