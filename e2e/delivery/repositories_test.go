package delivery

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

// applySecret has a Secret hold these values and no others.
func applySecret(s *framework.Scenario, name string, values map[string]string) {
	s.Helper()
	secret := corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{}}
	for key, value := range values {
		secret.Data[key] = []byte(value)
	}
	manifest, err := json.Marshal(secret)
	if err != nil {
		s.Fatal(err)
	}
	s.Logical.Apply(string(manifest))
}

// awaitReleasedFrom waits until a revision is released, and compares where it comes from and what runs of it.
func awaitReleasedFrom(s *framework.Scenario, name string, want v1alpha1.Origin, colour string) {
	s.Helper()
	awaitPhase(s, name, v1alpha1.ReleaseSucceeded)
	revision, err := fetch[v1alpha1.ApplicationRevision](s, "applicationrevision", name)
	if err != nil {
		s.Fatal(err)
	}
	if got := revision.Spec.Origin; got == nil || got.URL != want.URL || got.Ref != want.Ref || got.Commit != want.Commit {
		s.Errorf("%s is of %+v, want %+v", name, got, want)
	}
	if got := s.Logical.Kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.colour}"); got != colour {
		s.Errorf("of %s there is %q, want %q", name, got, colour)
	}
}

// The interval is so long that a Secret that is corrected, or a commit, is noticed by nothing but what the test says.
func TestARepositoryIsReadWithTheCredentialsOfASecret(t *testing.T) {
	s := suite.Scenario(t)
	r := gittest.New(t, "shop")
	commit := func(tag, colour string) string {
		hash := r.Commit(tag, map[string]string{"web/settings.yaml": configMapFile("settings", colour)})
		r.Git("tag", tag)
		return hash
	}
	first := commit("v1.0.0", "blue")
	https := r.ServeTLS()
	https.Username, https.Password = "ada", "s3cret-word"
	application := func(url, ref, secret string) string {
		return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {git: {url: %q, ref: {%s}, path: web, interval: 24h, secretRef: {name: %s}}}
  targets: [{name: first, cluster: east}]
`, url, ref, secret)
	}

	// By HTTPS, what follows a range of versions.
	s.Logical.Apply(application(https.CloneURL(), `semver: ">=1.0.0 <2.0.0"`, "login"))
	awaitTold(s, v1alpha1.ApplicationSourceReady, "there is no Secret "+s.Namespace+"/login, which spec.source.git.secretRef names")
	login := map[string]string{"username": "ada", "Password": "s3cret-word"}
	applySecret(s, "login", login)
	awaitTold(s, v1alpha1.ApplicationSourceReady, "with Secret "+s.Namespace+"/login, which has no key ca.crt: ")
	login["ca.crt"] = string(https.CA())
	applySecret(s, "login", login)
	awaitTold(s, v1alpha1.ApplicationSourceReady, "with Secret "+s.Namespace+"/login, which has no key password: ")
	delete(login, "Password")
	login["password"] = "another-word"
	applySecret(s, "login", login)
	awaitTold(s, v1alpha1.ApplicationSourceReady, "with Secret "+s.Namespace+`/login: look up version ">=1.0.0 <2.0.0" of `+https.CloneURL()+": the credentials are not accepted")
	login["password"] = https.Password
	applySecret(s, "login", login)
	awaitReleasedFrom(s, "web-v1", v1alpha1.Origin{URL: https.CloneURL(), Ref: "refs/tags/v1.0.0", Commit: first}, "blue")

	beyond := commit("v2.0.0", "red")
	within := commit("v1.1.0", "green")
	s.Logical.Kubectl("annotate", "--overwrite", "application", "web", v1alpha1.AnnotationRefresh+"="+time.Now().Format(time.RFC3339Nano))
	awaitReleasedFrom(s, "web-v2", v1alpha1.Origin{URL: https.CloneURL(), Ref: "refs/tags/v1.1.0", Commit: within}, "green")

	// By SSH, a commit that no branch ends at.
	key, identity := gittest.NewKey(t, "open-sesame")
	ssh := gittest.ServeSSH(t, key.PublicKey())
	deploy := map[string]string{"identity": string(identity)}
	applySecret(s, "deploy", deploy)
	s.Logical.Apply(application(ssh.CloneURL(r), "commit: "+beyond, "deploy"))
	awaitTold(s, v1alpha1.ApplicationSourceReady, "with Secret "+s.Namespace+"/deploy: look up commit "+beyond+" of ssh://"+ssh.Address+r.Dir+": not allowed: credentials: ssh needs known_hosts")
	deploy["known_hosts"] = string(ssh.KnownHosts())
	applySecret(s, "deploy", deploy)
	awaitTold(s, v1alpha1.ApplicationSourceReady, "the private key is encrypted, and there is no password that opens it")
	deploy["password"] = "open-sesame"
	applySecret(s, "deploy", deploy)
	awaitReleasedFrom(s, "web-v3", v1alpha1.Origin{URL: ssh.CloneURL(r), Commit: beyond}, "red")
}
