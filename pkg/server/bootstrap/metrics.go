package bootstrap

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// The place of metrics among the groups is the one that metrics-server registers itself with: the last, so that "nodes" and "pods"
// without a group are the real ones.
const (
	MetricsGroupPriority   = 100
	MetricsVersionPriority = 100
)

// RegisterMetrics makes the APIService that says that this server answers for metrics, unless there is one: a user may have put an API of
// his own in its place. The aggregator would register the group too, but then the server would not be ready before that API answers,
// which may need the server. Where metrics are not served, what an earlier start has registered is taken back.
func RegisterMetrics(ctx context.Context, services apiregistration.APIServiceInterface, served bool) error {
	version := metricsv1beta1.SchemeGroupVersion
	name := version.Version + "." + version.Group
	if !served {
		return unregister(ctx, services, name)
	}
	service := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: version.Group, Version: version.Version,
			GroupPriorityMinimum: MetricsGroupPriority, VersionPriority: MetricsVersionPriority,
		},
	}
	if err := ensure(ctx, services, service); err != nil {
		return fmt.Errorf("make APIService %s: %w", name, err)
	}
	return nil
}

// unregister deletes an APIService that names no Service.
func unregister(ctx context.Context, services apiregistration.APIServiceInterface, name string) error {
	service, err := services.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && service.Spec.Service != nil {
		return nil
	}
	if err == nil {
		err = services.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &service.ResourceVersion}})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete APIService %s, which is not served: %w", name, err)
	}
	return nil
}
