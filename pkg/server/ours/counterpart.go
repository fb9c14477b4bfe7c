package ours

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// Identity returns the UID by which clusters know what is this logical cluster's. The error says why that is not known.
type Identity func() (string, error)

// Pod makes sure, by asking the cluster, that the pod which has the name of one above is that one at this moment. To exec, attach and their
// like an API has no precondition. The error says what is different.
func (i Identity) Pod(ctx context.Context, client kubernetes.Interface, cluster string, above metav1.Object) error {
	live, err := client.CoreV1().Pods(above.GetNamespace()).Get(ctx, above.GetName(), metav1.GetOptions{})
	if err != nil {
		return missing("pods", cluster, above, err)
	}
	if uid := projection.UIDBelow(above); uid == "" || live.UID != uid {
		return other("pods", cluster, above, fmt.Sprintf("its UID is not %s", uid))
	}
	return i.compare("pods", cluster, above, live)
}

// Service does for a Service what Pod does for a pod.
func (i Identity) Service(ctx context.Context, client kubernetes.Interface, cluster string, above metav1.Object) error {
	live, err := client.CoreV1().Services(above.GetNamespace()).Get(ctx, above.GetName(), metav1.GetOptions{})
	if err != nil {
		return missing("services", cluster, above, err)
	}
	return i.compare("services", cluster, above, live)
}

// Claim does for a volume claim what Pod does for a pod.
func (i Identity) Claim(ctx context.Context, client kubernetes.Interface, cluster string, above metav1.Object) (*corev1.PersistentVolumeClaim, error) {
	live, err := client.CoreV1().PersistentVolumeClaims(above.GetNamespace()).Get(ctx, above.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, missing("persistentvolumeclaims", cluster, above, err)
	}
	return live, i.compare("persistentvolumeclaims", cluster, above, live)
}

func (i Identity) compare(resource, cluster string, above, live metav1.Object) error {
	logicalCluster, err := i()
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("who this logical cluster is: %w", err))
	}
	if difference := projection.Differs(above, live, logicalCluster); difference != "" {
		return other(resource, cluster, above, difference)
	}
	return nil
}

// other is the error of an object that has the name of one above and is another one. It tells nothing of that.
func other(resource, cluster string, above metav1.Object, difference string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: resource}, above.GetName(), fmt.Errorf(
		"in cluster %q namespace %s has another one of that name: %s", cluster, above.GetNamespace(), difference))
}

// missing is the error of an object that could not be read. One that does not answer is told apart by its caller.
func missing(resource, cluster string, above metav1.Object, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	out := apierrors.NewNotFound(schema.GroupResource{Resource: resource}, above.GetName())
	out.ErrStatus.Message = fmt.Sprintf("%s %q not found in cluster %q, where namespace %s had it", resource, above.GetName(), cluster, above.GetNamespace())
	return out
}

// IsOther reports whether an error is that of an object which is not there, or is another one, in a cluster that was asked.
func IsOther(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && (apierrors.IsConflict(err) || apierrors.IsNotFound(err))
}
