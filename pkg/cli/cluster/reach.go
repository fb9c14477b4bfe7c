package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// reachTimeout bounds how long a cluster may take for its first answer, dialling and TLS included.
const reachTimeout = 10 * time.Second

// physical is a cluster that has answered, seen with the credential of its admin.
type physical struct {
	access  access
	client  kubernetes.Interface
	dynamic dynamic.Interface
	// uid is the UID of its kube-system namespace, which identifies the cluster.
	uid types.UID
	// version is that of its API server, such as v1.37.1.
	version string
	// kinds are the custom kinds that joining gives rights for.
	kinds []schema.GroupResource
	// priorities is up to which value joining lets PriorityClasses come along, nil if that is not asked for. Once it has been granted, that
	// of before is in its place.
	priorities *int32
	// volumes reports whether joining lets PersistentVolumes go along with their claims.
	volumes bool
	// asks is how the cluster asks about pods, nil if it is not to.
	asks *asking
	// asksSaid reports whether the logical cluster takes it that the cluster asks.
	asksSaid bool
	// logical is the UID of the logical cluster that it joins, as soon as that is known.
	logical types.UID
}

// reach asks the cluster who it is. Its errors say what was asked and where, so that nothing has to be added.
func reach(ctx context.Context, a access) (*physical, error) {
	client, err := kubernetes.NewForConfig(a.rest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a, err)
	}
	dynamicClient, err := dynamic.NewForConfig(a.rest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, errSilent)
	defer cancel()
	p := &physical{access: a, client: client, dynamic: dynamicClient}
	if p.version, err = serverVersion(ctx, client); err != nil {
		return nil, notReached(ctx, a, err)
	}
	p.uid, err = clusterUID(ctx, client)
	if apierrors.IsForbidden(err) {
		// One missing right is seldom alone; name all of them at once.
		return nil, cmp.Or(p.checkRights(ctx), notReached(ctx, a, err))
	}
	if err != nil {
		return nil, notReached(ctx, a, err)
	}
	return p, nil
}

func serverVersion(ctx context.Context, client kubernetes.Interface) (string, error) {
	raw, err := client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil || info.GitVersion == "" {
		return "", errors.New("it does not answer like a Kubernetes API server")
	}
	return info.GitVersion, nil
}

// clusterUID returns the UID of the kube-system namespace: what identifies a cluster, above as well as below.
func clusterUID(ctx context.Context, client kubernetes.Interface) (types.UID, error) {
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return namespace.UID, nil
}

var errSilent = fmt.Errorf("no answer within %s", reachTimeout)

// notReached says why a cluster could not be asked, and what to look at.
func notReached(ctx context.Context, a access, err error) error {
	at, refused := a.rest.Host, new(net.OpError)
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(context.Cause(ctx), errSilent):
		return fmt.Errorf("%s does not answer: %w; check the address in %s", at, errSilent, a)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &untrusted):
		return fmt.Errorf("%s shows a certificate that is not to be trusted: %w; check the CA in %s", at, untrusted.Err, a)
	case errors.As(err, &refused), os.IsTimeout(err):
		return fmt.Errorf("%s does not answer: %w; check the address in %s", at, err, a)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s does not know the credential in %s: %w", at, a, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w; use a cluster admin's kubeconfig", at, err)
	default:
		return fmt.Errorf("ask %s who it is: %w; check the address in %s", at, err, a)
	}
}
