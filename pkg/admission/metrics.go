package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// metrics keeps metrics.k8s.io with the clusters when somebody applies the manifest of metrics-server, as one does to a cluster. Nothing
// runs behind the Service that its APIService names, and an API that does not answer stops more than autoscaling: no namespace can be
// deleted meanwhile.
type metrics struct {
	*admission.Handler
}

var _ admission.MutationInterface = &metrics{}

// metricsService is the name of the APIService.
const metricsService = "v1beta1." + v1beta1.GroupName

// Admit leaves a local APIService as it is, and says so. One that a user creates after deleting the server's is the user's.
func (*metrics) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	resource := schema.GroupResource{Group: apiregistration.GroupName, Resource: "apiservices"}
	if a.GetResource().GroupResource() != resource || a.GetSubresource() != "" || a.GetName() != metricsService {
		return nil
	}
	service, isService := a.GetObject().(*apiregistration.APIService)
	old, wasService := a.GetOldObject().(*apiregistration.APIService)
	if !isService || !wasService || service.Spec.Service == nil || old.Spec.Service != nil {
		return nil
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("Manifold serves metrics.k8s.io from the metrics of the clusters, so APIService %s is left unchanged; "+
		"to have Service %s/%s answer instead, delete the APIService before you create yours",
		service.Name, service.Spec.Service.Namespace, service.Spec.Service.Name))
	service.Spec = old.Spec
	return nil
}
