package delivery

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

// inlineApp is an application that holds a ConfigMap of a colour itself.
func inlineApp(colour string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source:
    inline:
      objects:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: %s}}
%s
`, colour, strings.Join(more, "\n"))
}

// fetch reads an object of the logical cluster, or a list.
func fetch[T any](s *framework.Scenario, args ...string) (T, error) {
	s.Helper()
	var out T
	result := s.Logical.Try(append([]string{"get", "-o", "json"}, args...)...)
	if err := framework.Failure(result); err != nil {
		return out, err
	}
	return out, json.Unmarshal([]byte(result.Stdout), &out)
}

// awaitApp waits until an application is as it should be.
func awaitApp(s *framework.Scenario, claim string, check func(v1alpha1.Application) error) v1alpha1.Application {
	s.Helper()
	var last v1alpha1.Application
	s.Logical.Poll(claim, func() (err error) {
		if last, err = fetch[v1alpha1.Application](s, "application", "web"); err != nil {
			return err
		}
		return check(last)
	})
	return last
}

// awaitRevision waits until the latest revision has a number.
func awaitRevision(s *framework.Scenario, number int64) v1alpha1.Application {
	s.Helper()
	return awaitApp(s, fmt.Sprintf("the latest revision is web-v%d", number), func(app v1alpha1.Application) error {
		if app.Status.LatestRevision != v1alpha1.RevisionName("web", number) || app.Status.ObservedGeneration != app.Generation {
			return fmt.Errorf("latest is %q, conditions are %+v", app.Status.LatestRevision, app.Status.Conditions)
		}
		return nil
	})
}

// awaitTold waits until a condition that is not True says something.
func awaitTold(s *framework.Scenario, kind, want string) {
	s.Helper()
	awaitApp(s, fmt.Sprintf("condition %s says %q", kind, want), func(app v1alpha1.Application) error {
		found := meta.FindStatusCondition(app.Status.Conditions, kind)
		if found == nil || found.Status != metav1.ConditionFalse || !strings.Contains(found.Message, want) {
			return fmt.Errorf("it is %+v", found)
		}
		return nil
	})
}

// releasedRevisions are the revisions of all releases, sorted.
func releasedRevisions(s *framework.Scenario) []string {
	s.Helper()
	list, err := fetch[v1alpha1.ReleaseList](s, "releases")
	if err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, release := range list.Items {
		out = append(out, release.Spec.Revision)
	}
	slices.Sort(out)
	return out
}

func TestAnApplicationMakesRevisionsAndReleases(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(inlineApp("blue"))
	app := awaitRevision(s, 1)
	if app.Status.WantedRevision != "web-v1" || !slices.Contains(app.Finalizers, v1alpha1.FinalizerApplication) {
		t.Errorf("wanted is %q, finalizers are %v", app.Status.WantedRevision, app.Finalizers)
	}
	s.Logical.Poll("web-v1 is released", func() error {
		if got := releasedRevisions(s); !slices.Equal(got, []string{"web-v1"}) {
			return fmt.Errorf("releases of %v", got)
		}
		return nil
	})
	s.Logical.Apply(inlineApp("red"))
	awaitRevision(s, 2)
	s.Logical.Poll("web-v2 is released", func() error {
		if got := releasedRevisions(s); !slices.Equal(got, []string{"web-v1", "web-v2"}) {
			return fmt.Errorf("releases of %v", got)
		}
		return nil
	})

	s.Logical.Apply(inlineApp(`"red"`, "  minReadySeconds: 1")) // another generation, and the same manifests
	if app := awaitRevision(s, 2); app.Status.LastRevisionNumber != 2 {
		t.Errorf("what changes no manifest makes revision %d", app.Status.LastRevisionNumber)
	}
	if got := releasedRevisions(s); !slices.Equal(got, []string{"web-v1", "web-v2"}) {
		t.Errorf("releases of %v after a change of nothing", got)
	}
}

func TestWhatAnApplicationMayNotHaveIsToldAndNothingIsMade(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(strings.Replace(inlineApp("blue"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: blue}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: all}}", 1))
	awaitTold(s, v1alpha1.ApplicationRendered, "in spec.source.inline: ClusterRoleBinding.rbac.authorization.k8s.io all: it is in no namespace")
	if got := releasedRevisions(s); len(got) > 0 {
		t.Errorf("releases of %v", got)
	}
}

func TestAnApplicationFollowsARepository(t *testing.T) {
	s := suite.Scenario(t)
	r := gittest.New(t, "shop")
	r.Commit("the first", map[string]string{
		"web/base/kustomization.yaml": "resources: [settings.yaml]\n",
		"web/base/settings.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: blue}\n",
		"web/east/kustomization.yaml": "resources: [../base]\nnameSuffix: -east\n",
	})
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {git: {url: %s, path: web, interval: 1h}}
  targets:
  - {name: east, cluster: east, path: east}
  - {name: west, cluster: west, path: base}
`, r.Serve()))
	awaitRevision(s, 1)
	revision, err := fetch[v1alpha1.ApplicationRevision](s, "applicationrevision", "web-v1")
	if err != nil {
		t.Fatal(err)
	}
	if origin := revision.Spec.Origin; origin == nil || origin.Message != "the first" || len(revision.Spec.Targets) != 2 || len(revision.Spec.Objects) != 2 {
		t.Errorf("web-v1 is of %+v for %+v", origin, revision.Spec.Targets)
	}

	r.Commit("the second", map[string]string{"web/base/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: red}\n"})
	s.Logical.Kubectl("annotate", "application", "web", v1alpha1.AnnotationRefresh+"=now")
	awaitRevision(s, 2)

	r.Commit("the third", map[string]string{"web/base/settings.yaml": "{{"})
	s.Logical.Kubectl("annotate", "--overwrite", "application", "web", v1alpha1.AnnotationRefresh+"=again")
	awaitTold(s, v1alpha1.ApplicationRendered, `target "east"`)
	s.Logical.Kubectl("patch", "application", "web", "--type=merge", "-p", `{"spec":{"source":{"git":{"ref":{"branch":"gone"}}}}}`)
	awaitTold(s, v1alpha1.ApplicationSourceReady, `branch "gone"`)
	if app := awaitRevision(s, 2); app.Status.LastRevisionNumber != 2 {
		t.Errorf("what cannot be rendered has made revision %d", app.Status.LastRevisionNumber)
	}
}

func TestAnApplicationFollowsWhatUsersApply(t *testing.T) {
	s := suite.Scenario(t)
	config := func(colour string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {app: web}}, data: {colour: %s}}", colour)
	}
	s.Logical.Apply(config("blue"), `
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {selector: {matchLabels: {app: web}, kinds: [ConfigMap, Deployment]}}
  trigger: {mode: Manual}
`)
	awaitRevision(s, 1)
	s.Logical.Apply(config("red"))
	awaitRevision(s, 2)
	s.Logical.Kubectl("delete", "configmap", "settings")
	awaitTold(s, v1alpha1.ApplicationSourceReady, "no object of namespace "+s.Namespace+" has the labels app=web")
}

func TestWhatAnApplicationMadeGoesWithIt(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(inlineApp("blue", "  trigger: {mode: Manual}"))
	awaitRevision(s, 1)
	s.Logical.Kubectl("delete", "application", "web")
	s.Logical.Poll("its revisions are gone", func() error {
		list, err := fetch[v1alpha1.ApplicationRevisionList](s, "applicationrevisions")
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	})
}

func TestAnApplicationTellsWhatRunsWhere(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source:
    inline:
      objects:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 2
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: web, image: nginx:1}]}
  targets:
  - {name: one, cluster: east}
  - {name: two, cluster: west}
`)
	app := awaitApp(s, "web-v1 runs in both", func(app v1alpha1.Application) error {
		if app.Status.LiveRevision != "web-v1" || app.Status.Sync != v1alpha1.Synced || app.Status.Health != v1alpha1.Healthy {
			return fmt.Errorf("live %q, %s, %s: %+v %+v", app.Status.LiveRevision, app.Status.Sync, app.Status.Health, app.Status.Targets, app.Status.Conditions)
		}
		return nil
	})
	for i, cluster := range []string{"east", "west"} {
		target := app.Status.Targets[i]
		if target.LiveRevision != "web-v1" || len(target.Clusters) != 1 || target.Clusters[0].Name != cluster {
			t.Errorf("target %s tells %+v", target.Name, target)
		}
	}
	if !meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.ApplicationReleased) {
		t.Errorf("conditions are %+v", app.Status.Conditions)
	}
}
