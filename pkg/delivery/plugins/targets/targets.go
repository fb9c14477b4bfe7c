// Package targets makes deploy targets of plugins from the clusters that have joined: each is a kubeconfig that shows the logical cluster as one cluster is to
// see it, in one namespace and with the rights of one ServiceAccount there, for a short time.
//
// What a plugin writes by it is pinned to that cluster and becomes that cluster's alone. The token is good for the view of that cluster and for nothing else.
package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

const (
	// Shortest is the shortest time that an API server makes a token for.
	Shortest = 10 * time.Minute
	// Longest bounds how long a token is asked for: whoever needs one for longer renews it.
	Longest = 24 * time.Hour
	// renewAfter is the part of its life, of 10, after which a token is to be renewed. The kubelet renews those of pods at the same moment.
	renewAfter = 8
)

// Access is how a plugin, or anybody else, is to reach the logical cluster.
type Access struct {
	// Server is the address of the logical cluster, without a view.
	Server string
	// Authority are the certificates that it is trusted by, in PEM. Empty are those of the system.
	Authority []byte
	// TLSServerName is the name in its certificate, "" for the one in its address.
	TLSServerName string
	// Cluster is the one whose view it is.
	Cluster string
	// Namespace is the one to work in, and ServiceAccount the one there whose rights count.
	Namespace, ServiceAccount string
	// Duration is for how long, at least Shortest and at most Longest.
	Duration time.Duration
}

// Target is a kubeconfig of a deploy target.
type Target struct {
	// Kubeconfig needs no other file: it is for whoever reads it anew for each thing that he does.
	Kubeconfig []byte
	// Files are the same for a process that goes on: a kubeconfig, by the name that KubeconfigFile returns, and a token beside it, which clients read again
	// now and then. They are the content of files of one folder by their names. What changes is the token alone.
	Files map[string]string
	// Renew is when it is to be made anew, some time before it Expires.
	Renew, Expires time.Time
}

// Check says what is wrong with the access, field by field.
func (a Access) Check() error {
	var errs []error
	address, err := url.Parse(a.Server)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("server: %w", err))
	case address.Scheme != "https" || address.Host == "" || address.RawQuery != "" || address.Fragment != "" || address.User != nil:
		errs = append(errs, fmt.Errorf("server: %q is not the address of a logical cluster, such as https://manifold.example:6443", address.Redacted()))
	default:
		if cluster, _, viewed := v1alpha1.CutViewPath(address.Path); viewed {
			errs = append(errs, fmt.Errorf("server: %q is the view of cluster %q already: give the address of the logical cluster itself", a.Server, cluster))
		}
	}
	for _, name := range []struct {
		field, value string
		problems     func(string) []string
	}{
		{"cluster", a.Cluster, validation.IsDNS1123Label},
		{"namespace", a.Namespace, validation.IsDNS1123Label},
		{"serviceAccount", a.ServiceAccount, validation.IsDNS1123Subdomain},
	} {
		if problems := name.problems(name.value); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("%s: %q is not a name: %s", name.field, name.value, strings.Join(problems, "; ")))
		}
	}
	if a.Duration < Shortest || a.Duration > Longest {
		errs = append(errs, fmt.Errorf("duration: %s is not between %s and %s", a.Duration, Shortest, Longest))
	}
	return errors.Join(errs...)
}

// Make asks the logical cluster for a token of the ServiceAccount, for the view of the cluster alone, and writes the kubeconfig. Who asks has to have the right to create
// serviceaccounts/token there. Now is the time at which it does.
func Make(ctx context.Context, client kubernetes.Interface, a Access, now time.Time) (Target, error) {
	if err := a.Check(); err != nil {
		return Target{}, fmt.Errorf("kubeconfig for cluster %q: %w", a.Cluster, err)
	}
	seconds := int64(a.Duration / time.Second)
	request, err := client.CoreV1().ServiceAccounts(a.Namespace).CreateToken(ctx, a.ServiceAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{v1alpha1.ViewAudience(a.Cluster)}, ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return Target{}, fmt.Errorf("ask for a token of ServiceAccount %s/%s for the view of cluster %q: %w", a.Namespace, a.ServiceAccount, a.Cluster, err)
	}
	expires := request.Status.ExpirationTimestamp.Time
	if request.Status.Token == "" || !expires.After(now) {
		return Target{}, fmt.Errorf("the logical cluster gave no token of ServiceAccount %s/%s that is good at %s", a.Namespace, a.ServiceAccount, now.UTC().Format(time.RFC3339))
	}
	out := Target{Renew: now.Add(expires.Sub(now) / 10 * renewAfter), Expires: expires}
	tokenFile := a.Cluster + ".token"
	whole, err := a.write(clientcmdapi.AuthInfo{Token: request.Status.Token})
	if err != nil {
		return Target{}, fmt.Errorf("write the kubeconfig for cluster %q: %w", a.Cluster, err)
	}
	beside, err := a.write(clientcmdapi.AuthInfo{TokenFile: tokenFile}) // which is relative to the kubeconfig
	if err != nil {
		return Target{}, fmt.Errorf("write the kubeconfig for cluster %q: %w", a.Cluster, err)
	}
	out.Kubeconfig, out.Files = whole, map[string]string{KubeconfigFile(a.Cluster): string(beside), tokenFile: request.Status.Token}
	return out, nil
}

// KubeconfigFile is the name of the kubeconfig for a cluster among the files of a Target.
func KubeconfigFile(cluster string) string { return cluster + ".kubeconfig" }

// write returns a kubeconfig by which somebody logs in.
func (a Access) write(as clientcmdapi.AuthInfo) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[a.Cluster] = &clientcmdapi.Cluster{
		Server: strings.TrimRight(a.Server, "/") + v1alpha1.ViewPath(a.Cluster), CertificateAuthorityData: a.Authority, TLSServerName: a.TLSServerName,
	}
	config.AuthInfos[a.ServiceAccount] = &as
	config.Contexts[a.Cluster] = &clientcmdapi.Context{Cluster: a.Cluster, AuthInfo: a.ServiceAccount, Namespace: a.Namespace}
	config.CurrentContext = a.Cluster
	return clientcmd.Write(*config)
}

// Config is the configuration of a deploy target as PipeCD's plugins for Kubernetes read it, for a kubeconfig in a file. Without a namespace their live state would list the
// objects of all, which the ServiceAccount of one may not.
func Config(path, namespace string) (json.RawMessage, error) {
	type informer struct {
		Namespace string `json:"namespace"`
	}
	return json.Marshal(struct {
		KubeConfigPath   string   `json:"kubeConfigPath"`
		AppStateInformer informer `json:"appStateInformer"`
	}{path, informer{namespace}})
}

// Selected returns those of the clusters that a selector selects and that stay, in their order. Each is to be a deploy target under its own name and with its own labels.
func Selected(clusters []*v1alpha1.Cluster, selector labels.Selector) []*v1alpha1.Cluster {
	var out []*v1alpha1.Cluster
	for _, cluster := range clusters {
		if cluster.DeletionTimestamp == nil && selector.Matches(labels.Set(cluster.Labels)) {
			out = append(out, cluster)
		}
	}
	return out
}
