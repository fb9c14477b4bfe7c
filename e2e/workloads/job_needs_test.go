package workloads

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// A controller in a cluster makes pods at once, and is refused those of a ServiceAccount that is not there.
func TestWhatPodsNeedIsThereBeforeTheyAreMade(t *testing.T) {
	const jobs = 20
	s := suite.Scenario(t)
	var all []string
	for i := range jobs {
		name := fmt.Sprintf("task-%02d", i)
		all = append(all, fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s}
data: {key: value}
---
`, name)+manifests.Job(name, 1, 1, manifests.JobOn([]string{"east", "west"}[i%2]), func(job *batchv1.Job) {
			job.Spec.Template.Spec.ServiceAccountName = name
		}))
	}
	s.Logical.Apply(all...)
	for i := range jobs {
		framework.Await(s.Logical, fmt.Sprintf("task-%02d", i), "is complete", expect.JobIs(batchv1.JobComplete))
	}
	for _, side := range []*framework.Side{s.East, s.West, s.Logical} {
		events, err := side.Kube.CoreV1().Events(s.Namespace).List(side.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events.Items {
			if event.Reason == "FailedCreate" || event.Reason == "DependentMissing" {
				t.Errorf("event about %s: %s %s", event.InvolvedObject.Name, event.Reason, event.Message)
			}
		}
	}
}
