package mirror

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// component is the name under which Manifold itself writes events.
const component = "manifold"

// Event makes an event of a cluster what may be shown of it above, about an object of the logical cluster. It names its cluster, and neither
// claims to be an event of Manifold nor leads to any other object.
func Event(event *corev1.Event, about corev1.ObjectReference, cluster string) {
	event.ObjectMeta = metav1.ObjectMeta{
		Namespace: event.Namespace, Name: event.Name, ResourceVersion: event.ResourceVersion,
		Annotations: map[string]string{v1alpha1.AnnotationCluster: cluster},
	}
	event.InvolvedObject, event.Related = about, nil
	if event.Source.Host == "" {
		event.Source.Host = cluster
	}
	for _, from := range []*string{&event.Source.Component, &event.ReportingController} {
		if claimsToBeOurs(*from) {
			*from = "cluster " + cluster
		}
	}
}

// claimsToBeOurs reports whether a component of a cluster calls itself like Manifold.
func claimsToBeOurs(name string) bool {
	return strings.EqualFold(name, component) || strings.HasPrefix(strings.ToLower(name), component+"-") || strings.Contains(strings.ToLower(name), domain)
}

// EventName is the name above of an event of a cluster: two clusters may choose the same one for events about Deployments.
func EventName(event, cluster string) string { return event + "." + cluster }

// CheckEvent returns why an event cannot be one of a cluster about an object in its own namespace, nil if it can. Whether there is such an
// object is another question.
func CheckEvent(event *corev1.Event, cluster string) error {
	want := event.DeepCopy()
	about := want.InvolvedObject
	about.ResourceVersion = ""
	Event(want, about, cluster)
	switch {
	case !strings.HasSuffix(event.Name, EventName("", cluster)):
		return fmt.Errorf("metadata.name: that of an event of a cluster ends with its name")
	case event.InvolvedObject.Namespace != event.Namespace:
		return fmt.Errorf("involvedObject: it is in another namespace")
	case !maps.Equal(event.Annotations, want.Annotations), len(event.Labels) > 0, len(event.Finalizers) > 0, len(event.OwnerReferences) > 0:
		return fmt.Errorf("metadata: all that it can carry is annotation %s", v1alpha1.AnnotationCluster)
	case !equality.Semantic.DeepEqual(event.InvolvedObject, want.InvolvedObject), event.Related != nil:
		return fmt.Errorf("involvedObject: it names more than an object")
	case event.Source != want.Source, event.ReportingController != want.ReportingController:
		return fmt.Errorf("source: it claims to be %.100q", event.Source.Component+event.ReportingController)
	}
	return nil
}
