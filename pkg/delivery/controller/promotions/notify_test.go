package promotions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestANotificationIsAnEventThatOthersActOn(t *testing.T) {
	w := newWorld(t, pipelineOf("{strategy: {notification: {}}}"))
	w.look()
	events, err := w.kube.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(events.Items) != 1 {
		t.Fatalf("events are %v: %v", events, err)
	}
	event := events.Items[0]
	if event.Reason != "Promote" || event.Type != "Normal" || event.Annotations["environment"] != "prod" || event.Annotations["version"] != "2" ||
		event.InvolvedObject.Kind != "Pipeline" || event.InvolvedObject.APIVersion != "pipelines.weave.works/v1alpha1" || event.InvolvedObject.UID != "uid-of-web" {
		t.Errorf("the event is %+v", event)
	}
}
