package v1alpha1

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		object runtime.Object
		want   string
	}{
		"an application that says nothing": {
			object: &Application{},
			want: `{"metadata":{},"spec":{"source":{},"trigger":{"mode":"Automatic","concurrency":"Queue"},"rollback":{},` +
				`"variantLabel":{"key":"delivery.manifold.dev/variant","primaryValue":"primary","canaryValue":"canary","baselineValue":"baseline"},` +
				`"revisionHistoryLimit":10,"releaseHistoryLimit":10,"progressDeadlineSeconds":600},"status":{}}`,
		},
		"a plugin that says nothing": {
			object: &Plugin{},
			want:   `{"metadata":{},"spec":{"url":"","sha256":"","logLevel":"info","limits":{"memory":"1Gi","files":1024,"processes":512},"gracePeriodSeconds":30},"status":{}}`,
		},
		"fields of what it has": {
			object: &Application{Spec: ApplicationSpec{
				Source:        Source{Git: &GitSource{URL: "https://git.example/shop.git"}},
				Pipeline:      &Pipeline{Stages: []Stage{{Name: StageSync, Failure: &FailurePolicy{MaxFailures: 1}}}},
				Traffic:       &Traffic{Method: TrafficReplicas},
				Workloads:     []WorkloadReference{{Name: "web"}},
				Notifications: []Notification{{Name: "ops", SecretRef: SecretReference{Name: "ops"}}},
			}},
			want: `{"metadata":{},"spec":{"source":{"git":{"url":"https://git.example/shop.git","interval":"1m0s"}},` +
				`"pipeline":{"stages":[{"name":"K8S_SYNC","failure":{"maxFailures":1,"onUnreachable":"wait","unreachableSeconds":30}}]},` +
				`"trigger":{"mode":"Automatic","concurrency":"Queue"},"rollback":{},"traffic":{"method":"Replicas","drainSeconds":30},` +
				`"workloads":[{"kind":"Deployment","name":"web"}],` +
				`"variantLabel":{"key":"delivery.manifold.dev/variant","primaryValue":"primary","canaryValue":"canary","baselineValue":"baseline"},` +
				`"notifications":[{"name":"ops","type":"Webhook","secretRef":{"name":"ops"}}],` +
				`"revisionHistoryLimit":10,"releaseHistoryLimit":10,"progressDeadlineSeconds":600},"status":{}}`,
		},
		"a release that does not say why": {
			object: &Release{Spec: ReleaseSpec{Application: "web", Revision: "web-v1"}},
			want:   `{"metadata":{},"spec":{"application":"web","revision":"web-v1","triggeredBy":{"cause":"Command"}},"status":{}}`,
		},
		"a revision has none": {
			object: &ApplicationRevision{Spec: ApplicationRevisionSpec{Application: "web", Number: 1}},
			want:   `{"metadata":{},"spec":{"application":"web","number":1}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme.Default(test.object)
			got, err := json.Marshal(test.object)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
