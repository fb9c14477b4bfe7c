// Package physical reaches a physical cluster, as its admin or with the credential that is stored, and does there what the commands about clusters
// take: it asks for rights, makes what package grants describes, compares it with what is there, and takes it back.
package physical

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

// reachTimeout bounds how long a cluster may take for its first answer, dialling and TLS included.
const reachTimeout = 10 * time.Second

// Cluster is a cluster that has answered, seen with the credential of its admin.
type Cluster struct {
	// UID is the UID of its kube-system namespace, which identifies the cluster.
	UID types.UID
	// Version is that of its API server, such as v1.37.1.
	Version string

	access  access
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

// Reach asks the cluster of a context of a kubeconfig file who it is. The current context counts if none is named. Its errors say what was asked
// and where, so that nothing has to be added.
func Reach(ctx context.Context, file, kubeContext string) (*Cluster, error) {
	a, err := loadAccess(file, kubeContext)
	if err != nil {
		return nil, err
	}
	return reach(ctx, a)
}

func reach(ctx context.Context, a access) (*Cluster, error) {
	c, err := open(a)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, errSilent)
	defer cancel()
	if c.Version, err = serverVersion(ctx, c.client); err != nil {
		return nil, notReached(ctx, a, err)
	}
	c.UID, err = UID(ctx, c.client)
	if apierrors.IsForbidden(err) {
		// One missing right is seldom alone; name all of them at once.
		return nil, cmp.Or(c.checkRights(ctx, "", grants.Allowances{}), notReached(ctx, a, err))
	}
	if err != nil {
		return nil, notReached(ctx, a, err)
	}
	return c, nil
}

// ReachWith asks a cluster who it is with a credential that has been read elsewhere, which source says.
func ReachWith(ctx context.Context, config *rest.Config, source string) (*Cluster, error) {
	a := access{file: source, rest: config}
	c, err := open(a)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, errSilent)
	defer cancel()
	if c.UID, err = UID(ctx, c.client); err != nil {
		return nil, notReached(ctx, a, err)
	}
	return c, nil
}

func open(a access) (*Cluster, error) {
	client, err := kubernetes.NewForConfig(a.rest)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(a.rest)
	if err != nil {
		return nil, err
	}
	return &Cluster{access: a, client: client, dynamic: dynamicClient}, nil
}

// String says where the way to the cluster was read.
func (c *Cluster) String() string { return c.access.String() }

// Host is the address of its API server.
func (c *Cluster) Host() string { return c.access.rest.Host }

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

// UID returns the UID of the kube-system namespace: what identifies a cluster, above as well as below.
func UID(ctx context.Context, client kubernetes.Interface) (types.UID, error) {
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
