package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

func configMapFile(name, colour string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {colour: %s}\n", name, colour)
}

func TestTheFilesOfACommitSayWhatIsReleasedAndByWhichStages(t *testing.T) {
	s := suite.Scenario(t)
	r := newGitRepository(t)
	r.commit("the first", map[string]string{
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
`, r.serve()))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	refresh := func() {
		s.Logical.Kubectl("annotate", "--overwrite", "application", "web", v1alpha1.AnnotationRefresh+"="+time.Now().Format(time.RFC3339Nano))
	}

	r.commit("other words", map[string]string{"words/words.yaml": configMapFile("words", "red")})
	refresh()
	skipped := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	if got := stage(skipped, "agree"); got.Phase != v1alpha1.StageSkipped || !strings.Contains(got.Message, `skipOn.paths names, such as "words/words.yaml"`) {
		t.Errorf("the stage is %s: %s", got.Phase, got.Message)
	}

	r.commit("other settings", map[string]string{"lib/settings.yaml": configMapFile("settings", "red")})
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

	r.commit("words again", map[string]string{"words/words.yaml": configMapFile("words", "green")})
	refresh()
	awaitStage(s, "web-v4", "agree", v1alpha1.StageRunning) // what web-v3 has changed comes along
}
