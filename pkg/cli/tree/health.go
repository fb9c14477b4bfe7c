package tree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// judges is the table of how objects of a kind are judged of which more is to be told than of others. Workloads are judged by their replicas, and
// what is neither has no health but to be there.
var judges = map[schema.GroupVersionKind]func(n *Node, obj projection.Object){
	appsv1.SchemeGroupVersion.WithKind("Deployment"):                     judgeAs((*Node).judgeDeployment),
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"):                    judgeAs((*Node).judgeStatefulSet),
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"):                      judgeAs((*Node).judgeDaemonSet),
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):                     judgeAs((*Node).judgeReplicaSet),
	corev1.SchemeGroupVersion.WithKind("Pod"):                            judgeAs((*Node).judgePod),
	batchv1.SchemeGroupVersion.WithKind("Job"):                           judgeAs((*Node).judgeJob),
	batchv1.SchemeGroupVersion.WithKind("CronJob"):                       judgeAs((*Node).judgeCronJob),
	corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"):          judgeAs((*Node).judgeClaim),
	corev1.SchemeGroupVersion.WithKind("Service"):                        judgeAs((*Node).judgeService),
	discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"):             judgeAs((*Node).judgeEndpoints),
	networkingv1.SchemeGroupVersion.WithKind("Ingress"):                  judgeAs((*Node).judgeIngress),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"):          judgeAs((*Node).judgeBudget),
	autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"): judgeAs((*Node).judgeAutoscaler),
	applicationGVK: judgeAs((*Node).judgeApplication),
}

// judgeAs types a judgement, so that only this function converts.
func judgeAs[P projection.Object](judge func(*Node, P)) func(*Node, projection.Object) {
	return func(n *Node, obj projection.Object) {
		if typed, ok := obj.(P); ok {
			judge(n, typed)
		}
	}
}

// judge sets health, readiness and status of the node by what the object says of itself.
func (n *Node) judge(obj projection.Object) {
	if judge, ok := judges[obj.GetObjectKind().GroupVersionKind()]; ok {
		judge(n, obj)
		return
	}
	if kind, ok := projection.KindOf(obj); ok && kind.Workload {
		n.judgeWorkload(kind, obj)
		return
	}
	if custom, ok := obj.(*unstructured.Unstructured); ok {
		n.judgeCustom(custom)
	}
}

// replicas tells how many are ready, and that some are still to be updated.
func (n *Node) replicas(wanted, ready, updated int32, observed bool) {
	n.Ready = &Ready{Ready: ready, Of: wanted}
	switch {
	case !observed:
		n.Health, n.Status = Progressing, "not applied in every cluster yet"
	case updated < wanted:
		n.Health, n.Status = Progressing, fmt.Sprintf("%d of %d updated", updated, wanted)
	case ready < wanted:
		n.Health = Progressing
	}
}

func (n *Node) judgeDeployment(d *appsv1.Deployment) {
	n.replicas(ptr.Deref(d.Spec.Replicas, 1), d.Status.ReadyReplicas, d.Status.UpdatedReplicas, d.Status.ObservedGeneration >= d.Generation)
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse, c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			n.Health, n.Status = Degraded, phrases(c.Reason, n.Status)
			n.problem(c.Message)
		case c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionFalse:
			n.Status = phrases("not available", n.Status)
		}
	}
	if d.Spec.Paused {
		n.Status = phrases("paused", n.Status)
		n.Health = worse(n.Health, Suspended)
	}
}

func (n *Node) judgeStatefulSet(s *appsv1.StatefulSet) {
	updated := s.Status.UpdatedReplicas
	if s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		updated = s.Status.Replicas // others wait for somebody to delete them
	} else if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil {
		updated += ptr.Deref(r.Partition, 0)
	}
	n.replicas(ptr.Deref(s.Spec.Replicas, 1), s.Status.ReadyReplicas, updated, s.Status.ObservedGeneration >= s.Generation)
}

func (n *Node) judgeDaemonSet(d *appsv1.DaemonSet) {
	updated := d.Status.UpdatedNumberScheduled
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		updated = d.Status.DesiredNumberScheduled
	}
	n.replicas(d.Status.DesiredNumberScheduled, d.Status.NumberReady, updated, d.Status.ObservedGeneration >= d.Generation)
}

// revisionKey is the annotation that numbers a Deployment's ReplicaSets.
const revisionKey = "deployment.kubernetes.io/revision"

func (n *Node) judgeReplicaSet(r *appsv1.ReplicaSet) {
	wanted := ptr.Deref(r.Spec.Replicas, 1)
	n.replicas(wanted, r.Status.ReadyReplicas, wanted, true)
	if revision := r.Annotations[revisionKey]; revision != "" {
		n.Status = phrases("revision "+revision, n.Status)
	}
}

// judgeWorkload judges a workload of which nothing is to be told but how many of its replicas are ready.
func (n *Node) judgeWorkload(kind projection.Kind, w projection.Object) {
	if summarised, ok := summary.ForResource(kind.Resource); ok && summarised.Breakdown {
		wanted := kind.Demand(w).Replicas
		n.replicas(wanted, summarised.Counts(w).Ready, wanted, summarised.Observed(w))
	}
}

func (n *Node) judgeJob(j *batchv1.Job) {
	n.Health, n.Status = Progressing, fmt.Sprintf("%d running, %d succeeded", j.Status.Active, j.Status.Succeeded)
	if j.Spec.Completions != nil {
		n.Status = fmt.Sprintf("%d running, %d of %d succeeded", j.Status.Active, j.Status.Succeeded, *j.Spec.Completions)
	}
	if j.Status.Failed > 0 {
		n.Status += fmt.Sprintf(", %d failed", j.Status.Failed)
	}
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			n.Health = Healthy
		case batchv1.JobSuspended:
			n.Health = Suspended
		case batchv1.JobFailed:
			n.Health = Degraded
			n.problem(c.Reason + ": " + c.Message)
		default:
			continue
		}
		n.Status = phrases(string(c.Type), n.Status)
	}
}

func (n *Node) judgeCronJob(c *batchv1.CronJob) {
	words := []string{c.Spec.Schedule, fmt.Sprintf("%d running", len(c.Status.Active))}
	if last := c.Status.LastScheduleTime; last != nil {
		words = append(words, "last "+last.UTC().Format("2006-01-02 15:04Z"))
	}
	if ptr.Deref(c.Spec.Suspend, false) {
		n.Health = Suspended
		words = append(words, "suspended")
	}
	n.Status = phrases(words...)
}

func (n *Node) judgeClaim(c *corev1.PersistentVolumeClaim) {
	n.Status = string(cmp.Or(c.Status.Phase, corev1.ClaimPending))
	switch c.Status.Phase {
	case corev1.ClaimBound:
		if size, ok := c.Status.Capacity[corev1.ResourceStorage]; ok {
			n.Status += " " + size.String()
		}
	case corev1.ClaimLost:
		n.Health = Degraded
	default:
		n.Health = Progressing
	}
}

func (n *Node) judgeService(s *corev1.Service) {
	n.Status = string(s.Spec.Type)
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		n.Status += " " + s.Spec.ExternalName
	case s.Spec.ClusterIP == corev1.ClusterIPNone:
		n.Status = "headless"
	case s.Spec.Type == corev1.ServiceTypeLoadBalancer:
		n.balancer(points(s.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) string { return cmp.Or(i.IP, i.Hostname) }))
	}
}

// balancer tells the addresses that clusters have given.
func (n *Node) balancer(addresses []string) {
	if len(addresses) == 0 {
		n.Health, n.Status = worse(n.Health, Progressing), phrases(n.Status, "no address yet")
		return
	}
	n.Status = phrases(n.Status, strings.Join(addresses, " "))
}

func points[T any](in []T, address func(T) string) []string {
	var out []string
	for _, point := range in {
		if a := address(point); a != "" {
			out = append(out, a)
		}
	}
	return out
}

func (n *Node) judgeEndpoints(s *discoveryv1.EndpointSlice) {
	n.Ready = &Ready{Of: int32(len(s.Endpoints))}
	for _, endpoint := range s.Endpoints {
		if ptr.Deref(endpoint.Conditions.Ready, true) {
			n.Ready.Ready++
		}
	}
	if n.Ready.Ready < n.Ready.Of {
		n.Health = Progressing
	}
}

func (n *Node) judgeIngress(i *networkingv1.Ingress) {
	var hosts []string
	for _, rule := range i.Spec.Rules {
		hosts = append(hosts, cmp.Or(rule.Host, "*"))
	}
	n.Status = strings.Join(slices.Compact(hosts), " ")
	n.balancer(points(i.Status.LoadBalancer.Ingress, func(i networkingv1.IngressLoadBalancerIngress) string { return cmp.Or(i.IP, i.Hostname) }))
	n.Health = Healthy // many controllers never tell an address
}

func (n *Node) judgeBudget(b *policyv1.PodDisruptionBudget) {
	n.Ready = &Ready{Ready: b.Status.CurrentHealthy, Of: b.Status.DesiredHealthy}
	n.Status = fmt.Sprintf("%d disruptions allowed", b.Status.DisruptionsAllowed)
	if b.Status.CurrentHealthy < b.Status.DesiredHealthy {
		n.Health = Progressing
	}
}

func (n *Node) judgeAutoscaler(a *autoscalingv2.HorizontalPodAutoscaler) {
	n.Status = fmt.Sprintf("%d to %d replicas, now %d", ptr.Deref(a.Spec.MinReplicas, 1), a.Spec.MaxReplicas, a.Status.CurrentReplicas)
	for _, c := range a.Status.Conditions {
		if c.Status == corev1.ConditionFalse && (c.Type == autoscalingv2.ScalingActive || c.Type == autoscalingv2.AbleToScale) {
			n.Health = Degraded
			n.problem(c.Reason + ": " + c.Message)
		}
	}
}

// judgeCustom reads the conditions that most kinds have.
func (n *Node) judgeCustom(obj *unstructured.Unstructured) {
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return // it means something else by them
	}
	for _, c := range conditions {
		fields, ok := c.(map[string]any)
		if !ok {
			continue
		}
		text := func(name string) string { value, _ := fields[name].(string); return value }
		if kind := text("type"); kind != "Ready" && kind != "Available" {
			continue
		}
		n.Status = phrases(n.Status, text("type")+"="+text("status"))
		if text("status") != string(corev1.ConditionTrue) {
			n.Health = Progressing
			n.Status = phrases(n.Status, text("reason"))
			n.problem(text("message"))
		}
	}
}

// problem adds a sentence about what is wrong, once.
func (n *Node) problem(text string) {
	if text != "" && !slices.Contains(n.Problems, text) {
		n.Problems = append(n.Problems, text)
	}
}

// worseness orders health from good to bad.
var worseness = []Health{Healthy, Suspended, Progressing, Unknown, Degraded, Missing}

// worse returns the worse of two.
func worse(a, b Health) Health {
	if slices.Index(worseness, b) > slices.Index(worseness, a) {
		return b
	}
	return a
}

// phrases joins what there is to say.
func phrases(in ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(in), func(s string) bool { return s == "" }), ", ")
}

func sortedKeys[V any](in map[string]V) []string { return slices.Sorted(maps.Keys(in)) }
