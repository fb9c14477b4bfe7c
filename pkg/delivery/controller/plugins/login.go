package plugins

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/fetch"
)

// secretChanged has the plugins looked at whose programs are fetched by a Secret. Others change all the time.
func (c *Controller) secretChanged(obj any) {
	secret, is := caches.Last(obj).(*corev1.Secret)
	if !is || secret.Namespace != manifold.SystemNamespace {
		return
	}
	c.all(func(plugin *v1alpha1.Plugin) bool {
		return plugin.Spec.SecretRef != nil && plugin.Spec.SecretRef.Name == secret.Name
	})
}

// loginTypes are the types of Secrets that have logins, each with the schemes of URLs that it is for. Credentials of clusters lie in the namespace as well, and go
// nowhere.
var loginTypes = map[corev1.SecretType][]string{corev1.SecretTypeBasicAuth: {"https", "oci"}, corev1.SecretTypeDockerConfigJson: {"oci"}}

// login is by what the program of a plugin is fetched, or why it is not.
func (c *Controller) login(plugin *v1alpha1.Plugin) fetch.Login {
	if plugin.Spec.SecretRef == nil {
		return fetch.Login{}
	}
	missing := func(format string, a ...any) fetch.Login {
		return fetch.Login{Missing: fmt.Sprintf("spec.secretRef: Secret %s/%s ", manifold.SystemNamespace, plugin.Spec.SecretRef.Name) + fmt.Sprintf(format, a...)}
	}
	secret, err := c.Secrets.Lister().Secrets(manifold.SystemNamespace).Get(plugin.Spec.SecretRef.Name)
	if err != nil { // a cache fails for no other reason
		return missing("does not exist: make it, of type %s or %s", corev1.SecretTypeBasicAuth, corev1.SecretTypeDockerConfigJson)
	}
	scheme, _, _ := strings.Cut(plugin.Spec.URL, "://")
	if !slices.Contains(loginTypes[secret.Type], scheme) {
		return missing("is of type %s: a URL of %s takes one of type %s", secret.Type, scheme, typesFor(scheme))
	}
	if secret.Type == corev1.SecretTypeDockerConfigJson {
		return fetch.Login{Docker: string(secret.Data[corev1.DockerConfigJsonKey])}
	}
	out := fetch.Login{Username: string(secret.Data[corev1.BasicAuthUsernameKey]), Password: string(secret.Data[corev1.BasicAuthPasswordKey])}
	if out == (fetch.Login{}) {
		return missing("has neither %s nor %s", corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
	}
	return out
}

func typesFor(scheme string) string {
	var out []string
	for kind, schemes := range loginTypes {
		if slices.Contains(schemes, scheme) {
			out = append(out, string(kind))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " or ")
}
