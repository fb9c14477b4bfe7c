package framework

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// DecisionOf reads where a workload runs.
func DecisionOf(s *Scenario, workload metav1.Object) placement.Decision {
	s.Helper()
	out, err := placement.ParseDecision(workload.GetAnnotations()[v1alpha1.AnnotationPlacement])
	if err != nil {
		s.Fatal(err)
	}
	return out
}

// ReadDeployment returns the Deployment as it is now.
func ReadDeployment(s *Scenario, name string) *appsv1.Deployment {
	s.Helper()
	d, err := s.Logical.Kube.AppsV1().Deployments(s.Namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// ConditionOf returns the condition of that type, or an empty one.
func ConditionOf(d *appsv1.Deployment, of appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	for _, c := range d.Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return appsv1.DeploymentCondition{}
}

// ImageOf returns the image of a Deployment's first container.
func ImageOf(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image }

// EnvOf returns the value of a variable in a container's environment, or "".
func EnvOf(c corev1.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// EventsAbout returns the events of an object that have the reason.
func EventsAbout(events []*corev1.Event, name, reason string) []*corev1.Event {
	var out []*corev1.Event
	for _, e := range events {
		if e.InvolvedObject.Name == name && e.Reason == reason {
			out = append(out, e)
		}
	}
	return out
}

// PodUIDs returns the UIDs of the pods of an app that are not being deleted, sorted.
func PodUIDs(s *Scenario, side *Side, app string) []types.UID {
	s.Helper()
	list, err := side.Kube.CoreV1().Pods(s.Namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		s.Fatal(err)
	}
	var out []types.UID
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			out = append(out, pod.UID)
		}
	}
	slices.Sort(out)
	return out
}

// Evict asks the logical cluster to evict a pod.
func Evict(s *Scenario, pod *corev1.Pod, options *metav1.DeleteOptions) error {
	return s.Logical.Kube.PolicyV1().Evictions(s.Namespace).Evict(s.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: s.Namespace}, DeleteOptions: options,
	})
}

// Unready has pods of a stock cluster be long since not ready, which they stay.
func (s *Side) Unready(pods ...string) {
	s.t.Helper()
	for _, pod := range pods {
		s.Kubectl("patch", "pod", pod, "--subresource=status", "-p",
			`{"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)
	}
}
