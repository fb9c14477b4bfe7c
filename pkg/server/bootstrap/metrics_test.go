package bootstrap

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/fake"
)

func TestWhatAStartMakesOfTheAPIServiceOfMetrics(t *testing.T) {
	const name = "v1beta1.metrics.k8s.io"
	service := func(ref *apiregistrationv1.ServiceReference) *apiregistrationv1.APIService {
		return &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: apiregistrationv1.APIServiceSpec{Service: ref}}
	}
	adapter := &apiregistrationv1.ServiceReference{Namespace: "monitoring", Name: "adapter"}
	for title, test := range map[string]struct {
		served bool
		there  *apiregistrationv1.APIService
		// want is "none", "local" or "adapter".
		want string
	}{
		"the first makes it":                              {served: true, want: "local"},
		"a later one leaves it":                           {served: true, there: service(nil), want: "local"},
		"one that is a user's stays":                      {served: true, there: service(adapter), want: "adapter"},
		"without metrics there is none":                   {want: "none"},
		"without metrics that of an earlier start goes":   {there: service(nil), want: "none"},
		"without metrics one that is a user's stays, too": {there: service(adapter), want: "adapter"},
	} {
		t.Run(title, func(t *testing.T) {
			client := fake.NewClientset()
			if test.there != nil {
				client = fake.NewClientset(test.there)
			}
			services := client.ApiregistrationV1().APIServices()
			if err := RegisterMetrics(t.Context(), services, test.served); err != nil {
				t.Fatal(err)
			}
			got := "local"
			found, err := services.Get(t.Context(), name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				got = "none"
			case err != nil:
				t.Fatal(err)
			case found.Spec.Service != nil:
				got = found.Spec.Service.Name
			}
			if got != test.want {
				t.Errorf("there is %s, want %s", got, test.want)
			}
		})
	}
}
