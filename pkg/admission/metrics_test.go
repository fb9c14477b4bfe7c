package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
)

func TestWhoAnswersForMetrics(t *testing.T) {
	automanaged := map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"}
	service := func(name string, labels map[string]string, service *apiregistration.ServiceReference) *apiregistration.APIService {
		return &apiregistration.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       apiregistration.APIServiceSpec{Service: service, InsecureSkipTLSVerify: service != nil},
		}
	}
	adapter := &apiregistration.ServiceReference{Namespace: "kube-system", Name: "metrics-server"}

	for name, test := range map[string]struct {
		object, old *apiregistration.APIService
		// wantService reports whether a Service answers in the end.
		wantService bool
		wantWarning string
	}{
		"the manifest of metrics-server, applied over the server's own, changes nothing": {
			object: service("v1beta1.metrics.k8s.io", automanaged, adapter), old: service("v1beta1.metrics.k8s.io", automanaged, nil),
			wantWarning: "to have Service kube-system/metrics-server answer instead, delete the APIService",
		},
		"nor does it once it has replaced the server's labels": {
			object: service("v1beta1.metrics.k8s.io", nil, adapter), old: service("v1beta1.metrics.k8s.io", nil, nil),
			wantWarning: "is left unchanged",
		},
		"one that a user has created is the user's": {
			object: service("v1beta1.metrics.k8s.io", nil, adapter), wantService: true,
		},
		"and may be changed": {
			object: service("v1beta1.metrics.k8s.io", nil, adapter), old: service("v1beta1.metrics.k8s.io", nil, adapter), wantService: true,
		},
		"the server's own needs no warning": {
			object: service("v1beta1.metrics.k8s.io", automanaged, nil), old: service("v1beta1.metrics.k8s.io", automanaged, nil),
		},
		"other APIs are none of its business": {
			object: service("v1beta1.custom.metrics.k8s.io", automanaged, adapter), old: service("v1beta1.custom.metrics.k8s.io", automanaged, nil),
			wantService: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var old runtime.Object
			if test.old != nil {
				old = test.old
			}
			attributes := admission.NewAttributesRecord(test.object, old, apiregistration.SchemeGroupVersion.WithKind("APIService"), "", test.object.Name,
				apiregistration.SchemeGroupVersion.WithResource("apiservices"), "", admission.Update, nil, false, &user.DefaultInfo{Name: "admin"})
			warnings := &recorder{}
			if err := (&metrics{}).Admit(warning.WithWarningRecorder(t.Context(), warnings), attributes, nil); err != nil {
				t.Fatal(err)
			}
			if got := test.object.Spec.Service != nil; got != test.wantService || got != test.object.Spec.InsecureSkipTLSVerify {
				t.Errorf("the spec is %+v, want a Service: %t", test.object.Spec, test.wantService)
			}
			if got := strings.Join(warnings.texts, "\n"); !strings.Contains(got, test.wantWarning) || (got == "") != (test.wantWarning == "") {
				t.Errorf("warning %q, want %q in it", got, test.wantWarning)
			}
		})
	}
}
