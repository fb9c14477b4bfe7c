package delivery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

func configMapFile(name, colour string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {colour: %s}\n", name, colour)
}

func TestTheFilesOfACommitSayWhatIsReleasedAndByWhichStages(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	r := gittest.New(t, "shop")
	r.Commit("the first", map[string]string{
		"web/kustomization.yaml": "resources: [../lib, ../words]\n",
		"lib/kustomization.yaml": "resources: [settings.yaml]\n", "lib/settings.yaml": configMapFile("settings", "blue"),
		"words/kustomization.yaml": "resources: [words.yaml]\n", "words/words.yaml": configMapFile("words", "blue"),
	})
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {git: {url: %s, path: web, interval: 1h}}
  targets: [{name: first, cluster: east}]
  trigger: {paths: [words/**]}
  pipeline:
    stages:
    - {name: WAIT_APPROVAL, id: agree, skipOn: {paths: [words/**]}}
    - {name: K8S_PRIMARY_ROLLOUT, id: primary}
`, r.Serve()))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	refresh := func() {
		s.Logical.Kubectl("annotate", "--overwrite", "application", "web", v1alpha1.AnnotationRefresh+"="+time.Now().Format(time.RFC3339Nano))
	}

	r.Commit("other words", map[string]string{"words/words.yaml": configMapFile("words", "red")})
	refresh()
	skipped := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	if got := stage(skipped, "agree"); got.Phase != v1alpha1.StageSkipped || !strings.Contains(got.Message, `skipOn.paths names, such as "words/words.yaml"`) {
		t.Errorf("the stage is %s: %s", got.Phase, got.Message)
	}

	r.Commit("other settings", map[string]string{"lib/settings.yaml": configMapFile("settings", "red")})
	refresh()
	awaitApp(s, "web-v3 is not released by itself", func(app v1alpha1.Application) error {
		released := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ApplicationReleased)
		if app.Status.LatestRevision != "web-v3" || released == nil {
			return fmt.Errorf("the latest is %q", app.Status.LatestRevision)
		}
		return framework.Contains(released.Message, "web-v2 runs in all targets; web-v3 is not released by itself")
	})
	if got := releasedRevisions(s); !slices.Equal(got, []string{"web-v1", "web-v2"}) {
		t.Errorf("there are releases of %v", got)
	}

	r.Commit("words again", map[string]string{"words/words.yaml": configMapFile("words", "green")})
	refresh()
	awaitStage(s, "web-v4", "agree", v1alpha1.StageRunning) // what web-v3 has changed comes along
}

// announce sends what a forge does of a push, and returns the code of the answer.
func announce(s *framework.Scenario, application, ref, secret string) int {
	s.Helper()
	body := fmt.Sprintf(`{"ref": %q}`, ref)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.Logical.Config.Host+"/hooks/git/"+s.Namespace+"/"+application, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("X-GitHub-Event", "push")
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(s.Logical.Config))
	if err != nil {
		s.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestAPushIsReleasedAtOnce(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	r := gittest.New(t, "shop")
	r.Commit("the first", map[string]string{"web/settings.yaml": configMapFile("settings", "blue")})
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {git: {url: %s, path: web, interval: 24h, webhook: {secretRef: {name: hook}}}}
  targets: [{name: first, cluster: east}]
`, r.Serve()))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	awaitTold(s, v1alpha1.ApplicationHonoured, "there is no Secret "+s.Namespace+"/hook")
	if got := announce(s, "web", "refs/heads/main", ""); got != http.StatusUnauthorized {
		t.Errorf("without the Secret a push is answered by %d", got)
	}
	s.Logical.Kubectl("create", "secret", "generic", "hook", "--from-literal=token=s3cret-word")
	awaitApp(s, "the Secret is found", func(app v1alpha1.Application) error {
		if !meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.ApplicationHonoured) {
			return fmt.Errorf("conditions are %+v", app.Status.Conditions)
		}
		return nil
	})

	r.Commit("the second", map[string]string{"web/settings.yaml": configMapFile("settings", "red")})
	for _, test := range []struct {
		application, ref, secret string
		want                     int
	}{
		{"web", "refs/heads/main", "wrong", http.StatusUnauthorized},
		{"none", "refs/heads/main", "s3cret-word", http.StatusUnauthorized},
		{"web", "refs/heads/other", "s3cret-word", http.StatusNoContent},
	} {
		if got := announce(s, test.application, test.ref, test.secret); got != test.want {
			t.Errorf("a push to %s for %s is answered by %d, want %d", test.ref, test.application, got, test.want)
		}
	}
	if app, err := fetch[v1alpha1.Application](s, "application", "web"); err != nil || app.Annotations[v1alpha1.AnnotationRefresh] != "" {
		t.Errorf("something was announced: %v (%v)", app.Annotations, err)
	}
	if got := announce(s, "web", "refs/heads/main", "s3cret-word"); got != http.StatusAccepted {
		t.Errorf("the push is answered by %d", got)
	}
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
}
